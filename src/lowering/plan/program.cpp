#include "lowering/plan/program.h"

#include <algorithm>

namespace braid {

std::string Arena::name() const {
  switch (kind) {
    case ArenaKind::kParameters:
      return "parameters";
    case ArenaKind::kWorkspace:
      return "workspace";
    case ArenaKind::kSymmetric:
      return "symmetric:" + group;
    case ArenaKind::kState:
      return "state";
    case ArenaKind::kIo:
      return "io";
  }
  return "";
}

const std::string& comm_group(const Program& program, const Step& step) {
  static const std::string kNone;
  return step.kernel < 0 ? kNone
                         : program.kernels[static_cast<std::size_t>(step.kernel)].needs.comm_group;
}

std::vector<Access> accesses(const Program& program, const Step& step) {
  std::vector<Access> all;
  if (step.kind == Step::Kind::kCopy) {
    return {{step.source, /*write=*/false, step.source_peer.has_value()},
            {step.destination, /*write=*/true, step.destination_peer.has_value()}};
  }
  for (const int id : step.inputs) all.push_back({id, /*write=*/false, /*remote=*/false});
  for (const int id : step.outputs) all.push_back({id, /*write=*/true, /*remote=*/false});
  if (step.kernel < 0) return all;
  const ProgramKernel& kernel = program.kernels[static_cast<std::size_t>(step.kernel)];
  for (const RemoteAccess& access : kernel.needs.remote) {
    const std::vector<int>& operands = access.output ? step.outputs : step.inputs;
    all.push_back(
        {operands[static_cast<std::size_t>(access.index)], access.write, /*remote=*/true});
  }
  for (const Clobbered& operand : kernel.needs.clobbered) {
    const std::vector<int>& operands = operand.output ? step.outputs : step.inputs;
    all.push_back({operands[static_cast<std::size_t>(operand.index)], /*write=*/true,
                   /*remote=*/false, /*clobbers=*/true});
  }
  return all;
}

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
