#include "runtime/exec/pad_kernels.h"

#include "braid/error.h"
#include "codegen/barrier.h"
#include "runtime/compile/compiler.h"

namespace braid {
namespace {

const void* argument(const PadKernel::Launch& launch, KernelParam::Kind kind) {
  switch (kind) {
    case KernelParam::Kind::kPeers:
      return launch.pads.data();
    case KernelParam::Kind::kRank:
      return &launch.rank;
    case KernelParam::Kind::kFlags:
      return &launch.flags;
    case KernelParam::Kind::kStep:
      return &launch.step;
    case KernelParam::Kind::kRecord:
      return &launch.record;
    case KernelParam::Kind::kTimeout:
      return &launch.timeout_ns;
    default:
      throw_internal("barrier", "its kernel has a parameter that nobody gives");
  }
}

}  // namespace

PadKernel::PadKernel(std::int64_t members, std::int64_t half, const Target& target,
                     const DiskCache* cache, bool line_info) {
  auto body = std::make_shared<Graph>();
  body->add_group("members", {members, true, {}});
  KernelSpec spec{body, default_config(*body, target)};
  spec.config[kHalf] = half;
  needs_ = requirements(spec, target);
  config_ = {.grid = {static_cast<std::uint32_t>(needs_.grid.evaluate({}))},
             .block = {static_cast<std::uint32_t>(needs_.threads)},
             .shared_bytes = static_cast<std::uint32_t>(needs_.shared_bytes),
             .attributes = needs_.attributes};
  image_ = compile_kernel(emit(spec, target), target, cache, line_info).image;
}

void PadKernel::load(Device& device, std::span<const int> ranks) {
  for (const int rank : ranks) {
    modules_.push_back(device.load(rank, image_));
    functions_.push_back(&modules_.back()->function(image_.entry));
  }
}

void PadKernel::launch(std::size_t local, Stream& stream, const Launch& launch) const {
  std::vector<const void*> arguments;
  arguments.reserve(needs_.params.size());
  for (const KernelParam& param : needs_.params) arguments.push_back(argument(launch, param.kind));
  stream.launch(*functions_[local], config_, arguments);
}

}  // namespace braid
