#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "braid/graph.h"

namespace braid {

struct PassContext;

/// The storages that each node makes, uses, and is the last to use, in bytes with symbols at their
/// largest values (ir/mutation.h): views, waits and in-place results make none. What a collective
/// reads or writes is in use until its wait. Graph inputs belong to the caller and do not count.
/// Outputs are never freed.
class MemoryUse {
 public:
  explicit MemoryUse(const Graph& graph);

  /// Bytes that the node makes.
  [[nodiscard]] std::int64_t made(NodeId id) const { return made_[id]; }
  /// The storages made by nodes that the node uses or makes, each once; those of outputs, which
  /// nobody frees, are left out.
  [[nodiscard]] std::span<const ValueId> used(NodeId id) const {
    return std::span(used_).subspan(first_[id], first_[id + 1] - first_[id]);
  }
  [[nodiscard]] std::int64_t bytes(ValueId storage) const { return bytes_[storage]; }
  [[nodiscard]] std::int64_t inputs() const { return inputs_; }
  [[nodiscard]] std::size_t nodes() const { return made_.size(); }
  [[nodiscard]] std::size_t values() const { return bytes_.size(); }

 private:
  std::vector<std::int64_t> made_, bytes_;
  std::vector<std::size_t> first_;  ///< for each node: start in used_
  std::vector<ValueId> used_;
  std::int64_t inputs_ = 0;
};

/// Bytes in use while a node runs, and after it has freed what it was the last to use.
struct MemoryLevel {
  std::int64_t during = 0, after = 0;
  bool operator==(const MemoryLevel&) const = default;
};

/// The level at each place of the order. Linear time.
[[nodiscard]] std::vector<MemoryLevel> memory_levels(const MemoryUse& use,
                                                     std::span<const NodeId> order);
/// The most bytes in use at once.
[[nodiscard]] std::int64_t peak_memory(const MemoryUse& use, std::span<const NodeId> order);

/// The memory peak before the first scheduling pass of a sequence, of which this graph is the
/// current state: the base of all their budgets.
std::int64_t base_peak(const MemoryUse& use, const Graph& graph, PassContext& context);

/// The limit in bytes: the base plus a share of it.
std::int64_t memory_limit(std::int64_t base, double budget);

/// An order of nodes and its levels, updated while nodes swap places with neighbouring blocks. A
/// move costs as much as the block is long. The levels are exact: always what memory_levels would
/// return.
class MemoryTimeline {
 public:
  MemoryTimeline(const MemoryUse& use, std::vector<NodeId> order);

  [[nodiscard]] const std::vector<NodeId>& order() const { return order_; }
  [[nodiscard]] const std::vector<MemoryLevel>& levels() const { return levels_; }
  /// The highest level of the places from first to last.
  [[nodiscard]] std::int64_t peak(std::size_t first, std::size_t last) const;
  [[nodiscard]] std::int64_t peak() const { return peak(0, order_.size() - 1); }

  /// The resulting peak of the block.
  struct Move {
    bool done = false;
    std::int64_t peak = 0;
  };
  /// Moves the node at `first` behind those up to `last`, with which it must share no result.
  /// Refuses if that raises the peak of them all, and above `limit`.
  Move move_back(std::size_t first, std::size_t last, std::int64_t limit);
  /// Moves the node at `last` in front of those from `first` on.
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
  std::vector<NodeId> last_user_;    ///< for each storage
  std::vector<std::int64_t> freed_;  ///< by each node
  std::vector<MemoryLevel> levels_;  ///< for each place
};

}  // namespace braid
