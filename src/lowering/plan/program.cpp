#include "lowering/plan/program.h"

#include <algorithm>
#include <numeric>

#include "ir/mutation.h"
#include "lowering/plan/kind_names.h"

namespace braid {

std::string Arena::name() const {
  return std::string(kArenaNames[static_cast<std::size_t>(kind)]) + group;
}

const std::string& comm_group(const Program& program, const Step& step) {
  static const std::string kNone;
  return step.kernel < 0 ? kNone : program.kernels[step.kernel].needs.comm_group;
}

bool meets(const Program& program, const Step& step) {
  return step.kernel >= 0 && program.kernels[step.kernel].needs.meets;
}

bool has_aligned_chunks(const TensorType& chunk, const SymbolTable& symbols) {
  std::int64_t divisor =
      std::gcd(static_cast<std::int64_t>(dtype_size(chunk.dtype)), kSliceAlignment);
  for (const Dim& dim : chunk.shape) {
    divisor = std::gcd(divisor * std::gcd(dim.divisor(symbols), kSliceAlignment), kSliceAlignment);
  }
  return divisor == kSliceAlignment;
}

std::vector<Access> accesses(const Program& program, const Step& step) {
  std::vector<Access> all;
  const auto add = [&](int id, bool write, bool remote, bool clobbers = false) {
    const std::optional<Slice>& slice = program.buffers[id].slice;
    all.push_back({slice ? slice->of : id, write, remote, clobbers,
                   slice ? static_cast<int>(slice->shift) : Access::kWhole});
  };
  if (step.kind == Step::Kind::kCopy) {
    add(step.source, /*write=*/false, step.source_peer.has_value());
    add(step.destination, /*write=*/true, step.destination_peer.has_value());
    return all;
  }
  for (const int id : step.inputs) add(id, /*write=*/false, /*remote=*/false);
  for (const int id : step.outputs) add(id, /*write=*/true, /*remote=*/false);
  if (step.kernel < 0) return all;
  const ProgramKernel& kernel = program.kernels[step.kernel];
  for (const RemoteAccess& access : kernel.needs.remote) {
    const std::vector<int>& operands = access.output ? step.outputs : step.inputs;
    add(operands[access.index], access.write, /*remote=*/true);
  }
  for (const Clobbered& operand : kernel.needs.clobbered) {
    const std::vector<int>& operands = operand.output ? step.outputs : step.inputs;
    add(operands[operand.index], /*write=*/true, /*remote=*/false,
        /*clobbers=*/true);
  }
  return all;
}

bool only_updates(const Program& program, const Step& step, int buffer) {
  if (step.kernel < 0 || std::ranges::count(step.inputs, buffer) != 1) return false;
  return std::ranges::any_of(
      updates_of(*program.kernels[step.kernel].spec.body), [&](const Update& update) {
        return step.inputs[update.operand] == buffer && step.outputs[update.result] == buffer;
      });
}

std::string_view name_of(BufferKind kind) { return kBufferNames[static_cast<std::size_t>(kind)]; }

int stream_count(const Program& program) {
  int count = 1;
  for (const Step& step : program.steps) count = std::max(count, step.stream + 1);
  return count;
}

int event_count(const Program& program) {
  int count = 0;
  for (const Step& step : program.steps) count = std::max(count, step.event + 1);
  return count;
}

}  // namespace braid
