// A collective with its epilogue. One-shot: every rank reads what it needs of the operand of every
// rank from the symmetric arena and sums in rank order in f32, so that all ranks hold the same
// bits. The grid is constant and the blocks loop over the pieces, so every block signals in every
// call (docs/architecture.md, Communication). It has a slot of flags per block and barrier.
//
//     for each piece:     if it computes its operand: into this rank's arena. Block b of
//                         every rank reads what the blocks b wrote, so its own signal suffices.
//     signal, wait        every peer has entered this step, so its operand is complete
//     for each piece:     sum over ranks, then the rest of the body
//     signal, wait        only at the group's last step of a run: no remote read outlives it
//
// Two-shot all-reduce: each piece has an owner. Only the owner reads it from all ranks, and it
// stores the sum over its own operand, which nobody else reads there. So the link carries each
// element twice, however many ranks there are, and the operand is overwritten. The sums have the
// same bits.
//
//     for each own piece: sum over ranks, into this rank's operand
//     signal, wait        all sums that blocks b have made are there
//     for each piece:     read from its owner, then the rest of the body
//
// The owner of block b's k-th piece is rank (b + k) mod world, so that even few pieces are spread
// over the ranks.
//
// Multimem all-reduce: the same two shots by instructions that access all ranks at once, so that
// the links reduce and multicast. One rank sums an element, in the hardware's order: all ranks get
// the same bits, but these may differ from the other algorithms'. No closing barrier is needed:
// nothing remote is accessed after the second barrier.
//
//     for each own piece: the sum of all ranks' operands, to the same place on every rank
//     signal, wait        all sums that blocks b have made are there
//     for each piece:     read here, then the rest of the body
//
// Packet all-reduce (packets.cpp): twice the bytes, and no barrier. The operand is not in the
// arena; the kernel may compute it in registers. Nobody reads a peer's memory, so no run has to end
// with a barrier either. The sums have the same bits.
//
//     for each piece:     the operand, as packets to every rank
//     for each piece:     sum over the ranks' packets, then the rest of the body

#include "ir/collective.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "codegen/kernel/kernel.h"
#include "codegen/kernel/phases.h"
#include "ir/op_registry.h"

namespace braid {

using tile::Fn;

namespace {

bool is_collective(const Node& node) { return node.op->op_class == OpClass::kCollective; }

/// Why the operand's computation cannot be the prologue; else empty. Each element must depend on
/// its own place only and have no other use, since work behind the wait would compute it again.
std::string refuse_prologue(const Graph& body, const Node& collective) {
  const ValueId prologue = collective.inputs[0];
  const Collective form = collective_of(body, collective, body.type(prologue));
  if (form.gather_dim || form.scatter_dim) {
    return fmt::format("a block of '{}' reads what other blocks would compute",
                       collective.op_name());
  }
  const auto& outputs = body.outputs();
  const bool in_memory = std::find(outputs.begin(), outputs.end(), prologue) != outputs.end();
  if (!in_memory && shares_operand(collective)) {
    return "the operand of a collective must be in memory";
  }
  const std::vector<bool> before = computed_from(body, prologue);
  for (const Node& node : body.nodes()) {
    if (!before[static_cast<std::size_t>(node.outputs[0])]) continue;
    if (is_reduction(node) || node.op->op_class == OpClass::kMatmul) {
      return fmt::format("'{}' in front of a collective is a kernel of its own", node.op_name());
    }
  }
  return refuse_recomputed(body, collective);
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
  if (info.packets) {
    const DType dtype = body.type(info.collective->inputs[0]).dtype;
    if (!fits_packet(dtype)) return fmt::format("a packet has no room for {}", dtype_name(dtype));
  }
  if (info.multimem) {
    const ValueId operand = info.collective->inputs[0];
    const Collective form = collective_of(body, *info.collective, body.type(operand));
    if (std::string reason = cannot_multimem(*form.reduce, body.type(operand).dtype);
        !reason.empty()) {
      return reason;
    }
  }
  if (!info.matmuls.empty()) return "a matmul and a collective are separate kernels";
  if (info.rows == Rows::kStrided) {
    return "a reduction over other than the last dims and a collective are separate kernels";
  }
  return info.refusal;
}

/// A collective has few blocks, so flat chunks are as large as leaves every block some (rows
/// determine their own threads), up to threads of 128 registers, which load a piece ahead
/// (passes/prefetch.cpp).
Config default_config_of(const Graph& body, const Target&) {
  const BodyInfo info = analyze(body);
  if (info.rows != Rows::kNone) return piece_config(body, info);
  KernelSpec spec{std::make_shared<Graph>(body), piece_config(body, info)};
  const auto chunks = [&] { return piece_work(spec, info).count.max(body.symbols()); };
  std::int64_t& warps = spec.config.at("num_warps");
  while (warps < 16 && chunks() >= 2 * kMaxCollectiveBlocks) warps *= 2;
  return spec.config;
}

/// Emits the pieces b, b + grid, ... of block b.
class Pieces {
 public:
  Pieces(tile::Builder& b, const KernelSpec& spec, const BodyInfo& info, int world)
      : b_(b), spec_(spec), info_(info), work_(piece_work(spec, info)), world_(world) {}

