#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <limits>

#include "braid/error.h"
#include "codegen/cuda/print_cuda.h"
#include "codegen/device_model.h"
#include "codegen/graph_target.h"
#include "codegen/kernel/joined.h"
#include "codegen/kernel/kernel.h"
#include "codegen/kernel/rough_time.h"
#include "codegen/kernel/spec.h"
#include "codegen/passes/lower.h"
#include "codegen/tile/in_place.h"
#include "codegen/tile/remote.h"
#include "codegen/units.h"
#include "codegen/work/rows.h"

namespace braid {
namespace {

/// In the order of the enumerators.
constexpr std::string_view kParamNames[] = {
    "input", "output", "scalar",  "peers",     "multicast", "offset",  "result_offset",
    "rank",  "flags",  "scratch", "step",      "record",    "closing", "timeout",
    "marks", "bytes",  "counter", "input_map", "output_map"};

static_assert(std::size(kParamNames) ==
              static_cast<std::size_t>(KernelParam::Kind::kOutputMap) + 1);

/// Why it has no kernel by a ring in this configuration, where that asks for one.
std::string refuse_ring(const Kernel& kernel, const BodyFacts& facts, const Config& config,
                        const Target& target) {
  if (!has_ring(config)) return "";
  for (const Phase& phase : kernel.phases) {
    if (const RingWork* const by_ring = phase.work->by_ring) {
      return by_ring->refuse(facts, config, target);
    }
  }
  return "it has no form with a ring";
}

/// The pieces that have a block each in a program of one kernel.
std::int64_t room_of(const Stage& stage, const Target& target, int ranks_per_device) {
  return stage.kernel.room == nullptr
             ? std::numeric_limits<std::int64_t>::max()
             : stage.kernel.room(stage.facts, stage.config, target, ranks_per_device);
}

/// The blocks of joined kernels are as many as are sure to be resident at once.
void bound_grid(tile::Program& program, const Target& target, int ranks_per_device) {
  const DeviceModel& device = device_model(target);
  const std::int64_t blocks =
      device.sms * sure_blocks(device, tile::block_threads(program), program.shared_bytes);
  program.grid =
      std::min(program.grid.evaluate({}), std::max<std::int64_t>(1, blocks / ranks_per_device));
}

/// The kernel's name, or that of a collective alone, and its ops.
std::string entry_of(const Stage& stage) {
  const Graph& body = stage.facts.body;
  const bool is_collective =
      stage.facts.collective != nullptr && std::ranges::none_of(body.nodes(), is_matmul);
  const std::string stem(is_collective ? stage.facts.collective->op_name() : stage.kernel.name);
  std::string entry = stem;
  for (const Node& node : body.nodes()) {
    if (node.op_name() == stem) continue;
    if (entry.size() > 48) break;
    entry += fmt::format("_{}", node.op_name());
  }
  return entry;
}

std::string refuse(const Kernel& kernel, const BodyFacts& facts) {
  for (const Phase& phase : kernel.phases) {
    if (phase.work->refuse == nullptr) continue;
    if (std::string reason = phase.work->refuse(facts); !reason.empty()) return reason;
  }
  return "";
}

std::vector<Config> candidates(const Kernel& kernel, const BodyFacts& facts, const Target& target) {
  std::vector<Config> all(1);
  for (const Phase& phase : kernel.phases) {
    if (phase.work->configs == nullptr) continue;
    // What several works set is the first one's: a kernel's warps, too.
    if (all.front().contains("num_warps")) break;
    std::vector<Config> own = phase.work->configs(facts, target);
    for (Config& config : own) config.insert(all.front().begin(), all.front().end());
    all = std::move(own);
  }
  return all;
}

}  // namespace

std::string_view param_name(KernelParam::Kind kind) {
  return kParamNames[static_cast<std::size_t>(kind)];
}

std::optional<KernelParam::Kind> param_named(std::string_view name) {
  const auto* it = std::ranges::find(kParamNames, name);
  if (it == std::end(kParamNames)) return std::nullopt;
  return static_cast<KernelParam::Kind>(it - std::begin(kParamNames));
}

void check_param(const std::string& place, const KernelParam& param) {
  if (param.kind != KernelParam::Kind::kBytes) return;
  const int size = param.size;
  const int alignment = param.alignment;
  const bool aligned =
      alignment >= 1 && alignment <= kMaxParamAlignment && (alignment & (alignment - 1)) == 0;
  if (aligned && size >= 1 && size <= kMaxParamBytes && size % alignment == 0) return;
  throw_invalid(place, fmt::format("found {} bytes by value, aligned to {}; expected 1 to {}, a "
                                   "multiple of the alignment, which is a power of two up to {}",
                                   size, alignment, kMaxParamBytes, kMaxParamAlignment));
}

bool allows_in_place(const KernelSpec& spec, const Requirements& needs) {
  return !needs.comm_group.empty() || spec.config.contains(kInPlaceSetting);
}

tile::Program build_program(std::span<const Stage> stages, const KernelSpec& spec,
                            const Target& target, int ranks_per_device) {
  const bool joined = stages.size() > 1;
  const std::int64_t any = std::numeric_limits<std::int64_t>::max();
  tile::Program program =
      build_phases(stages, target, joined ? any : room_of(stages[0], target, ranks_per_device));
  program.num_warps = static_cast<int>(spec.config.at("num_warps"));
  program.in_place = spec.config.contains(kInPlaceSetting);
  std::int64_t num_stages = 1;
  for (const Stage& stage : stages) {
    program.entry += program.entry.empty() ? entry_of(stage) : "_then_" + entry_of(stage);
    const auto own = stage.config.find("num_stages");
    if (own != stage.config.end()) num_stages = own->second;
  }
  tile::lower(program, target, static_cast<int>(num_stages));
  if (program.shared_bytes > target.max_shared_bytes()) {
    throw_invalid(std::string(template_name(*spec.body)),
                  fmt::format("{} bytes of shared memory, {} has {}", program.shared_bytes,
                              target.str(), target.max_shared_bytes()));
  }
  if (joined) bound_grid(program, target, ranks_per_device);
  return program;
}

tile::Program tile_program(const KernelSpec& spec, const Target& target, int ranks_per_device) {
  check_target(*spec.body, target);
  const auto refused = [&](const std::string& reason) {
    if (!reason.empty()) throw_invalid(std::string(template_name(*spec.body)), reason);
  };
  refused(cannot_fuse(*spec.body));
  const std::vector<Stage> stages = stages_of(spec);
  for (const Stage& stage : stages) {
    const std::string reason = refuse_ring(stage.kernel, stage.facts, stage.config, target);
    if (!reason.empty()) refused(fmt::format("{} 1: {}", kRingSetting, reason));
  }
  return build_program(stages, spec, target, ranks_per_device);
}

std::string_view template_name(const Graph& body) {
  return is_joined(body) ? "joined" : find_kernel(body).name;
}

std::string cannot_fuse(const Graph& body) {
  return is_joined(body) ? refuse_joined(body) : refuse(find_kernel(body), analyze(body));
}

std::vector<Setting> settings(const Graph& body) {
  if (is_joined(body)) return {kWarpsSetting};
  std::vector<Setting> all;
  for (const Phase& phase : find_kernel(body).phases) {
    for (const Setting& setting : phase.work->settings) {
      if (std::ranges::find(all, setting.name, &Setting::name) == all.end()) all.push_back(setting);
    }
  }
  return all;
}

Config default_config(const Graph& body, const Target& target) {
  return candidates(body, target).front();
}

std::vector<Config> candidates(const Graph& body, const Target& target, bool resident) {
  if (is_joined(body)) return {joined_config(body)};
  BodyFacts facts = analyze(body);
  facts.resident = resident;
  return candidates(find_kernel(body), facts, target);
}

double rough_ns(const KernelSpec& spec, const Bindings& bindings, const Target& target,
                bool resident) {
  for (const Phase& phase : find_kernel(*spec.body).phases) {
    const Work& work = *phase.work;
    const auto time = work.rough_ns == nullptr && resident ? work.resident_ns : work.rough_ns;
    if (time == nullptr) continue;
    BodyFacts facts = analyze(*spec.body);
    facts.resident = resident;
    return time(facts, spec.config, bindings, target);
  }
  return 0;
}

Requirements requirements(const KernelSpec& spec, const Target& target, int ranks_per_device) {
  const tile::Program program = tile_program(spec, target, ranks_per_device);
  Requirements needs;
  needs.template_name = template_name(*spec.body);
  needs.grid = program.grid;
  needs.threads = tile::block_threads(program);
  needs.shared_bytes = program.shared_bytes;
  needs.attributes = program.attributes;
  for (const tile::Param& param : program.params) {
    needs.params.push_back(param.what);
    if (param.what.kind == KernelParam::Kind::kPeers) needs.comm_group = param.what.group;
    if (param.what.kind == KernelParam::Kind::kCounter) needs.flag_words = 1;
  }
  needs.remote = tile::remote_accesses(program);
  needs.meets = tile::meets(program);
  needs.clobbered = tile::clobbered_operands(program);
  needs.in_place = tile::in_place_operands(program);
  if (program.communicates) {
    needs.flag_words = program.grid.evaluate({}) + program.flag_slots * program.world;
    needs.scratch_bytes = program.scratch_bytes;
  }
  return needs;
}

KernelSource emit(const KernelSpec& spec, const Target& target) {
  // The text does not depend on the grid, so ranks_per_device does not matter.
  const tile::Program program = tile_program(spec, target, 1);
  constexpr std::size_t kMostParams =
      4095;  // limit in words of 8 bytes for a launch of CUDA 12.1 or newer
  if (program.params.size() > kMostParams) {
    throw_invalid(program.entry,
                  fmt::format("has {} parameters; expected at most {}: fewer operands",
                              program.params.size(), kMostParams));
  }
  return {program.entry, tile::print_cuda(program), tile::units_of(program)};
}

}  // namespace braid
