// A matmul and the reduction of its result over ranks, in one kernel. For a reduce-scatter
// (PyTorch's fused_matmul_reduce_scatter; FLUX's and ParallelKittens' "GEMM + RS") each tile is
// sent to its owner as soon as it is done: rank by rank, beginning with the next one's rows, over
// the link while others are multiplied, and this rank's own last. The matmul's result is rounded to
// its dtype on the way, as in memory. Then each rank sums the parts it received, in rank order in
// f32, and computes the epilogue.
//
//     for each of its tiles:  loop over K; the tile to the owner of its rows
//     signal, wait            all blocks of all ranks have sent what they had to
//     for each piece:         sum over the ranks' parts, then the rest of the body
//     signal, wait            only at the group's last step of a run
//
// Tiles are pushed, not pulled: stores to peers need no answer and overlap further multiplication,
// whereas reads from peers could only follow the last tile, with nothing left to hide them.
//
// The parts lie in the buffer of the matmul's result, which has exactly that size: world chunks,
// with rank r's at index r. The result is lost (tile/remote.h). No peer writes there too early: the
// plan gives memory that peers write a lifetime from the group's last barrier before this step on
// (docs/architecture.md, Program), so none of those bytes is in use when the first rank enters this
// step. Between runs, the closing step of the group (possibly this one) separates the reads here
// from the next run's stores.
//
// For an all-reduce the tiles stay in this rank's arena, and every rank reads what it needs of all,
// as in the one-shot form of collective.cpp. This pays for few rows, where saving a launch and a
// barrier counts.
//
// There is a slot of flags per block and barrier. A flag per tile would not let the sums begin
// sooner, since each needs this rank's own tiles, which come last; and each signal needs a fence,
// which waits for earlier stores. Every block signals in every run, whatever the symbols, and none
// waits before it has sent all its tiles, so any number of tiles comes to an end. The grid is
// constant, at most one block for each multiprocessor. K is summed in the same order as in the
// plain kernel.

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "codegen/kernel/kernel.h"
#include "codegen/kernel/phases.h"
#include "codegen/work/gemm_tile.h"
#include "ir/collective.h"
#include "ir/numel.h"
#include "ir/op_registry.h"

namespace braid {

using tile::Fn;
using tile::Id;

namespace {

/// A row is summed by as many warps as in a kernel of its own, and a matmul needs no more.
constexpr std::int64_t kMostWarps = 8;

bool matches(const Graph& body) {
  const auto& nodes = body.nodes();
  return std::any_of(nodes.begin(), nodes.end(), reduces_in_kernel) &&
         std::any_of(nodes.begin(), nodes.end(), is_matmul);
}

/// Whether the value is the matmul's result, possibly with another shape of its rows.
bool is_product(const Graph& body, const BodyInfo& info, ValueId value) {
  while (value != info.matmuls[0]->outputs[0]) {
    const NodeId producer = body.value(value).producer;
    if (producer < 0 || body.node(producer).op->view != View::kFlat) return false;
    value = body.node(producer).inputs[0];
  }
  return true;
}

const Shape& product_shape(const Graph& body, const BodyInfo& info) {
  return body.type(info.matmuls[0]->outputs[0]).shape;
}

Collective form_of(const Graph& body, const BodyInfo& info) {
  return collective_of(body, *info.collective, body.type(info.collective->inputs[0]));
}

/// The rows of the product that belong to one rank in the end; nothing where they are not
/// contiguous.
std::optional<Dim> rows_of_rank(const Graph& body, const BodyInfo& info) {
  const TensorType& operand = body.type(info.collective->inputs[0]);
  const Collective form = form_of(body, info);
  if (!form.scatter_dim) return product_shape(body, info)[0];
  if (!lies_in_front(operand.shape, *form.scatter_dim)) return std::nullopt;
  return product_shape(body, info)[0].divide_exactly(form.ranks, body.symbols());
}

std::string refuse(const Graph& body) {
  const BodyInfo info = analyze(body);
  if (!info.reduces_product) return "it reduces nothing that it multiplies";
  if (info.matmuls.size() != 1) return "a kernel reduces the result of one matmul";
  if (!is_product(body, info, info.prologue) || product_shape(body, info).size() != 2) {
    return "only the rows of a matmul's result are reduced within its kernel";
  }
  if (info.prologue_output(body) == body.outputs().size()) {
    return "what a kernel reduces must be in memory";
  }
  if (!rows_of_rank(body, info))
    return "the rows of a rank are not one part of the matmul's result";
  if (std::string reason = refuse_recomputed(body, *info.collective); !reason.empty()) {
    return reason;
  }
  if (!info.refusal.empty()) return info.refusal;
  if (info.rows == Rows::kStrided) {
    return "a reduction over other than the last dims and a collective are separate kernels";
  }
  const std::int64_t warps = piece_config(body, info).at("num_warps");
  if (warps > kMostWarps) {
    return fmt::format("rows of {} elements need {} warps; a kernel that multiplies has {}",
                       max_numel(info.reduced_dims(), body.symbols()), warps, kMostWarps);
  }
  return "";
}

class GemmReduce {
 public:
  GemmReduce(tile::Builder& b, const KernelSpec& spec, const BodyInfo& info)
      : b_(b),
        spec_(spec),
        body_(*spec.body),
        info_(info),
        group_(*info.collective->attr<std::string>("group")),
        world_(body_.groups().at(group_).size),
        scatters_(form_of(body_, info).scatter_dim.has_value()),
        product_(body_.type(info.matmuls[0]->outputs[0])),
        rows_(*rows_of_rank(body_, info)),
        panels_(ceil_div(Expr(rows_), Expr(spec.config.at("BLOCK_M")))),
        columns_(ceil_div(Expr(product_.shape[1]), Expr(spec.config.at("BLOCK_N")))) {}

