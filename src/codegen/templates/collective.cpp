// One-shot all-reduce with everything that follows it: every rank reads the operand of every rank
// from the symmetric arena and sums in rank order in f32, so that all ranks hold the same bits. The
// grid is constant and the blocks loop over the pieces, so every block signals in every call
// (docs/architecture.md, Communication). Its flags are two slots for each block, one for each
// barrier.
//
//     for each piece:     where the kernel computes its operand: into this rank's arena. Block b of
//                         every rank reads what the blocks b wrote, so its own signal suffices.
//     signal, wait        every peer has entered this step, so its operand is complete
//     for each piece:     sum over ranks, then the rest of the body
//     signal, wait        only at the group's last step of a run: no remote read outlives it

#include "ir/collective.h"

#include <fmt/format.h>

#include <algorithm>

#include "codegen/templates/body.h"
#include "codegen/templates/template.h"
#include "ir/op_registry.h"

namespace braid {
namespace {

bool is_collective(const Node& node) { return node.op->op_class == OpClass::kCollective; }

/// What the collective's operand is computed from: each element from its own place, and for nothing
/// else, since what comes after the wait would compute it again.
std::string refuse_prologue(const Graph& body, const Node& collective) {
  const ValueId prologue = collective.inputs[0];
  const Collective form =
      collective_of(body, collective.op_name(), collective.attrs, body.type(prologue));
  if (form.gather_dim || form.scatter_dim) {
    return fmt::format("a block of '{}' reads what other blocks would compute",
                       collective.op_name());
  }
  const auto& outputs = body.outputs();
  if (std::find(outputs.begin(), outputs.end(), prologue) == outputs.end()) {
    return "the operand of a collective must be in memory";
  }
  std::vector<bool> before(body.values().size(), false);
  before[static_cast<std::size_t>(prologue)] = true;
  for (std::size_t n = body.nodes().size(); n-- > 0;) {
    const Node& node = body.nodes()[n];
    if (!before[static_cast<std::size_t>(node.outputs[0])]) continue;
    if (is_reduction(node) || node.op->op_class == OpClass::kMatmul) {
      return fmt::format("'{}' in front of a collective is a kernel of its own", node.op_name());
    }
    for (ValueId input : node.inputs) before[static_cast<std::size_t>(input)] = true;
  }
  for (const Node& node : body.nodes()) {
    if (before[static_cast<std::size_t>(node.outputs[0])] || &node == &collective) continue;
    for (ValueId input : node.inputs) {
      if (is_moved_input(body, input) || !before[static_cast<std::size_t>(input)]) continue;
      return fmt::format("{} would be computed again after the collective", body.type(input).str());
    }
  }
  return "";
}

std::string refuse(const Graph& body) {
  for (const Node& node : body.nodes()) {
    if (!is_collective(node)) continue;
    if (body.value(node.inputs[0]).producer >= 0) {
      if (std::string reason = refuse_prologue(body, node); !reason.empty()) return reason;
    }
    break;
  }
  const BodyInfo info = analyze(body);
  if (!info.matmuls.empty()) return "a matmul and a collective are separate kernels";
  if (info.rows == Rows::kStrided) {
    return "a reduction over other than the last dims and a collective are separate kernels";
  }
  return info.refusal;
}

Config default_config_of(const Graph& body, const Target&) {
  return piece_config(body, analyze(body));
}

tile::Program build(const KernelSpec& spec, const Target&, int ranks_per_device) {
  tile::Program program;
  tile::Builder b(program);
  const BodyInfo info = analyze(*spec.body);
  program.entry = info.collective->op_name();
  const std::string& group = *info.collective->attr<std::string>("group");
  b.communicate(group, static_cast<int>(spec.body->groups().at(group).size));
  const PieceWork work = piece_work(spec, info);
  const std::int64_t most = std::max<std::int64_t>(1, kMaxCollectiveBlocks / ranks_per_device);
  program.grid = std::clamp<std::int64_t>(work.count.max(spec.body->symbols()), 1, most);
  program.flag_slots = 2 * program.grid.evaluate({});
  const tile::Id closing =
      b.param({.kind = KernelParam::Kind::kClosing, .index = 0, .expr = 0, .group = group});
  const auto for_each_piece = [&](auto emit) {
    const tile::Id loop = b.begin_for(b.program_id(), b.scalar(work.count), b.num_programs(), {});
    emit(b, spec, info, work, b.induction(loop));
    b.end_for(loop, {});
  };
  if (info.prologue >= 0) for_each_piece(emit_prologue);
  const tile::Id opening_slot = b.program_id();
  b.signal(opening_slot);
  b.wait(opening_slot);
  for_each_piece(emit_piece);
  const tile::Id closing_slot = b.map(tile::Fn::kAdd, {b.num_programs(), b.program_id()});
  b.signal(closing_slot, tile::kNone, closing);
  b.wait(closing_slot, tile::kNone, closing);
  return program;
}

}  // namespace

extern const Template collective_template;
const Template collective_template = {
    .name = "collective",
    .settings = kPieceSettings,
    .matches =
        [](const Graph& body) {
          return std::any_of(body.nodes().begin(), body.nodes().end(), is_collective);
        },
    .refuse = refuse,
    .default_config = default_config_of,
    // Other numbers of warps add a row in another order.
    .candidates = [](const Graph& body, const Target& target) -> std::vector<Config> {
      return {default_config_of(body, target)};
    },
    .build = build,
};

}  // namespace braid
