#include "runtime/exec/loaded_program.h"

#include <utility>

namespace braid {
namespace {

constexpr std::uint32_t kSharedBytesWithoutOptIn = 48 << 10;

}  // namespace

LoadedProgram::LoadedProgram(Device& device, std::span<const int> ranks, Program program,
                             ProgramCode code)
    : program_(std::move(program)), code_(std::move(code)) {
  for (const int rank : ranks) {
    const std::size_t first = modules_.size();
    for (const CompiledKernel& kernel : code_.compiled) {
      modules_.push_back(device.load(rank, kernel.image));
    }
    std::vector<Function*>& functions = functions_.emplace_back();
    for (std::size_t k = 0; k < program_.kernels.size(); ++k) {
      const std::size_t source = code_.code_of[k];
      Function& function = modules_[first + source]->function(code_.sources[source].entry);
      const auto shared = static_cast<std::uint32_t>(program_.kernels[k].needs.shared_bytes);
      if (shared > kSharedBytesWithoutOptIn) function.set_max_dynamic_shared(shared);
      functions.push_back(&function);
    }
  }
}

}  // namespace braid
