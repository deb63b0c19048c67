#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "braid/chat_format.h"
#include "braid/export.h"
#include "braid/sampling.h"
#include "braid/world.h"

namespace braid {

/// What an exported model can take: its folder says so, and ModelOptions.
struct BRAID_API ModelLimits {
  std::int64_t max_tokens = 0;     ///< of one run
  std::int64_t max_sequences = 0;  ///< of one run
  std::int64_t context = 0;        ///< tokens of a sequence
  std::int64_t page_size = 0;      ///< tokens of a page of the cache
  std::int64_t pages = 0;          ///< of the cache
  std::int64_t table_width = 0;    ///< pages of a sequence of the whole context
  std::int64_t vocabulary = 0;
  std::vector<std::int32_t> end_of_text;  ///< tokens that end a text

  /// The most tokens of a sequence.
  [[nodiscard]] std::int64_t room() const { return std::min(context, pages * page_size); }
  /// Why no sequence can have these tokens and then `more` others, on one line; empty if it can.
  [[nodiscard]] std::string refusal(std::span<const std::int32_t> tokens, std::int64_t more) const;
};

struct ModelOptions {
  /// Where it runs; the folder says on how many ranks. With WorldOptions::rendezvous other
  /// processes have some of them (ExportedModel::follow).
  WorldOptions world;
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
  /// the next `count`, at least one. Its pages have room for all of them. Throws
  /// kInvalidArgument where that is not so.
  void append(const ModelLimits& limits, std::span<const std::int32_t> sequence,
              std::int64_t cached, std::int64_t count, std::span<const std::int32_t> pages);
};

/// A causal language model in a folder that `python -m braid.export` wrote, ready to run on all its
/// ranks, which are threads of this process or, in part, elsewhere. One thread may use it at a
/// time.
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

  /// The most tokens of a run that waits for no compile. With WorldOptions::compile_in_background
  /// open() returns when runs of ModelLimits::max_sequences tokens can begin, which is this number
  /// until all kernels are compiled; with ranks elsewhere it waits for all. Any thread may call it.
  [[nodiscard]] std::int64_t ready_tokens() const;

  /// Runs once and returns the logits of each sequence's last token, [sequences, vocabulary].
  /// Throws as Executable::synchronize does where the run failed; what the caches hold is lost
  /// then. With ranks elsewhere it is called where rank 0 is, and no later run succeeds after one
  /// that failed.
  [[nodiscard]] std::vector<double> run(const ModelBatch& batch);
  /// Runs once and chooses the token behind each sequence where its logits are, on the device: a
  /// fraction of what copies of them and a choice on the host take. A token depends on the logits,
  /// the sequence's sampling and its length alone. Throws as run() does, and kInvalidArgument where
  /// there is not one sampling for each sequence, or where one has a number that means nothing.
  [[nodiscard]] std::vector<ChosenToken> choose(const ModelBatch& batch,
                                                std::span<const Sampling> sampling);
  /// With ranks elsewhere, where rank 0 is not: runs every batch that run() and choose() get there,
  /// until that model is destroyed. Throws as run() does, and kEnvironment naming a rank that is
  /// lost.
  void follow();
  /// With ranks elsewhere: why no later run succeeds, such as "rank 1 is gone"; else empty. Any
  /// thread may call it.
  [[nodiscard]] std::string lost() const;

 private:
  struct Impl;
  explicit ExportedModel(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace braid