  /// `most` is the number of blocks that the kernel may fill the device with.
  void build(std::int64_t most) {
    tile::Program& program = b_.program();
    b_.communicate(group_, static_cast<int>(world_));
    const std::int64_t tiles = (panels_ * columns_ * chunks()).max(body_.symbols());
    program.grid = std::clamp<std::int64_t>(tiles, 1, std::max<std::int64_t>(1, most));
    program.flag_slots = 2 * program.grid.evaluate({});
    program.warps_m = gemm_warps_m(spec_.config);
    const Id closing = is_closing(b_, group_);
    multiply();
    b_.signal(b_.program_id());
    b_.wait_slots(b_.integer(0), b_.num_programs());
    reduce();
    meet(b_, plus(b_.num_programs(), b_.program_id()), closing);
  }

 private:
  /// An expression as an i64 scalar.
  Id scalar(const Expr& expr) { return scalar_of(b_, expr, body_.symbols()); }
  Id times(Id a, Id b) { return b_.map(Fn::kMul, {a, b}); }
  Id plus(Id a, Id b) { return b_.map(Fn::kAdd, {a, b}); }
  /// Chunks of the product that go to different ranks.
  std::int64_t chunks() const { return scatters_ ? world_ : 1; }
  int product_output() const { return static_cast<int>(info_.prologue_output(body_)); }

  void multiply() { scatters_ ? multiply_for_owners() : multiply_for_all(); }

  void multiply_for_all() {
    const Id product =
        b_.param({.kind = KernelParam::Kind::kOutput, .index = product_output(), .group = {}}, 16);
    for_each_piece(b_, grid_stride(b_, scalar(panels_ * columns_)), [&](Id number) {
      GemmPlace place = place_of(b_.map(Fn::kToI32, {number}));
      place.product = product;
      emit_gemm_tile(b_, spec_, info_, place);
    });
  }

  /// The tile of that number.
  GemmPlace place_of(Id number) {
    const TileNumber tile = tile_number(b_, spec_, number, panels_, columns_);
    return {.batch = {b_.integer(0), {}},
            .row = times(tile.down, b_.integer(spec_.config.at("BLOCK_M"))),
            .col = times(tile.across, b_.integer(spec_.config.at("BLOCK_N")))};
  }

  void multiply_for_owners() {
    const Id tiles_of_rank = scalar(panels_ * columns_);
    const Id all = times(b_.integer(world_), tiles_of_rank);
    const Id rank = own_rank(b_, group_);
    const Id offset = b_.param(
        {.kind = KernelParam::Kind::kResultOffset, .index = product_output(), .group = group_},
        256);
    for_each_piece(b_, grid_stride(b_, all), [&](Id number) {
      const auto [turn, tile] = turn_of(b_, number, tiles_of_rank);
      const Id owner =
          b_.map(Fn::kRem, {plus(plus(rank, b_.integer(1)), turn), b_.integer(world_)});
      const Id rows = scalar(Expr(rows_));
      const Id chunk = times(rows, scalar(Expr(product_.shape[1])));
      GemmPlace place = place_of(tile);
      place.chunk = GemmPlace::Chunk{.rows = rows_, .first_row = times(owner, rows)};
      place.product = b_.ptr_add(b_.peer(offset, owner), times(rank, chunk), product_.dtype);
      emit_gemm_tile(b_, spec_, info_, place);
    });
  }

  void reduce() {
    const PieceWork work = piece_work(spec_, info_);
    for_each_piece(b_, grid_stride(b_, b_.scalar(work.count)),
                   [&](Id piece) { emit_piece(b_, spec_, info_, work, piece); });
  }

  tile::Builder& b_;
  const KernelSpec& spec_;
  const Graph& body_;
  const BodyInfo& info_;
  const std::string& group_;
  std::int64_t world_;
  bool scatters_;  ///< reduce-scatter; else every rank gets all
  const TensorType& product_;
  Dim rows_;               ///< rows of one rank
  Expr panels_, columns_;  ///< tiles of one rank's rows
};

GemmUse use_of(const Graph& body, const BodyInfo& info) {
  const Dim rows = rows_of_rank(body, info).value_or(product_shape(body, info)[0]);
  // Another number of warps would sum a row in another order.
  const bool reduces = info.rows != Rows::kNone;
  return {.rows = rows,
          .chunks = form_of(body, info).scatter_dim ? form_of(body, info).ranks : 1,
          .warps = reduces ? piece_config(body, info).at("num_warps") : 0,
          .changes_layout = true,
          .waits = true};
}

Config default_config_of(const Graph& body, const Target& target) {
  const BodyInfo info = analyze(body);
  Config config = gemm_config(body, info, target, use_of(body, info));
  config[std::string(kLeavesSetting)] = 0;
  return config;
}

constexpr std::array kSettings = [] {
  std::array<Setting, std::size(kGemmSettings) + 1> all{};
  *std::copy(std::begin(kGemmSettings), std::end(kGemmSettings), all.begin()) = kLeaves;
  return all;
}();

tile::Program build(const KernelSpec& spec, const Target& target, int ranks_per_device) {
  tile::Program program;
  tile::Builder b(program);
  const BodyInfo info = analyze(*spec.body);
  GemmReduce(b, spec, info).build(most_blocks(spec, target, ranks_per_device));
  return program;
}

}  // namespace

extern const Template kGemmReduceTemplate;
const Template kGemmReduceTemplate = {
    .name = "gemm_reduce",
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
          return gemm_ns(spec, info, bindings, target, use_of(*spec.body, info));
        },
    .build = build,
};

}  // namespace braid
