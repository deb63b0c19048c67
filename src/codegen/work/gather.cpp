// An all-gather and the matmuls that read it as their left operand (PyTorch's
// fused_all_gather_matmul; "inter-SM overlap" of ParallelKittens, 2025), as two works: one copies
// panels of BLOCK_M rows of a rank into the gathered operand, which is an output of the kernel; the
// other makes tiles of the result, those of this rank's own rows from where they lie, the others
// once their panel has come. K is added up as in the plain kernel.

#include <algorithm>

#include "codegen/work/from_peers.h"
#include "codegen/work/gemm_tile.h"

namespace braid {

using protocol::Mark;
using tile::Fn;
using tile::Id;

namespace {

const std::string kCopyBlocks(kCopyBlocksSetting);

ValueId left_operand(const Graph& body) {
  const Node& matmul = *matmuls_of(body)[0];
  return matmul.inputs[first_matrix(matmul)];
}

/// What both know of the rows.
struct Gathered {
  Gathered(const BodyFacts& facts, const Config& config)
      : rows(*facts.space[0].divide_exactly(facts.world(), facts.body.symbols())),
        width(facts.body.type(left_operand(facts.body)).shape[1]),
        block_m(config.at("BLOCK_M")),
        panels(
            std::max<std::int64_t>(1, (rows.max(facts.body.symbols()) + block_m - 1) / block_m)) {}

  Dim rows;   ///< of one rank
  Dim width;  ///< of a row: K
  std::int64_t block_m;
  std::int64_t panels;  ///< of one rank, at most

  /// The rows of `ranks`, in panels.
  [[nodiscard]] TileMap map(DType dtype, std::int64_t ranks) const {
    const Expr chunk = Expr(rows) * Expr(width);
    return {.rows = Expr(rows),
            .columns = Expr(width),
            .box = static_cast<int>(block_m),
            .dtype = dtype,
            .outer = {{Expr(ranks), chunk}}};
  }

  /// Where the rows of a rank are put.
  [[nodiscard]] Id target(const Piece& piece, Id rank) const {
    tile::Builder& b = piece.b;
    const Id row = piece.scalar(width);
    const Id chunk = b.map(Fn::kMul, {piece.scalar(rows), row});
    const Id offset = b.map(Fn::kMul, {rank, chunk});
    return b.ptr_add(output_pointer(b, piece.facts.output_apart()), offset,
                     piece.facts.operand().dtype);
  }
};

/// The elements [begin, end).
void copy(const Piece& piece, DType dtype, Id source, Id target, Id begin, Id end) {
  constexpr int kBytesOfThread = 64;  // in flight at one time
  const int size = static_cast<int>(piece.config.at("num_warps")) * 32 * kBytesOfThread /
                   static_cast<int>(dtype_size(dtype));
  tile::Builder& b = piece.b;
  const Id loop = b.begin_for(begin, end, b.integer(size), {});
  const Id start = b.induction(loop);
  const Id column = b.range(1, size, 1);
  const Id inside = b.map(Fn::kLt, {column, b.map(Fn::kSub, {end, start})});
  const Id value = b.load(b.ptr_add(source, start, dtype), column, inside, dtype);
  b.store(b.ptr_add(target, start, dtype), column, value, inside, dtype);
  b.end_for(loop, {});
}

void mark(const Piece& piece, Mark::What what, Id rank, Id number) {
  if (piece.config.at(kMarksSetting) != 0) piece.b.mark(what, rank, number);
}

/// Panels rank by rank, from the next rank's on; nobody waits for this one's own, which are last.
void copy_panel(const Piece& piece) {
  tile::Builder& b = piece.b;
  const Gathered all(piece.facts, piece.config);
  const auto times = [&](Id x, Id y) { return b.map(Fn::kMul, {x, y}); };
  const auto plus = [&](Id x, Id y) { return b.map(Fn::kAdd, {x, y}); };
  const Id panels = b.integer(all.panels);
  const Id turn = plus(b.map(Fn::kDiv, {piece.number, panels}), b.integer(1));
  const Id rank = own_rank(b, piece.facts.group());
  const Id from = b.map(Fn::kRem, {plus(rank, turn), b.integer(piece.facts.world())});
  const Id source = b.peer(operand_offset(b, piece.facts), from);
  const Id target = all.target(piece, from);
  const Id panel = b.map(Fn::kRem, {piece.number, panels});
  mark(piece, Mark::kCopy, from, panel);
  const Id row = times(panel, b.integer(all.block_m));
  // As words, where rows are whole ones: a thread has fewer registers for them, and converts none.
  DType dtype = piece.facts.operand().dtype;
  Dim columns = all.width;
  const auto of_word = static_cast<std::int64_t>(dtype_size(DType::kF32) / dtype_size(dtype));
  if (const auto words = columns.divide_exactly(of_word, piece.facts.body.symbols())) {
    dtype = DType::kF32;
    columns = *words;
  }
  const Id width = piece.scalar(columns);
  const Id last = b.map(Fn::kMin, {plus(row, b.integer(all.block_m)), piece.scalar(all.rows)});
  const Id end = times(last, width);
  copy(piece, dtype, source, target, times(row, width), end);
}

constexpr Setting kCopySettings[] = {{kCopyBlocksSetting, 1, 64, false},
                                     {kMarksSetting, 0, 1, false}};

std::string refuse(const BodyFacts& facts) {
  const Graph& body = facts.body;
  const ValueId gathered = facts.collective->outputs[0];
  if (facts.apart != gathered) return "it gathers nothing that it multiplies";
  if (std::string reason = refuse_matmuls(body); !reason.empty()) return reason;
  if (is_grouped(body)) return "grouped matmuls gather nothing within their kernel";
  if (!facts.refusal.empty()) return facts.refusal;
  if (body.value(facts.collective->inputs[0]).producer >= 0) {
    return "the operand of a gather within a kernel must be in memory";
  }
  const ValueId left = left_operand(body);
  if (!is_reshaped(body, left, gathered) || body.type(left).shape.size() != 2) {
    return "only the rows of a matmul's left operand are gathered within its kernel";
  }
  if (facts.output_apart() == body.outputs().size()) {
    return "what a kernel gathers must be in memory";
  }
  const Collective form = form_of(facts);
  if (form.gather_dim != 0) return "only dim 0 is gathered within a kernel";
  if (!facts.space[0].divide_exactly(form.ranks, body.symbols())) {
    return "the rows of a rank are no expression of the symbols";
  }
  return "";
}

GemmUse use_of(const BodyFacts& facts, const Config& config) {
  const auto copying = config.find(kCopyBlocks);
  return {.rows = *facts.space[0].divide_exactly(facts.world(), facts.body.symbols()),
          .chunks = facts.world(),
          .gathers = true,
          .waits = true,
          .copying = copying == config.end() ? kGatherGemmCopyBlocks : copying->second,
          .rings = can_use_ring(facts)};
}

/// A tile of what is made of a rank's rows.
struct OfRank {
  Gathered all;
  Id from;  ///< the rank
  Raster::Tile tile;
  GemmPlace place;

