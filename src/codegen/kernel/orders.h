#pragma once

#include <cstdint>
#include <string_view>

namespace braid {

// How pieces are dealt to blocks, and when blocks may go on, as data. What each means in
// instructions stands in phases.cpp.

/// In what order a block takes its pieces, of those that are dealt to it.
enum class Order : std::uint8_t {
  kStride,  ///< b, b + blocks, ...; where there is a block for each, its one
  /// The same, dealt to their owners: the k-th piece of block b is that of rank (b + k) mod world,
  /// so that few pieces, too, are spread over the ranks.
  kOfOwners,
  kOwned,  ///< of these, those that this rank owns
  /// Rank by rank, as many of each: beginning with this one's own, or with the next one's, so that
  /// its own are last.
  kOwnFirst,
  kOwnLast,
  kListed,  ///< as kStride, of those in a list on the device (Phase::list)
};

/// What comes before a phase.
enum class Meet : std::uint8_t {
  kNothing,
  kAlike,   ///< blocks b of all ranks meet: what these have done before is there
  kAll,     ///< all blocks of all ranks do
  kHere,    ///< all blocks of this rank do, in a kernel of no group
  kPieces,  ///< nothing; each piece waits for one of an earlier phase of this rank
};

/// Who does a phase.
struct Role {
  enum class Who : std::uint8_t {
    kAll,
    kOne,     ///< the grid is one block
    kSome,    ///< the first blocks, as many as a setting says; of few, a quarter
    kOthers,  ///< those that are left
  };
  Who who = Who::kAll;
  std::string_view setting = {};
};

}  // namespace braid
