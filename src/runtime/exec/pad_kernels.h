#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "braid/device.h"

namespace braid {

/// The kernel by which ranks wait for each other and do nothing else, on the ranks that live here.
/// It is PTX of the library's own and is compiled by nobody but the device.
///
/// One block. The words of one use are, on each rank, an epoch and then a flag of each member; as
/// in the kernels of programs, flags are epochs that only grow, fences carry the data, and who
/// waits for too long says so in its record and sets the abort words of all (codegen/protocol.h).
class PadKernel {
 public:
  /// For pads of so many ranks.
  explicit PadKernel(std::size_t members) : members_(members) {}

  /// Of the words of one use, which each rank has.
  [[nodiscard]] std::int64_t flag_bytes() const {
    return static_cast<std::int64_t>((members_ + 1) * sizeof(std::uint32_t));
  }
  /// The calls of `local` come after this.
  void load(Device& device, std::span<const int> ranks);

  /// Some of the members.
  struct Range {
    std::uint32_t first = 0, end = 0;
  };
  struct Launch {
    std::span<const std::uint64_t> pads;  ///< of each member, as this rank sees them
    std::uint32_t rank = 0;               ///< its index among them
    Range signaled = {};                  ///< whom it signals first,
    Range awaited = {};                   ///< and for whom it waits then
    std::int64_t flags = 0;               ///< the offset of the words in each
    std::uint32_t step = 0;               ///< for the record
    std::uint64_t record = 0;
    std::uint64_t timeout_ns = 0;
  };
  void launch(std::size_t local, Stream& stream, const Launch& launch) const;

 private:
  std::size_t members_;
  std::vector<std::unique_ptr<Module>> modules_;  ///< by local rank
  std::vector<Function*> functions_;
};

}  // namespace braid
