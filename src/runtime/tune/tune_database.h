#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/kernel/spec.h"
#include "runtime/tune/trial.h"

namespace braid {

/// The conditions of a trial.
struct TuneKey {
  std::string kernel;     ///< hash of its body: kernel_key()
  std::string symbols;    ///< symbol values, "S=4,T=128"
  std::string arch;       ///< compile target, "sm_90a"
  std::string device;     ///< device of the time: a DeviceModel's name, or a GPU's own
  std::string measure;    ///< kEstimated or kMeasured
  std::string toolchain;  ///< "NVRTC 13.0"
};
inline constexpr const char* kEstimated = "estimated";
inline constexpr const char* kMeasured = "measured";

/// A trial of one configuration.
struct TuneRow {
  TuneKey key;
  Config config;
  std::string text;  ///< hash of the kernel's text in this configuration
  Trial trial;
  std::string braid = {};  ///< version that made the trial; put() stores its own
};
/// The version that this library stores.
[[nodiscard]] std::string_view tuner_version();

/// Identifies a kernel in a database, whatever graph it is in.
[[nodiscard]] std::string kernel_key(const Graph& body);
/// Formats symbol values: "S=4,T=128".
[[nodiscard]] std::string symbols_text(const Bindings& bindings);

/// All trials, in an SQLite file that several processes may use at the same time. Each row is a
/// transaction of its own, so a killed process loses no stored row.
class TuneDatabase {
 public:
  /// Opens the file; with `create` it is created if missing. Throws kInvalidArgument for a file
  /// that is no such database or has another format, kEnvironment if it cannot be opened.
  TuneDatabase(const std::filesystem::path& path, bool create);
  TuneDatabase(TuneDatabase&&) noexcept;
  ~TuneDatabase();

  /// Stores a row, replacing one of the same key and configuration. Throws kEnvironment.
  void put(const TuneRow& row);
  /// Nothing if this text was not tried under these conditions.
  [[nodiscard]] std::optional<Trial> find(const TuneKey& key, const Config& config,
                                          std::string_view text) const;
  /// All rows of a kernel, for any conditions and versions, in the order in which they were stored.
  /// Rows that put() would not make are skipped.
  [[nodiscard]] std::vector<TuneRow> rows_of(std::string_view kernel) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace braid
