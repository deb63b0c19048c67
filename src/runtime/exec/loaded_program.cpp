#include "runtime/exec/loaded_program.h"

#include <utility>

#include "lowering/plan/variants.h"

namespace braid {
namespace {

constexpr std::uint32_t kSharedBytesWithoutOptIn = 48 << 10;

}  // namespace

LoadedProgram::LoadedProgram(Device& device, std::vector<int> ranks, Program program,
                             ProgramCode code)
    : device_(device),
      ranks_(std::move(ranks)),
      program_(std::move(program)),
      code_(program_, std::move(code)) {
  make_room();
  for (std::size_t v = 0; v < kernels_.size(); ++v) load(v);
}

LoadedProgram::LoadedProgram(Device& device, std::vector<int> ranks, Program program,
                             ProgramCode code, StagedCode::Tools tools)
    : device_(device),
      ranks_(std::move(ranks)),
      program_(std::move(program)),
      code_(program_, std::move(code), std::move(tools)) {
  make_room();
}

void LoadedProgram::make_room() {
  for (const Variant& variant : variants_of(program_)) kernels_.push_back(variant.kernels);
  loaded_.resize(kernels_.size());
  modules_.resize(ranks_.size());
  functions_.resize(ranks_.size(), std::vector<Function*>(program_.kernels.size()));
}

void LoadedProgram::load(std::size_t variant) const {
  const ProgramCode& code = code_.wait(variant);
  const std::lock_guard lock(mutex_);
  if (loaded_[variant]) return;
  for (std::size_t local = 0; local < ranks_.size(); ++local) {
    modules_[local].resize(code.sources.size());
    for (int kernel = kernels_[variant].first; kernel < kernels_[variant].end; ++kernel) {
      const auto k = static_cast<std::size_t>(kernel);
      const std::size_t source = code.code_of[k];
      std::unique_ptr<Module>& module = modules_[local][source];
      if (module == nullptr) module = device_.load(ranks_[local], code.compiled[source].image);
      Function& function = module->function(code.sources[source].entry);
      const auto shared = static_cast<std::uint32_t>(program_.kernels[k].needs.shared_bytes);
      if (shared > kSharedBytesWithoutOptIn) function.set_max_dynamic_shared(shared);
      functions_[local][k] = &function;
    }
  }
  loaded_[variant] = true;
}

std::vector<Function*> LoadedProgram::functions(std::size_t local) const {
  const std::lock_guard lock(mutex_);
  return functions_[local];
}

}  // namespace braid
