#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "braid/device.h"
#include "codegen/kernel_spec.h"

namespace braid {

class DiskCache;

/// A kernel by which ranks wait for each other and do nothing else (templates/barrier.cpp), on the
/// ranks that live here.
class PadKernel {
 public:
  /// For a group of so many ranks; `half`: as the template's setting.
  PadKernel(std::int64_t members, std::int64_t half, const Target& target, const DiskCache* cache,
            bool line_info);

  /// Of the flags of one use, which each rank has.
  [[nodiscard]] std::int64_t flag_bytes() const { return needs_.flag_words * 4; }
  /// The calls of `local` come after this.
  void load(Device& device, std::span<const int> ranks);

  struct Launch {
    std::span<const std::uint64_t> pads;  ///< of each member, as this rank sees them
    std::int32_t rank = 0;                ///< its index among them
    std::int64_t flags = 0;               ///< their offset in each
    std::int32_t step = 0;                ///< for the record
    std::uint64_t record = 0;
    std::uint64_t timeout_ns = 0;
  };
  void launch(std::size_t local, Stream& stream, const Launch& launch) const;

 private:
  Requirements needs_;
  LaunchConfig config_;
  KernelImage image_;
  std::vector<std::unique_ptr<Module>> modules_;  ///< by local rank
  std::vector<Function*> functions_;
};

}  // namespace braid
