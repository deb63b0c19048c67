#include "codegen/kernel/kernel.h"

#include <fmt/format.h>

#include <algorithm>

#include "braid/error.h"
#include "codegen/graph_target.h"
#include "codegen/kernel/rough_time.h"
#include "codegen/passes/lower.h"

namespace braid {

std::string refuse(const Kernel& kernel, const BodyFacts& facts) {
  for (const Phase& phase : kernel.phases) {
    if (phase.work->refuse == nullptr) continue;
    if (std::string reason = phase.work->refuse(facts); !reason.empty()) return reason;
  }
  return "";
}

std::vector<Setting> settings(const Kernel& kernel) {
  std::vector<Setting> all;
  for (const Phase& phase : kernel.phases) {
    for (const Setting& setting : phase.work->settings) {
      if (std::ranges::find(all, setting.name, &Setting::name) == all.end()) all.push_back(setting);
    }
  }
  return all;
}

/// What several works set is the first one's.
Config default_config(const Kernel& kernel, const BodyFacts& facts, const Target& target) {
  Config config;
  for (const Phase& phase : kernel.phases) {
    const Tuning& tuning = phase.work->tuning;
    if (tuning.default_config != nullptr) config.merge(tuning.default_config(facts, target));
  }
  return config;
}

std::vector<Config> candidates(const Kernel& kernel, const BodyFacts& facts, const Target& target) {
  const Config base = default_config(kernel, facts, target);
  for (const Phase& phase : kernel.phases) {
    const Tuning& tuning = phase.work->tuning;
    if (tuning.candidates != nullptr) return tuning.candidates(facts, target, base);
  }
  return {base};
}

double rough_ns(const KernelSpec& spec, const Bindings& bindings, const Target& target) {
  for (const Phase& phase : find_kernel(*spec.body).phases) {
    if (phase.work->tuning.rough_ns == nullptr) continue;
    return phase.work->tuning.rough_ns(analyze(*spec.body), spec.config, bindings, target);
  }
  return 0;
}

tile::Program build_program(const Kernel& kernel, const KernelSpec& spec, const Target& target,
                            int ranks_per_device) {
  const Graph& body = *spec.body;
  check_target(body, target);
  const std::string name(kernel.name);
  const BodyFacts facts = analyze(body);
  if (const std::string reason = refuse(kernel, facts); !reason.empty()) {
    throw_invalid(name, reason);
  }
  tile::Program program = build_phases(kernel, facts, spec.config, target, ranks_per_device);
  program.num_warps = static_cast<int>(spec.config.at("num_warps"));
  program.in_place = spec.config.contains(kInPlaceSetting);
  const std::string stem(kernel.named_by_collective ? facts.collective->op_name() : kernel.name);
  program.entry = stem;
  for (const Node& node : body.nodes()) {
    if (node.op_name() == stem) continue;
    if (program.entry.size() > 48) break;
    program.entry += fmt::format("_{}", node.op_name());
  }
  const auto stages = spec.config.find("num_stages");
  tile::lower(program, stages == spec.config.end() ? 1 : static_cast<int>(stages->second));
  if (program.shared_bytes > target.max_shared_bytes()) {
    throw_invalid(name, fmt::format("{} bytes of shared memory, {} has {}", program.shared_bytes,
                                    target.str(), target.max_shared_bytes()));
  }
  return program;
}

}  // namespace braid
