#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "lowering/schedule/memory_timeline.h"

namespace braid {

/// Takes the nodes of an order one after the other, not always the next one, and keeps a way to the
/// end open: the nodes taken, and then the others as they stood, never need more than so many bytes
/// at once. So where the given order needs no more, every node may be taken in the end, whatever
/// was taken before. A node costs the logarithm of their number for each storage that it uses.
class MemoryGuard {
 public:
  /// `order` needs `limit` bytes or fewer.
  MemoryGuard(const MemoryUse& use, std::span<const NodeId> order, std::int64_t limit);

  /// Takes the node unless the limit forbids it. Who it needs has been taken.
  bool take(NodeId id);
  /// The first one that has not been taken; -1 where all have been.
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
  /// The last place of who uses a storage and has not been taken, before `end`; or order_.size().
  [[nodiscard]] std::size_t last_user(ValueId storage, std::size_t end) const;

  const MemoryUse& use_;
  std::vector<NodeId> order_;
  std::int64_t limit_;
  std::vector<std::size_t> place_;
  std::vector<bool> taken_;  ///< of each place
  std::size_t next_ = 0;
  std::int64_t level_;                      ///< after those taken
  std::vector<std::size_t> first_;          ///< of each storage, in users_
  std::vector<std::size_t> users_;          ///< places, in order
  std::vector<std::size_t> left_;           ///< of each storage, how many of its users count still
  std::size_t leaves_ = 1;                  ///< of a tree over the places
  std::vector<std::int64_t> most_, added_;  ///< of each of its nodes: of the subtree, to all of it
  std::vector<Change> changes_;
};

}  // namespace braid
