// An all-gather and the matmuls that read it as their left operand, pipelined within one kernel
// (PyTorch's fused_all_gather_matmul; "inter-SM overlap" of ParallelKittens, 2025). The first
// blocks only copy. Rank by rank, beginning with the next one, they copy panels of BLOCK_M rows
// into the gathered operand, an output of the kernel, and raise a local flag for each panel. The
// other blocks process tiles in the order in which their rows arrive: first the tiles of this
// rank's own rows, read in place, then others once the panel's flag is set.
//
//     a block that copies:      signal, wait      every peer has entered this step
//       for each of its panels: copy, signal the panel to this rank
//                               signal, wait      only at the group's last step of a run
//     a block that multiplies:
//       for each of its tiles:  wait for the panel, unless it is this rank's own; loop over K, rest
//
// Copying blocks have the lowest indices, so that they are resident before blocks that wait for
// them. The grid is constant, at most one block for each multiprocessor (docs/architecture.md,
// Communication). Flags: a slot per copying block and barrier, then one per panel. All of them are
// raised in each run, whatever the symbols. K is summed in the same order as in the plain kernel.

#include <algorithm>
#include <array>

#include "codegen/kernel/kernel.h"
#include "codegen/kernel/phases.h"
#include "codegen/work/gemm_tile.h"
#include "ir/collective.h"
#include "ir/numel.h"
#include "ir/op_registry.h"

namespace braid {

using protocol::Mark;
using tile::Fn;
using tile::Id;
using tile::kNone;

namespace {

const std::string kCopyBlocks(kCopyBlocksSetting);

bool matches(const Graph& body) {
  const auto& nodes = body.nodes();
  return std::any_of(nodes.begin(), nodes.end(), gathers_in_kernel) &&
         std::any_of(nodes.begin(), nodes.end(), is_matmul);
}

/// Whether the value is the gathered one, possibly with another shape of its rows.
bool is_gathered(const Graph& body, const BodyInfo& info, ValueId value) {
  while (value != info.gathered) {
    const NodeId producer = body.value(value).producer;
    if (producer < 0 || body.node(producer).op->view != View::kFlat) return false;
    value = body.node(producer).inputs[0];
  }
  return true;
}

std::string refuse(const Graph& body) {
  const BodyInfo info = analyze(body);
  if (info.gathered < 0 || info.matmuls.empty()) return "it gathers nothing that it multiplies";
  if (std::string reason = refuse_matmuls(body, info); !reason.empty()) return reason;
  if (!info.refusal.empty()) return info.refusal;
  if (info.prologue >= 0) return "the operand of a gather within a kernel must be in memory";
  const Node& mm = *info.matmuls[0];
  const ValueId left = mm.inputs[first_matrix(mm)];
  if (!is_gathered(body, info, left) || body.type(left).shape.size() != 2) {
    return "only the rows of a matmul's left operand are gathered within its kernel";
  }
  const auto& outputs = body.outputs();
  if (std::find(outputs.begin(), outputs.end(), info.gathered) == outputs.end()) {
    return "what a kernel gathers must be in memory";
  }
  const Collective form =
      collective_of(body, *info.collective, body.type(info.collective->inputs[0]));
  if (form.gather_dim != 0) return "only dim 0 is gathered within a kernel";
  if (!info.space[0].divide_exactly(form.ranks, body.symbols())) {
    return "the rows of a rank are no expression of the symbols";
  }
  return "";
}

class GatherGemm {
 public:
  GatherGemm(tile::Builder& b, const KernelSpec& spec, const BodyInfo& info)
      : b_(b),
        spec_(spec),
        body_(*spec.body),
        info_(info),
        group_(*info.collective->attr<std::string>("group")),
        world_(body_.groups().at(group_).size),
        dtype_(body_.type(info.gathered).dtype),
        rows_(*info.space[0].divide_exactly(world_, body_.symbols())),
        width_(body_.type(info.matmuls[0]->inputs[first_matrix(*info.matmuls[0])]).shape[1]),
        block_m_(spec.config.at("BLOCK_M")),
        panels_(std::max<std::int64_t>(1, (rows_.max(body_.symbols()) + block_m_ - 1) / block_m_)),
        copy_blocks_(std::min(spec.config.at(kCopyBlocks), world_ * panels_)) {}

