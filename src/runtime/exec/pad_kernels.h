#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "braid/device.h"

namespace braid {

/// The kernel with which ranks of this process only wait for others. It is PTX of the library's
/// own, since NVRTC may be missing here; only the device compiles it.
///
/// It has one block. On each rank a use owns an epoch and a flag per member. As in programs'
/// kernels, flags are growing epochs, fences order the data, and a wait that expires is written to
/// the record and sets the abort words of all (codegen/protocol.h).
class PadKernel {
 public:
  /// For pads of that many ranks.
  explicit PadKernel(std::size_t members) : members_(members) {}

  /// Size of the words of one use, on each rank.
  [[nodiscard]] std::int64_t flag_bytes() const {
    return static_cast<std::int64_t>((members_ + 1) * sizeof(std::uint32_t));
  }
  /// Must be called before calls for `local`.
  void load(Device& device, std::span<const int> ranks);

  struct Range {
    std::uint32_t first = 0, end = 0;
  };
  struct Launch {
    std::span<const std::uint64_t> pads;  ///< pads of each member, as this rank sees them
    std::uint32_t rank = 0;               ///< this rank's index among them
    Range signaled = {};                  ///< members to signal first
    Range awaited = {};                   ///< members to wait for then
    std::int64_t flags = 0;               ///< offset of the words in each pad
    std::uint32_t step = 0;               ///< step number in the record
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
