#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "braid/export.h"
#include "braid/exported_model.h"
#include "braid/page_pool.h"

namespace braid {

/// One run for several sequences.
struct ScheduledStep {
  struct Row {
    std::uint64_t sequence = 0;
    /// Whether all its tokens have run then, so that its logits choose the next one.
    bool whole = false;
    std::int64_t reused = 0;  ///< tokens that the cache had when the sequence first began
  };
  ModelBatch batch;
  std::vector<Row> rows;  ///< the sequences of `batch`, in its order
};

/// Continuous batching over a paged cache: which tokens of which sequences are in the next run. A
/// run has a token of each sequence that decodes, and parts of prompts in what is left of its size.
/// Pages are taken as sequences grow, and those of equal begins are shared (PagePool). When none is
/// free, the youngest sequence loses its own, and is computed again later. It knows no model; the
/// same calls give the same runs.
class BRAID_API BatchScheduler {
 public:
  explicit BatchScheduler(ModelLimits limits);

  /// Adds a sequence after those that wait. Throws kInvalidArgument for no tokens, for tokens that
  /// no sequence can have (ModelLimits::refusal), and for a number that another sequence has.
  void add(std::uint64_t sequence, std::vector<std::int32_t> tokens);
  /// Appends a token to a sequence that runs. Throws kInvalidArgument where it does not run, or
  /// cannot have that token.
  void append(std::uint64_t sequence, std::int32_t token);
  /// Takes a sequence out, whether it runs or waits.
  void remove(std::uint64_t sequence);

  /// The next run, of at most `max_tokens` tokens; without rows where no sequence is there. done()
  /// or failed() must be called when it is over.
  [[nodiscard]] ScheduledStep next(std::int64_t max_tokens);
  void done();
  /// What the cache holds is lost. Takes out the sequences that ran, and returns them.
  std::vector<std::uint64_t> failed();

  [[nodiscard]] std::int64_t running() const { return std::ssize(running_); }
  [[nodiscard]] std::int64_t waiting() const { return std::ssize(waiting_); }
  [[nodiscard]] std::int64_t free_pages() const { return pool_.free_pages(); }
  // Since the start.
  [[nodiscard]] std::int64_t preempted() const { return preempted_; }  ///< sequences
  [[nodiscard]] std::int64_t reused() const { return reused_; }  ///< tokens that the cache had

 private:
  struct Sequence {
    std::uint64_t number = 0;
    std::vector<std::int32_t> tokens;
    SequencePages pages;
    std::int64_t cached = 0;   ///< tokens that the cache has, once the run at hand is over
    std::int64_t taken = 0;    ///< of these, tokens of that run
    std::int64_t reused = -1;  ///< -1: it never ran
    [[nodiscard]] std::int64_t pending() const { return std::ssize(tokens) - cached; }
  };

  void admit();
  void take(std::int64_t budget);
  bool grow(std::size_t index, std::int64_t count);

  ModelLimits limits_;
  PagePool pool_;
  /// Oldest first. All of them are older than those that wait.
  std::vector<Sequence> running_;
  std::deque<Sequence> waiting_;
  std::int64_t preempted_ = 0, reused_ = 0;
};

}  // namespace braid
