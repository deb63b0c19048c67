#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lowering/schedule/memory_timeline.h"

namespace braid {

/// Takes the nodes of an order one by one, not always the next one, and keeps a way to the end
/// open: the nodes taken, followed by the others in the given order, never need more than `limit`
/// bytes at once. So if the given order fits, every node can be taken eventually, whatever was
/// taken before. A node costs O(log n) for each storage that it uses.
class MemoryGuard {
 public:
  /// `order` must need at most `limit` bytes.
  MemoryGuard(const MemoryUse& use, std::span<const NodeId> order, std::int64_t limit);

  /// Takes the node unless the limit forbids it. Its predecessors must have been taken.
  bool take(NodeId id);
  /// The first node of the order that has not been taken, or -1.
  [[nodiscard]] NodeId next() const;
  [[nodiscard]] std::size_t place(NodeId id) const { return place_[id]; }

 private:
  struct Change {
    std::size_t first, end;
    std::int64_t bytes;
  };
  void add(std::size_t first, std::size_t end, std::int64_t bytes);
  [[nodiscard]] std::int64_t peak(std::size_t first, std::size_t end) const;
  void take_place(std::size_t at);
  /// The last place before `end` of an untaken user of a storage; order_.size() if there is none.
  [[nodiscard]] std::size_t last_user(ValueId storage, std::size_t end) const;

  const MemoryUse& use_;
  std::vector<NodeId> order_;
  std::int64_t limit_;
  std::vector<std::size_t> place_;
  std::vector<bool> taken_;  ///< for each place
  std::size_t next_ = 0;
  std::int64_t level_;                      ///< bytes in use after those taken
  std::vector<std::size_t> first_;          ///< for each storage: start in users_
  std::vector<std::size_t> users_;          ///< places, in order
  std::vector<std::size_t> left_;           ///< for each storage: users that still count
  std::size_t leaves_ = 1;                  ///< leaves of a tree over the places
  std::vector<std::int64_t> most_, added_;  ///< for each tree node: maximum of its subtree, and
                                            ///< what is added to all of it
  std::vector<Change> changes_;
};

}  // namespace braid
