#include <fmt/format.h>

#include <array>

#include "braid/error.h"
#include "codegen/graph_target.h"
#include "codegen/kernel/kernel.h"
#include "codegen/passes/lower.h"

// All templates, in the order in which a body asks them.
#define BRAID_TEMPLATES(entry)                                                  \
  entry(kBarrierTemplate) entry(kGatherGemmTemplate) entry(kGemmReduceTemplate) \
      entry(kCollectiveTemplate) entry(kGemmTemplate) entry(kElementwiseTemplate)

namespace braid {

#define BRAID_DECLARE(name) extern const Template name;
BRAID_TEMPLATES(BRAID_DECLARE)
#undef BRAID_DECLARE

std::span<const Template* const> templates() {
#define BRAID_ADDRESS(name) &name,
  static constexpr std::array kTemplates{BRAID_TEMPLATES(BRAID_ADDRESS)};
#undef BRAID_ADDRESS
  return kTemplates;
}

const Template& find_template(const Graph& body, std::span<const Template* const> among) {
  for (const Template* candidate : among) {
    if (candidate->matches(body)) return *candidate;
  }
  throw_internal(body.name(), "no template matches the body");
}

tile::Program build_program(const Template& maker, const KernelSpec& spec, const Target& target,
                            int ranks_per_device) {
  check_target(*spec.body, target);
  const std::string name(maker.name);
  if (const std::string reason = maker.refuse(*spec.body); !reason.empty()) {
    throw_invalid(name, reason);
  }
  tile::Program program = maker.build(spec, target, ranks_per_device);
  program.num_warps = static_cast<int>(spec.config.at("num_warps"));
  program.in_place = spec.config.contains(kInPlaceSetting);
  if (program.entry.empty()) program.entry = name;
  const std::string stem = program.entry;
  for (const Node& node : spec.body->nodes()) {
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
