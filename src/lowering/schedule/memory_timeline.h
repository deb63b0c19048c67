#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "braid/graph.h"

namespace braid {

struct PassContext;

/// Whose memory each node makes, uses and is the last to use, in bytes with symbols at their
/// largest values. Memory is that of storages (ir/mutation.h): views, waits and in-place results
/// make none. What a collective reads or writes is in use until its wait. Graph inputs are the
/// caller's: they are there all the time, and no node's. Outputs stay.
class MemoryUse {
 public:
  explicit MemoryUse(const Graph& graph);

  /// Bytes that the node makes.
  [[nodiscard]] std::int64_t made(NodeId id) const { return made_[id]; }
  /// The storages made by nodes that the node uses or makes, each once; those of outputs, which
  /// nobody frees, are left out.
  [[nodiscard]] std::span<const ValueId> used(NodeId id) const {
    const std::size_t at = id;
    return std::span(used_).subspan(first_[at], first_[at + 1] - first_[at]);
  }
  [[nodiscard]] std::int64_t bytes(ValueId storage) const { return bytes_[storage]; }
  [[nodiscard]] std::int64_t inputs() const { return inputs_; }
  [[nodiscard]] std::size_t nodes() const { return made_.size(); }
  [[nodiscard]] std::size_t values() const { return bytes_.size(); }

 private:
  std::vector<std::int64_t> made_, bytes_;
  std::vector<std::size_t> first_;  ///< of each node, in used_
  std::vector<ValueId> used_;
  std::int64_t inputs_ = 0;
};

/// What is in use while a node runs, and after what it was the last to use is gone.
struct MemoryLevel {
  std::int64_t during = 0, after = 0;
  bool operator==(const MemoryLevel&) const = default;
};

/// Of each place of the order. Linear.
[[nodiscard]] std::vector<MemoryLevel> memory_levels(const MemoryUse& use,
                                                     std::span<const NodeId> order);
/// The most bytes in use at once.
[[nodiscard]] std::int64_t peak_memory(const MemoryUse& use, std::span<const NodeId> order);

/// The peak of the program before the first of the scheduling passes that follow each other, of
/// which this graph is what the next one is given: the base of all their budgets.
std::int64_t base_peak(const MemoryUse& use, const Graph& graph, PassContext& context);

/// Bytes that a share of the base more than it allows.
std::int64_t memory_limit(std::int64_t base, double budget);

/// An order of nodes and its levels, kept up to date while nodes trade places with blocks of
/// neighbours. A move costs what the block has, and whatever it says is what memory_levels would:
/// nothing is estimated, and the levels of a block are never older than its last move.
class MemoryTimeline {
 public:
  MemoryTimeline(const MemoryUse& use, std::vector<NodeId> order);

  [[nodiscard]] const std::vector<NodeId>& order() const { return order_; }
  [[nodiscard]] const std::vector<MemoryLevel>& levels() const { return levels_; }
  /// The highest level of the places from first to last.
  [[nodiscard]] std::int64_t peak(std::size_t first, std::size_t last) const;
  [[nodiscard]] std::int64_t peak() const { return peak(0, order_.size() - 1); }

  /// What the block's peak came to.
  struct Move {
    bool done = false;
    std::int64_t peak = 0;
  };
  /// The node at `first` goes behind those up to `last`, which it shares no result with; but not
  /// where the peak of them all would come to more than `limit`, and more than it is.
  Move move_back(std::size_t first, std::size_t last, std::int64_t limit);
  /// The node at `last` goes in front of those from `first` on.
  Move move_forward(std::size_t first, std::size_t last, std::int64_t limit);

 private:
  [[nodiscard]] std::size_t place(NodeId id) const { return place_[id]; }
  NodeId& last_user(ValueId storage) { return last_user_[storage]; }
  void rotate(std::size_t first, std::size_t middle, std::size_t last);
  void free_at(ValueId storage, NodeId id);
  void update_levels(std::size_t first, std::size_t last);

  const MemoryUse& use_;
  std::vector<NodeId> order_;
  std::vector<std::size_t> place_;
  std::vector<NodeId> last_user_;    ///< of each storage
  std::vector<std::int64_t> freed_;  ///< by each node
  std::vector<MemoryLevel> levels_;  ///< of each place
};

}  // namespace braid
