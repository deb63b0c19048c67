#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "braid/chat_format.h"
#include "braid/export.h"
#include "braid/world.h"

namespace braid {

/// What an exported model can take: its folder says so, and ModelOptions.
struct ModelLimits {
  std::int64_t max_tokens = 0;     ///< of one run
  std::int64_t max_sequences = 0;  ///< of one run
  std::int64_t context = 0;        ///< tokens of a sequence
  std::int64_t page_size = 0;      ///< tokens of a page of the cache
  std::int64_t pages = 0;          ///< of the cache
  std::int64_t table_width = 0;    ///< pages of a sequence of the whole context
  std::int64_t vocabulary = 0;
  std::vector<std::int32_t> end_of_text;  ///< tokens that end a text
};

struct ModelOptions {
  WorldOptions world;           ///< where it runs; the folder says on how many ranks
  std::int64_t max_tokens = 0;  ///< of one run, at most what the folder says; 0: as many
  std::int64_t pages = 0;       ///< of the cache; 0: by `memory`
  /// Bytes that weights, caches and what runs need may take on each rank: the cache gets as many
  /// pages as fit (Executable::pages_that_fit). 0: as many as the folder says.
  std::int64_t memory = 0;
};

/// The inputs of one run, in the graph's layout (docs/python.md). Every sequence has tokens.
struct BRAID_API ModelBatch {
  std::vector<std::int32_t> tokens, positions, slots, lengths, starts{0};
  std::vector<std::int32_t> page_table;  ///< [sequences, ModelLimits::table_width]

  /// Appends a sequence of which the caches have the first `cached` tokens and this run computes
  /// the next `count`, at least one. Its pages have room for all of them.
  void append(const ModelLimits& limits, std::span<const std::int32_t> sequence,
              std::int64_t cached, std::int64_t count, std::span<const std::int32_t> pages);
};

/// A causal language model in a folder that `python -m braid.export` wrote, ready to run on all its
/// ranks, which are threads of this process. One thread may use it at a time.
class BRAID_API ExportedModel {
 public:
  /// Compiles the graph and reads the weights. Throws kInvalidArgument and kEnvironment with what
  /// is wrong with the folder or too small, and as World::open and Executable::compile do.
  static ExportedModel open(const std::string& folder, const ModelOptions& options = {});
  ExportedModel(ExportedModel&&) noexcept;
  ExportedModel& operator=(ExportedModel&&) noexcept;
  ~ExportedModel();

  [[nodiscard]] const ModelLimits& limits() const;
  /// Empty where the model has no chat template, or one that braid.export could not take.
  [[nodiscard]] const std::optional<ChatFormat>& chat() const;

  /// Runs once and returns the logits of each sequence's last token, [sequences, vocabulary].
  /// Throws as Executable::synchronize does where the run failed; what the caches hold is lost
  /// then.
  [[nodiscard]] std::vector<double> run(const ModelBatch& batch);

 private:
  struct Impl;
  explicit ExportedModel(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace braid