  /// `most` is the number of blocks that the kernel may fill the device with.
  void build(std::int64_t most) {
    const SymbolTable& symbols = body_.symbols();
    tile::Program& program = b_.program();
    b_.communicate(group_, static_cast<int>(world_));
    const std::int64_t columns =
        (info_.space[1].max(symbols) + spec_.config.at("BLOCK_N") - 1) / spec_.config.at("BLOCK_N");
    const std::int64_t tiles = std::max<std::int64_t>(1, world_ * panels_ * columns);
    program.grid =
        std::clamp<std::int64_t>(copy_blocks_ + tiles, 2, std::max<std::int64_t>(2, most));
    program.flag_slots = 2 * copy_blocks_ + (world_ - 1) * panels_;
    program.warps_m = gemm_warps_m(spec_.config);
    rank_ = own_rank(b_, group_);
    // With few blocks, where many ranks share a device, most of them still multiply.
    copying_ = b_.map(
        Fn::kMin,
        {b_.integer(copy_blocks_),
         b_.map(Fn::kMax, {b_.integer(1), b_.map(Fn::kDiv, {b_.num_programs(), b_.integer(4)})})});
    copies_ = b_.map(Fn::kLt, {b_.program_id(), copying_});
    mark(Mark::kMeet);
    meet(b_, b_.program_id(), copies_);
    copy_panels();
    multiply();
    const Id closing = is_closing(b_, group_);
    mark(Mark::kMeet);
    meet(b_, b_.map(Fn::kAdd, {b_.integer(copy_blocks_), b_.program_id()}),
         b_.map(Fn::kAnd, {copies_, b_.map(Fn::kLt, {b_.integer(0), closing})}));
    mark(Mark::kEnd);
  }

 private:
  [[nodiscard]] bool marks() const { return spec_.config.at(kMarksSetting) != 0; }
  void mark(Mark::What what) {
    if (marks()) b_.mark(what, b_.integer(0), b_.integer(0));
  }
  void mark(Mark::What what, Id rank, Id panel) {
    if (marks()) b_.mark(what, rank, panel);
  }

  /// An expression as an i64 scalar.
  Id scalar(const Expr& expr) { return scalar_of(b_, expr, body_.symbols()); }
  Id times(Id a, Id b) { return b_.map(Fn::kMul, {a, b}); }
  Id plus(Id a, Id b) { return b_.map(Fn::kAdd, {a, b}); }

  /// The rank whose rows are multiplied in turn `turn`; this rank has turn 0.
  Id rank_of_turn(Id turn) { return b_.map(Fn::kRem, {plus(rank_, turn), b_.integer(world_)}); }
  Id elements_of_rank() { return times(scalar(Expr(rows_)), scalar(Expr(width_))); }
  Id gathered() {
    const auto& outputs = body_.outputs();
    const auto index = std::find(outputs.begin(), outputs.end(), info_.gathered) - outputs.begin();
    return b_.param(
        {.kind = KernelParam::Kind::kOutput, .index = static_cast<int>(index), .group = {}}, 16);
  }
  int operand() const { return body_.value(info_.collective->inputs[0]).result; }

  /// Panels' slots follow those of the barriers, in the order of copying.
  Id slot_of_panel(Id number) { return plus(b_.integer(2 * copy_blocks_), number); }

  void copy_panels() {
    const Id all = b_.integer(world_ * panels_);
    // No panel for a block that multiplies.
    const Id first = b_.map(Fn::kSelect, {copies_, b_.program_id(), all});
    const Id offset =
        b_.param({.kind = KernelParam::Kind::kOffset, .index = operand(), .group = group_}, 256);
    for_each_piece(b_, {first, all, copying_}, [&](Id number) { copy_panel(number, offset); });
  }

  void copy_panel(Id number, Id offset) {
    const Id panels = b_.integer(panels_);
    const Id turn = plus(b_.map(Fn::kDiv, {number, panels}), b_.integer(1));
    const Id from = rank_of_turn(turn);
    const Id source = b_.peer(offset, from);
    const Id target = b_.ptr_add(gathered(), times(from, elements_of_rank()), dtype_);
    const Id panel = b_.map(Fn::kRem, {number, panels});
    mark(Mark::kCopy, from, panel);
    const Id row = times(panel, b_.integer(block_m_));
    const Id width = scalar(Expr(width_));
    const Id end =
        times(b_.map(Fn::kMin, {plus(row, b_.integer(block_m_)), scalar(Expr(rows_))}), width);
    copy(source, target, times(row, width), end);
    const Id others = b_.integer((world_ - 1) * panels_);
    b_.signal(slot_of_panel(number), rank_, b_.map(Fn::kLt, {number, others}));
  }

  /// Copies the elements [begin, end).
  void copy(Id source, Id target, Id begin, Id end) {
    constexpr int kBytesOfThread = 64;  // in flight at a time
    const int piece = static_cast<int>(spec_.config.at("num_warps")) * 32 * kBytesOfThread /
                      static_cast<int>(dtype_size(dtype_));
    for_each_piece(b_, {begin, end, b_.integer(piece)}, [&](Id start) {
      const Id column = b_.range(1, piece, 1);
      const Id inside = b_.map(Fn::kLt, {column, b_.map(Fn::kSub, {end, start})});
      const Id value = b_.load(b_.ptr_add(source, start, dtype_), column, inside, dtype_);
      b_.store(b_.ptr_add(target, start, dtype_), column, value, inside, dtype_);
    });
  }