  [[nodiscard]] const PieceWork& work() const { return work_; }

  void prologue() { each(all(), emit_prologue); }
  void one_shot() { each(all(), emit_piece); }
  /// Emits the sums that this rank owns.
  void own_sums(tile::Id rank) {
    const tile::Id world = b_.integer(world_);
    const tile::Id block = b_.map(Fn::kRem, {b_.program_id(), world});
    const tile::Id turn =
        b_.map(Fn::kRem, {b_.map(Fn::kSub, {b_.map(Fn::kAdd, {rank, world}), block}), world});
    const tile::Id first =
        b_.map(Fn::kAdd, {b_.program_id(), b_.map(Fn::kMul, {turn, b_.num_programs()})});
    const tile::Id step = b_.map(Fn::kMul, {b_.num_programs(), world});
    each({first, b_.scalar(work_.count), step}, emit_sum);
  }
  void from_rank(tile::Id rank) {
    each(all(), [rank](auto& b, const auto& spec, const auto& info, const auto& work,
                       tile::Id piece) { emit_piece_of(b, spec, info, work, piece, rank); });
  }
  void from_owners() {
    each(all(),
         [this](auto& b, const auto& spec, const auto& info, const auto& work, tile::Id piece) {
           const tile::Id turn = b.map(Fn::kDiv, {piece, b.num_programs()});
           const tile::Id owner =
               b.map(Fn::kRem, {b.map(Fn::kAdd, {b.program_id(), turn}), b.integer(world_)});
           emit_piece_of(b, spec, info, work, piece, owner);
         });
  }

 private:
  template <class Emit>
  void each(const Order& order, const Emit& emit) {
    for_each_piece(b_, order, [&](tile::Id piece) { emit(b_, spec_, info_, work_, piece); });
  }
  Order all() { return grid_stride(b_, b_.scalar(work_.count)); }

  tile::Builder& b_;
  const KernelSpec& spec_;
  const BodyInfo& info_;
  PieceWork work_;
  int world_;
};

tile::Program build(const KernelSpec& spec, const Target&, int ranks_per_device) {
  tile::Program program;
  tile::Builder b(program);
  const BodyInfo info = analyze(*spec.body);
  program.entry = info.collective->op_name();
  const std::string& group = *info.collective->attr<std::string>("group");
  const auto world = static_cast<int>(spec.body->groups().at(group).size);
  b.communicate(group, world);
  Pieces pieces(b, spec, info, world);
  program.columns = pieces.work().together;
  const bool two_shot = algorithm_of(*info.collective) == kTwoShot;
  const std::int64_t most = std::max<std::int64_t>(1, kMaxCollectiveBlocks / ranks_per_device);
  program.grid = std::clamp<std::int64_t>(pieces.work().count.max(spec.body->symbols()), 1, most);
  if (info.packets) {
    program.scratch_bytes = 2 * world * pieces.work().slots.slot_bytes;
    pieces.prologue();
    pieces.one_shot();
    return program;
  }
  program.flag_slots = (two_shot ? 3 : 2) * program.grid.evaluate({});
  const tile::Id closing = info.multimem ? tile::kNone : is_closing(b, group);
  tile::Id slot = tile::kNone;
  const auto meet_next = [&](tile::Id predicate) {
    slot = slot == tile::kNone ? b.program_id() : b.map(Fn::kAdd, {b.num_programs(), slot});
    meet(b, slot, predicate);
  };
  if (info.prologue >= 0) pieces.prologue();
  meet_next(tile::kNone);
  if (info.multimem || two_shot) {
    const tile::Id rank = own_rank(b, group);
    pieces.own_sums(rank);
    meet_next(tile::kNone);
    info.multimem ? pieces.from_rank(rank) : pieces.from_owners();
  } else {
    pieces.one_shot();
  }
  if (!info.multimem) meet_next(closing);
  return program;
}

}  // namespace

extern const Template kCollectiveTemplate;
const Template kCollectiveTemplate = {
    .name = "collective",
    .settings = kPieceSettings,
    .matches =
        [](const Graph& body) {
          return std::any_of(body.nodes().begin(), body.nodes().end(), is_collective);
        },
    .refuse = refuse,
    .default_config = default_config_of,
    .candidates = [](const Graph& body, const Target& target) -> std::vector<Config> {
      std::vector<Config> all = piece_candidates(body, analyze(body));
      std::iter_swap(all.begin(),
                     std::find(all.begin(), all.end(), default_config_of(body, target)));
      return all;
    },
    .build = build,
};

}  // namespace braid
