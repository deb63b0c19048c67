#include "runtime/tune/trial.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <utility>

#include "braid/error.h"
#include "braid/executable.h"
#include "codegen/device_model.h"
#include "ir/collective.h"
#include "ir/op_registry.h"
#include "ir/random_inputs.h"
#include "lowering/passes.h"
#include "lowering/plan/cost.h"
#include "lowering/plan/kernel_estimate.h"
#include "runtime/bytes.h"
#include "runtime/compile/compile_program.h"
#include "runtime/compile/disk_cache.h"
#include "runtime/exec/executable_impl.h"

namespace braid {
namespace {

/// The algorithm of the kernel's collective.
Algorithm algorithm_of(const Graph& body) {
  for (const Node& node : body.nodes()) {
    if (node.op->op_class == OpClass::kCollective) return braid::algorithm_of(node);
  }
  return Algorithm::kNone;
}

/// Each packet is polled behind its own branch, so counting sees separate round trips; but a
/// thread's packets are in flight together, so only the one polled most often counts.
void poll_together(KernelCounts& counts) {
  std::uint64_t all = 0, most = 0;
  for (const LineCounts& line : counts.lines) {
    if (!line.instruction.starts_with("ld.relaxed.sys.global")) continue;
    all += line.counts.global_requests;
    most = std::max(most, line.counts.global_requests);
  }
  const double warps = static_cast<double>(counts.blocks) * ((counts.threads + 31) / 32);
  counts.chain.loads = std::max(0.0, counts.chain.loads - static_cast<double>(all - most) / warps);
}

/// The time of a program that launches only this kernel.
Trial count(const TrialRequest& request, Program program, ProgramCode code) {
  const DeviceModel& device = device_model(request.target);
  const Algorithm algorithm = algorithm_of(*program.kernels.front().spec.body);
  // Counts do not include the time of barriers.
  const double waits = algorithm == Algorithm::kNone ? 0 : barriers_ns(algorithm, device);
  WorldOptions options;
  options.device = DeviceKind::kCpu;
  options.cache_dir = request.cache_dir;
  options.count = true;
  options.count_sample = true;
  options.world = static_cast<int>(program.world);
  options.warning = [](std::string_view) {};  // the tuner has reported it already
  const World world = World::open(options);
  Executable executable = Executable::Impl::make(world, std::move(program), std::move(code));
  executable.prepare(request.bindings);
  // What is counted needs no values: fresh memory is zero, and its pages are not touched in vain.
  Executable::Impl::accept_unset(executable);
  // But zeros would say that no group, and no sequence, has a row.
  for (std::size_t i = 0; i < request.graph.inputs().size(); ++i) {
    const auto places = random_places(request.graph, i, request.bindings, /*seed=*/1);
    for (int rank = 0; places && rank < options.world; ++rank) {
      executable.set_input(rank, request.graph.inputs()[i].name, *places);
    }
  }
  executable.run();
  executable.synchronize();
  double ns = waits;
  std::string limiter;
  for (KernelCounts& counts : world.device().inspector()->counts()) {
    counts.registers = static_cast<std::uint32_t>(executable.kernels().front().registers);
    if (algorithm == Algorithm::kPackets) poll_together(counts);
    const KernelEstimate estimate = estimate_kernel(counts, device);
    ns += estimate.ns;
    limiter = waits > estimate.ns ? "barriers" : estimate.limiter;
  }
  return {ns, limiter};
}

}  // namespace

Trial attempt(const TrialRequest& request) {
  try {
    PassContext context;
    context.target = request.target;
    // Not lower(), which would merge the copies for peers into a kernel.
    Program program = build_program(request.graph, context);
    const DiskCache cache(request.cache_dir.empty() ? DiskCache::default_directory()
                                                    : std::filesystem::path(request.cache_dir));
    // A counting device reports lines.
    ProgramCode code = compile_program(program, {.cache = &cache, .line_info = request.count});
    for (const CompiledKernel& kernel : code.compiled) {
      const int spills = kernel.resources.spill_store_bytes + kernel.resources.spill_load_bytes;
      if (spills != 0) return {{}, fmt::format("spills {} bytes of registers", spills)};
    }
    if (!request.count) return {};
    return count(request, std::move(program), std::move(code));
  } catch (const Error& error) {
    return {{}, error.what()};
  }
}

std::string to_bytes(const TrialRequest& request) {
  ByteWriter out;
  out.string(to_json(request.graph));
  out.string(request.target.str());
  out.string(request.cache_dir);
  out.value<std::uint8_t>(request.count ? 1 : 0);
  out.value<std::uint64_t>(request.bindings.size());
  for (const auto& [name, value] : request.bindings) {
    out.string(name);
    out.value(value);
  }
  return out.take();
}

TrialRequest request_from(std::string_view bytes) {
  ByteReader in(bytes);
  TrialRequest request;
  request.graph = parse_graph(in.string());
  request.target = Target::parse(in.string());
  request.cache_dir = in.string();
  request.count = in.value<std::uint8_t>() != 0;
  for (auto left = in.value<std::uint64_t>(); left > 0 && !in.done(); --left) {
    std::string name(in.string());
    request.bindings.insert_or_assign(std::move(name), in.value<std::int64_t>());
  }
  if (!in.done()) throw_invalid("request", "found other bytes; expected one to_bytes() made");
  return request;
}

std::string to_bytes(const Trial& trial) {
  ByteWriter out;
  out.value<std::uint8_t>(trial.ns ? 1 : 0);
  out.value(trial.ns.value_or(0));
  out.string(trial.note);
  return out.take();
}

Trial trial_from(std::string_view bytes) {
  ByteReader in(bytes);
  Trial trial;
  const bool ran = in.value<std::uint8_t>() != 0;
  const double ns = in.value<double>();
  if (ran) trial.ns = ns;
  trial.note = in.string();
  if (!in.done()) throw_invalid("trial", "found other bytes; expected one to_bytes() made");
  return trial;
}

}  // namespace braid
