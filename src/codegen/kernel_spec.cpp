#include "codegen/kernel_spec.h"

#include <fmt/format.h>

#include <algorithm>

#include "braid/error.h"
#include "codegen/cuda/print_cuda.h"
#include "codegen/graph_target.h"
#include "codegen/passes/allocate_shared.h"
#include "codegen/passes/assign_layouts.h"
#include "codegen/passes/pipeline.h"
#include "codegen/templates/body.h"
#include "codegen/tile/remote.h"
#include "ir/op_registry.h"

namespace braid {
namespace {

std::string entry_name(const KernelSpec& spec) {
  std::string name = spec.template_name;
  if (name == "collective") name = analyze(*spec.body, name).collective->op_name();
  for (const Node& node : spec.body->nodes()) {
    if (name == node.op_name()) continue;
    if (name.size() > 48) break;
    name += fmt::format("_{}", node.op_name());
  }
  return name;
}

}  // namespace

tile::Program tile_program(const KernelSpec& spec, const Target& target, int ranks_per_device) {
  check_target(*spec.body, target);
  const BodyInfo info = analyze(*spec.body, spec.template_name);
  if (!info.refusal.empty()) throw_invalid(spec.template_name, info.refusal);
  tile::Program program;
  program.entry = entry_name(spec);
  program.num_warps = static_cast<int>(spec.config.at("num_warps"));
  if (spec.template_name == "pointwise") build_pointwise(spec, info, program);
  if (spec.template_name == "row") build_row(spec, info, program);
  if (spec.template_name == "collective") build_collective(spec, info, ranks_per_device, program);
  if (spec.template_name == "gemm") {
    build_gemm(spec, info, program);
    tile::pipeline(program, static_cast<int>(spec.config.at("num_stages")));
  }
  tile::assign_layouts(program);
  tile::allocate_shared(program);
  if (program.shared_bytes > target.max_shared_bytes()) {
    throw_invalid(spec.template_name,
                  fmt::format("{} bytes of shared memory, {} has {}", program.shared_bytes,
                              target.str(), target.max_shared_bytes()));
  }
  return program;
}

std::string template_for(const Graph& body) {
  std::string name = "pointwise";
  for (const Node& node : body.nodes()) {
    if (node.op->op_class == OpClass::kCollective) return "collective";
    if (node.op->op_class == OpClass::kMatmul) return "gemm";
    if (node.op->op_class == OpClass::kReduction || node.op->op_class == OpClass::kNorm)
      name = "row";
  }
  return name;
}

std::string cannot_fuse(const Graph& body, std::string_view template_name) {
  return analyze(body, template_name).refusal;
}

Config default_config(const KernelSpec& spec, const Target& /*target*/) {
  const BodyInfo info = analyze(*spec.body, spec.template_name);
  const SymbolTable& symbols = spec.body->symbols();
  if (!info.matmuls.empty()) {
    // Small M: narrow tiles, so that the weights stream through many blocks.
    const std::int64_t m = info.space[info.space.size() - 2].max(symbols);
    const std::int64_t block_m = std::clamp<std::int64_t>(round_up_to_power_of_two(m), 16, 64);
    const DType dtype = spec.body->type(info.matmuls[0]->inputs[0]).dtype;
    // 128 bytes of K, so that a row of a tile is one line.
    const std::int64_t block_k = 128 / static_cast<std::int64_t>(dtype_size(dtype));
    return {{"BLOCK_M", block_m},
            {"BLOCK_N", 64},
            {"BLOCK_K", block_k},
            {"num_stages", 3},
            {"num_warps", 4}};
  }
  if (info.rows == Rows::kNone || info.rows == Rows::kStrided) return {{"num_warps", 4}};
  // Eight elements per thread: a function of the extent alone, so that a reduction's order never
  // depends on what is fused.
  const std::int64_t width = numel(info.reduced_dims()).max(symbols);
  const std::int64_t threads = round_up_to_power_of_two(std::min(width, kMaxRow)) / 8;
  return {{"num_warps", std::clamp<std::int64_t>(threads / 32, 4, 32)}};
}

Requirements requirements(const KernelSpec& spec, const Target& target, int ranks_per_device) {
  const tile::Program program = tile_program(spec, target, ranks_per_device);
  Requirements needs;
  needs.grid = program.grid;
  needs.threads = program.num_warps * 32;
  needs.shared_bytes = program.shared_bytes;
  for (const tile::Param& param : program.params) {
    needs.params.push_back(param.what);
    if (param.what.kind == KernelParam::Kind::kPeers) needs.comm_group = param.what.group;
  }
  needs.remote = tile::remote_accesses(program);
  if (program.communicates) {
    needs.flag_words = program.grid.evaluate({}) + program.flag_slots * program.world;
    needs.scratch_bytes = program.scratch_bytes;
  }
  return needs;
}

KernelSource emit(const KernelSpec& spec, const Target& target) {
  // The text does not depend on the grid, so neither on how many ranks share a device.
  const tile::Program program = tile_program(spec, target, 1);
  return {program.entry, tile::print_cuda(program)};
}

}  // namespace braid
