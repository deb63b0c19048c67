#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "braid/error.h"
#include "codegen/cuda/print_cuda.h"
#include "codegen/kernel/kernel.h"
#include "codegen/kernel/spec.h"
#include "codegen/tile/in_place.h"
#include "codegen/tile/remote.h"

namespace braid {
namespace {

struct ParamName {
  KernelParam::Kind kind;
  std::string_view name;
};
constexpr ParamName kParamNames[] = {
    {KernelParam::Kind::kInput, "input"},
    {KernelParam::Kind::kOutput, "output"},
    {KernelParam::Kind::kScalar, "scalar"},
    {KernelParam::Kind::kPeers, "peers"},
    {KernelParam::Kind::kMulticast, "multicast"},
    {KernelParam::Kind::kOffset, "offset"},
    {KernelParam::Kind::kResultOffset, "result_offset"},
    {KernelParam::Kind::kRank, "rank"},
    {KernelParam::Kind::kFlags, "flags"},
    {KernelParam::Kind::kScratch, "scratch"},
    {KernelParam::Kind::kStep, "step"},
    {KernelParam::Kind::kRecord, "record"},
    {KernelParam::Kind::kClosing, "closing"},
    {KernelParam::Kind::kTimeout, "timeout"},
    {KernelParam::Kind::kMarks, "marks"},
    {KernelParam::Kind::kBytes, "bytes"},
};

}  // namespace

std::string_view param_name(KernelParam::Kind kind) {
  const auto* it = std::ranges::find(kParamNames, kind, &ParamName::kind);
  if (it == std::end(kParamNames)) throw_internal("kernel", "a kind of parameter without a name");
  return it->name;
}

std::optional<KernelParam::Kind> param_named(std::string_view name) {
  const auto* it = std::ranges::find(kParamNames, name, &ParamName::name);
  return it == std::end(kParamNames) ? std::nullopt : std::optional(it->kind);
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

std::string_view template_name(const Graph& body) { return find_kernel(body).name; }

std::string cannot_fuse(const Graph& body) { return refuse(find_kernel(body), analyze(body)); }

std::vector<Setting> settings(const Graph& body) { return settings(find_kernel(body)); }

Config default_config(const Graph& body, const Target& target) {
  return default_config(find_kernel(body), analyze(body), target);
}

std::vector<Config> candidates(const Graph& body, const Target& target) {
  return candidates(find_kernel(body), analyze(body), target);
}

tile::Program tile_program(const KernelSpec& spec, const Target& target, int ranks_per_device) {
  return build_program(find_kernel(*spec.body), spec, target, ranks_per_device);
}

Requirements requirements(const KernelSpec& spec, const Target& target, int ranks_per_device) {
  const Kernel& kernel = find_kernel(*spec.body);
  const tile::Program program = build_program(kernel, spec, target, ranks_per_device);
  Requirements needs;
  needs.template_name = kernel.name;
  needs.grid = program.grid;
  needs.threads = tile::block_threads(program);
  needs.shared_bytes = program.shared_bytes;
  needs.attributes = program.attributes;
  for (const tile::Param& param : program.params) {
    needs.params.push_back(param.what);
    if (param.what.kind == KernelParam::Kind::kPeers) needs.comm_group = param.what.group;
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
  return {program.entry, tile::print_cuda(program)};
}

}  // namespace braid