  void multiply() {
    const Expr panels = ceil_div(Expr(rows_), Expr(block_m_));
    const Expr columns = ceil_div(Expr(info_.space[1]), Expr(spec_.config.at("BLOCK_N")));
    const Id tiles_of_rank = scalar(panels * columns);
    const Id all = times(b_.integer(world_), tiles_of_rank);
    const Id first =
        b_.map(Fn::kSelect, {copies_, all, b_.map(Fn::kSub, {b_.program_id(), copying_})});
    for_each_piece(b_, {first, all, b_.map(Fn::kSub, {b_.num_programs(), copying_})},
                   [&](Id number) { multiply_tile(number, tiles_of_rank, panels, columns); });
  }

  void multiply_tile(Id number, Id tiles_of_rank, const Expr& panels, const Expr& columns) {
    const auto [turn, tile] = turn_of(b_, number, tiles_of_rank);
    const TileNumber at = tile_number(b_, spec_, tile, panels, columns);
    const Id panel = at.down;
    const Id from = rank_of_turn(turn);
    const Id remote = b_.map(Fn::kLt, {b_.integer(0), turn});
    const Id arrival =
        plus(times(b_.map(Fn::kSub, {turn, b_.integer(1)}), b_.integer(panels_)), panel);
    mark(Mark::kWait, from, panel);
    b_.wait(slot_of_panel(arrival), rank_, remote);
    mark(Mark::kMultiply, from, panel);
    const Id own =
        b_.param({.kind = KernelParam::Kind::kInput, .index = operand(), .group = {}}, 16);
    const Id copied = b_.ptr_add(gathered(), times(from, elements_of_rank()), dtype_);
    const GemmPlace place{
        .batch = {b_.integer(0), {}},
        .row = times(panel, b_.integer(block_m_)),
        .col = times(at.across, b_.integer(spec_.config.at("BLOCK_N"))),
        .chunk = GemmPlace::Chunk{.rows = rows_, .first_row = times(from, scalar(Expr(rows_)))},
        .gathered = b_.map(Fn::kSelect, {remote, copied, own})};
    emit_gemm_tile(b_, spec_, info_, place);
  }

  tile::Builder& b_;
  const KernelSpec& spec_;
  const Graph& body_;
  const BodyInfo& info_;
  const std::string& group_;
  std::int64_t world_;
  DType dtype_;
  Dim rows_;   ///< rows of one rank
  Dim width_;  ///< row length, K
  std::int64_t block_m_;
  std::int64_t panels_;       ///< of one rank, at most
  std::int64_t copy_blocks_;  ///< at most
  Id rank_ = kNone;
  Id copying_ = kNone;  ///< number of copying blocks, a scalar
  Id copies_ = kNone;   ///< whether this block copies
};

GemmUse use_of(const Graph& body, const BodyInfo& info,
               std::int64_t copy_blocks = kGatherGemmCopyBlocks) {
  const std::int64_t world = body.groups().at(*info.collective->attr<std::string>("group")).size;
  return {.rows = *info.space[0].divide_exactly(world, body.symbols()),
          .chunks = world,
          .waits = true,
          .copying = copy_blocks};
}

Config default_config_of(const Graph& body, const Target& target) {
  const BodyInfo info = analyze(body);
  Config config = gemm_config(body, info, target, use_of(body, info));
  config[kCopyBlocks] = kGatherGemmCopyBlocks;
  config[kMarksSetting] = 0;
  config[std::string(kLeavesSetting)] = 0;
  return config;
}

constexpr std::array kSettings = [] {
  std::array<Setting, std::size(kGemmSettings) + 3> all{};
  const auto end = std::copy(std::begin(kGemmSettings), std::end(kGemmSettings), all.begin());
  end[0] = {kCopyBlocksSetting, 1, 64, false};
  end[1] = {kMarksSetting, 0, 1, false};
  end[2] = kLeaves;
  return all;
}();

tile::Program build(const KernelSpec& spec, const Target& target, int ranks_per_device) {
  tile::Program program;
  tile::Builder b(program);
  const BodyInfo info = analyze(*spec.body);
  GatherGemm(b, spec, info).build(most_blocks(spec, target, ranks_per_device));
  return program;
}

}  // namespace

extern const Template kGatherGemmTemplate;
const Template kGatherGemmTemplate = {
    .name = "gather_gemm",
    .settings = kSettings,
    .matches = matches,
    .refuse = refuse,
    .default_config = default_config_of,
    .candidates = [](const Graph& body, const Target& target) -> std::vector<Config> {
      const BodyInfo info = analyze(body);
      return gemm_candidates(body, info, target, use_of(body, info),
                             default_config_of(body, target));
    },
    .rough_ns =
        [](const KernelSpec& spec, const Bindings& bindings, const Target& target) {
          const BodyInfo info = analyze(*spec.body);
          return gemm_ns(spec, info, bindings, target,
                         use_of(*spec.body, info, spec.config.at(kCopyBlocks)));
        },
    .build = build,
};

}  // namespace braid
