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

/// For what a trial holds.
struct TuneKey {
  std::string kernel;     ///< hash of its body: kernel_key()
  std::string symbols;    ///< their values, "S=4,T=128"
  std::string arch;       ///< what it is compiled for, "sm_90a"
  std::string device;     ///< whose time it is: that of a DeviceModel, or a GPU's own name
  std::string measure;    ///< kEstimated or kMeasured
  std::string toolchain;  ///< "NVRTC 13.0"
};
inline constexpr const char* kEstimated = "estimated";
inline constexpr const char* kMeasured = "measured";

/// One configuration that was tried.
struct TuneRow {
  TuneKey key;
  Config config;
  std::string text;  ///< hash of the kernel's text in this configuration
  Trial trial;
  std::string braid = {};  ///< the version that tried it: put() stores its own
};
/// This one's.
[[nodiscard]] std::string_view tuner_version();

/// What names a kernel in a database, whatever graph it is in.
[[nodiscard]] std::string kernel_key(const Graph& body);
/// "S=4,T=128".
[[nodiscard]] std::string symbols_text(const Bindings& bindings);

/// Everything that was tried, in a file of SQLite that several processes may use at a time: each
/// row is a transaction of its own, so whoever is killed loses no row that was stored.
class TuneDatabase {
 public:
  /// Opens the file; `create` makes it where it is not there. Throws kInvalidArgument for what is
  /// no such database, or of another format, kEnvironment where it cannot be opened.
  TuneDatabase(const std::filesystem::path& path, bool create);
  TuneDatabase(TuneDatabase&&) noexcept;
  ~TuneDatabase();

  /// Stores it in the place of one of the same key and configuration. Throws kEnvironment.
  void put(const TuneRow& row);
  /// Nothing where this text was not tried so.
  [[nodiscard]] std::optional<Trial> find(const TuneKey& key, const Config& config,
                                          std::string_view text) const;
  /// All of a kernel, whatever the rest of the key and the version of braid are, in the order in
  /// which they were stored.
  /// What is no row that put() makes is left out.
  [[nodiscard]] std::vector<TuneRow> rows_of(std::string_view kernel) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace braid