  explicit OfRank(const Piece& piece) : all(piece.facts, piece.config), from(piece.rank()) {
    const Raster raster(piece.config, all.rows, piece.facts.space[1]);
    tile = raster.tile(piece, piece.number);
    place = raster.place(piece.b, tile);
    place.chunk = {all.rows, piece.b.map(Fn::kMul, {from, piece.scalar(all.rows)})};
  }
};

Id is_remote(const Piece& piece) { return piece.b.map(Fn::kLt, {piece.b.integer(0), piece.turn}); }
int operand(const BodyFacts& facts) { return facts.body.value(facts.collective->inputs[0]).result; }

void multiply_tile(const Piece& piece) {
  tile::Builder& b = piece.b;
  auto [all, from, tile, place] = OfRank(piece);
  mark(piece, Mark::kWait, from, tile.down);
  piece.await(tile.down);
  mark(piece, Mark::kMultiply, from, tile.down);
  const Id own =
      b.param({.kind = KernelParam::Kind::kInput, .index = operand(piece.facts), .group = {}}, 16);
  const Id copied = all.target(piece, from);
  place.gathered = {b.map(Fn::kSelect, {is_remote(piece), copied, own})};
  emit_gemm_tile(piece, place);
}

Id compute(const Piece& piece, std::span<const Id> shared, Id step) {
  const OfRank of(piece);
  mark(piece, Mark::kMultiply, of.from, of.tile.down);
  return compute_gemm_tile(piece, of.place, shared, step);
}

/// The thread that fills the ring waits, so tiles to come wait while others are multiplied.
Id fill(const Piece& piece, std::span<const Id> shared, Id step) {
  tile::Builder& b = piece.b;
  OfRank of(piece);
  piece.await(of.tile.down);
  const DType dtype = piece.facts.operand().dtype;
  const auto map = [&](KernelParam::Kind kind, std::size_t index, std::int64_t ranks) {
    return b.param({.kind = kind,
                    .index = static_cast<int>(index),
                    .group = {},
                    .map = of.all.map(dtype, ranks)});
  };
  const Id own = map(KernelParam::Kind::kInputMap, operand(piece.facts), 1);
  const Id copied =
      map(KernelParam::Kind::kOutputMap, piece.facts.output_apart(), piece.facts.world());
  const Id remote = is_remote(piece);
  of.place.gathered = {b.map(Fn::kSelect, {remote, copied, own}),
                       b.map(Fn::kSelect, {remote, of.from, b.integer(0)})};
  return fill_gemm_tile(piece, of.place, shared, step);
}

constexpr RingWork kByRing{
    .refuse = refuse_gemm_ring,
    .allocate = allocate_gemm_ring,
    .compute = compute,
    .fill = fill,
    .multiply =
        [](const Piece& piece, std::span<const Id> shared, const RingWork::Steps& steps) {
          return multiply_gemm_tile(piece, OfRank(piece).place, shared, steps);
        },
    .holds_sums = holds_gemm_sums,
};

}  // namespace

extern const Work kCopiedPanel{
    .settings = kCopySettings,
    .matches =
        [](const Graph& body) {
          return has_collective(body) && std::ranges::any_of(body.nodes(), gathers_in_kernel);
        },
    .configs = [](const BodyFacts&, const Target&) -> std::vector<Config> {
      return {{{kCopyBlocks, kGatherGemmCopyBlocks}, {kMarksSetting, 0}}};
    },
    .pieces = [](const BodyFacts& facts, const Config& config) -> std::optional<Pieces> {
      const Gathered all(facts, config);
      return Pieces{.count = facts.world() * all.panels, .flags = (facts.world() - 1) * all.panels};
    },
    .prepare = operand_offset,
    .emit = copy_panel,
};

extern const Work kGatheredTile{
    .settings = kWaitingRingSettings,
    .matches = has_matmul,
    .refuse = refuse,
    .configs = gemm_configs<use_of>,
    .rough_ns = gemm_rough_ns<use_of>,
    .pieces = [](const BodyFacts& facts, const Config& config) -> std::optional<Pieces> {
      const Raster raster(config, Gathered(facts, config).rows, facts.space[1]);
      return raster.pieces(facts, config);
    },
    .emit = multiply_tile,
    .by_ring = &kByRing,
};

}  // namespace braid
