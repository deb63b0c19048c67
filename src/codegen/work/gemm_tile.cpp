#include "codegen/work/gemm_tile.h"

#include <fmt/format.h>

#include <algorithm>

#include "codegen/body/in_memory.h"
#include "codegen/tile/fragments.h"
#include "codegen/units.h"
#include "ir/fail.h"
#include "ir/mutation.h"
#include "ir/numel.h"
#include "ir/op_registry.h"
#include "ir/scales.h"
#include "ir/views.h"

namespace braid {

using tile::Fn;
using tile::Id;
using tile::Kind;

namespace {

/// Whether each element of the value is an element of an input.
bool is_plain(const Graph& body, ValueId value) {
  const NodeId producer = body.value(value).producer;
  if (producer < 0) return true;
  const Node& node = body.node(producer);
  return node.op->op_class == OpClass::kView && node.op->view != View::kCat &&
         is_plain(body, node.inputs[0]);
}

/// Whether all outputs that the tiles make are computed from a product.
bool all_meet_a_product(const BodyFacts& facts) {
  const Graph& body = facts.body;
  std::vector<bool> meets(body.values().size(), false);
  for (const Node& node : body.nodes()) {
    const bool does =
        is_matmul(node) || std::ranges::any_of(node.inputs, [&](ValueId v) { return meets[v]; });
    for (const ValueId output : node.outputs) meets[output] = does;
  }
  return std::ranges::all_of(body.outputs(),
                             [&](ValueId v) { return meets[v] || v == facts.apart; });
}

/// Whether the left operand comes from other ranks while the kernel runs.
bool is_gathered(const BodyFacts& facts, const Node& matmul) {
  return facts.apart >= 0 &&
         is_reshaped(facts.body, matmul.inputs[first_matrix(matmul)], facts.apart);
}

/// Whether the tile of an operand lies in a ring as its columns do.
bool lies_transposed(const Graph& body, ValueId value) {
  const std::optional<MatrixInMemory> matrix = matrix_in_memory(body, value);
  return matrix && matrix->transposed;  // gathered rows are no input
}

int slots_in(const Graph& body, const Config& config) {
  return slots_of_sums(config.at("BLOCK_M"), config.at("BLOCK_N"), std::ssize(matmuls_of(body)));
}

}  // namespace

bool can_use_ring(const BodyFacts& facts) {
  const Graph& body = facts.body;
  for (const Node* matmul : matmuls_of(body)) {
    const std::size_t first = first_matrix(*matmul);
    const TensorType& left = body.type(matmul->inputs[first]);
    const Dim& depth = left.shape.back();
    if (depth.max(body.symbols()) < 1 || !depth.is_constant()) return false;
    for (const std::size_t i : {first, first + 1}) {
      if (i == first && is_gathered(facts, *matmul)) {
        if (!has_rows_for_maps(left, body.symbols())) return false;
        continue;
      }
      const std::optional<MatrixInMemory> matrix = matrix_in_memory(body, matmul->inputs[i]);
      // A copy fills with zeros what is past the matrix, not what is past a part of it along K.
      if (!matrix || matrix->from_end(i == first ? 1 : 2).cut) return false;
      // Products of 8 bits want theirs along K.
      const bool along_k = matrix->transposed == (i > first);
      if (is_float8(body.type(matmul->inputs[i]).dtype) && !along_k) return false;
    }
  }
  // Values that meet no product have layouts of their own.
  return all_meet_a_product(facts);
}

std::string refuse_gemm_ring(const BodyFacts& facts, const Config& config, const Target& target) {
  if (!can_use_ring(facts)) return "its operands are not matrices that bulk copies can move";
  const auto& of = facts.body;
  const Node& matmul = *matmuls_of(of)[0];
  const DType dtype = of.type(matmul.inputs[first_matrix(matmul)]).dtype;
  const std::int64_t groups = config.at("num_warps") / tile::kWarpsOfGroup;
  const std::int64_t row_bytes =
      config.at("BLOCK_K") * static_cast<std::int64_t>(dtype_size(dtype));
  const Unit* const unit = multiplier(target, dtype, /*asynchronous=*/true);
  const bool has_slots = unit != nullptr && has_own_sums(*unit);
  const std::int64_t rows = unit == nullptr ? 64 : unit->multiplies->rows;
  constexpr std::int64_t kColumns = 64;
  if (config.at("num_warps") % tile::kWarpsOfGroup != 0 || groups < 1 || groups > 2) {
    return fmt::format("{} warps; expected 4 or 8", config.at("num_warps"));
  }
  const std::int64_t least = has_slots ? rows : rows * groups;
  if (config.at("BLOCK_M") < least || config.at("BLOCK_N") < kColumns ||
      row_bytes % kMapRowBytes != 0) {
    return fmt::format("tiles of {} x {} x {}; expected at least {} x {}, and {} bytes along K",
                       config.at("BLOCK_M"), config.at("BLOCK_N"), config.at("BLOCK_K"), least,
                       kColumns, kMapRowBytes);
  }
  if (has_slots && slots_in(of, config) == 0) {
    return fmt::format("{} tiles of {} x {}; {} has no room for their sums",
                       std::ssize(matmuls_of(of)), config.at("BLOCK_M"), config.at("BLOCK_N"),
                       unit->name);
  }
  return "";
}

bool holds_gemm_sums(const BodyFacts& facts, const Target& target) {
  const Node& matmul = *matmuls_of(facts.body)[0];
  const DType dtype = facts.body.type(matmul.inputs[first_matrix(matmul)]).dtype;
  const Unit* const unit = multiplier(target, dtype, /*asynchronous=*/true);
  return unit == nullptr || !has_own_sums(*unit) || chain_of(facts.body, target) != 0;
}

namespace {

class Gemm {
 public:
  Gemm(const Piece& piece, const GemmPlace& place)
      : config_(piece.config),
        facts_(piece.facts),
        body_(facts_.body),
        matmuls_(matmuls_of(body_)),
        place_(place),
        b_(piece.b),
        emitter_(b_, facts_, block("BLOCK_M")),
        first_(first_matrix(*matmuls_[0])) {
    const Shape& result = body_.type(matmuls_[0]->outputs[0]).shape;
    const std::size_t rank = result.size();
    m_ = {place.chunk ? place.chunk->rows : result[rank - 2], block("BLOCK_M"), place.row};
    if (place.group) {
      m_.end = facts_.narrow ? b_.map(Fn::kToI32, {place.group->end}) : place.group->end;
    }
    const TensorType& left = body_.type(matmuls_[0]->inputs[first_]);
    k_ = left.shape.back();
    in_blocks_ = !block_scales_of(body_).empty();
    chain_ = chain_of(body_, b_.program().target);
    if (chain_ != 0 && block("BLOCK_K") != chain_) {
      throw_invalid("BLOCK_K", "found {}; expected {}: so many products of {} on {} are one sum",
                    block("BLOCK_K"), chain_, dtype_name(left.dtype), b_.program().target.str());
    }
    if (has_ring(config_)) parts_ = parts_of(b_, body_, config_);
    n_ = {result[rank - 1], block("BLOCK_N") / parts_, place.col};
  }

  void emit() {
    const Node& mm = *matmuls_[0];
    select_rows();
    std::vector<Id> sums;
    for (std::size_t i = 0; i < matmuls_.size(); ++i) {
      sums.push_back(b_.splat(Kind::kF32, block("BLOCK_M"), block("BLOCK_N"), 0));
    }
    const Id loop = begin_loop(std::move(sums));
    const Id zero =
        chain_ == 0 ? tile::kNone : b_.splat(Kind::kF32, block("BLOCK_M"), block("BLOCK_N"), 0);
    emitter_.open_scope();
    const Extent along_k{k_, block("BLOCK_K"), b_.induction(loop)};
    const Operand left =
        place_.gathered ? gathered(along_k) : operand(mm.inputs[first_], m_, along_k);
    std::vector<Id> products;
    for (std::size_t i = 0; i < matmuls_.size(); ++i) {
      const Operand right = operand(matmuls_[i]->inputs[first_ + 1], along_k, n_);
      const Id sum = b_.carried(loop, static_cast<int>(i));
      const Id product = b_.dot(left.tile, right.tile, chain_ == 0 ? sum : zero, left.transposed,
                                right.transposed, body_.type(mm.inputs[first_]).dtype);
      const Scales scales =
          in_blocks_ ? scales_of(*matmuls_[i], along_k.start, n_.start) : Scales();
      products.push_back(chain_ == 0 ? product : sum_of(sum, product, scales));
    }
    emitter_.close_scope();
    finish(b_.end_for(loop, std::move(products)));
  }

  // By a ring.

  static std::vector<Id> allocate(tile::Builder& b, const BodyFacts& facts, const Config& config) {
    const Graph& body = facts.body;
    const auto block = [&](const char* key) { return static_cast<int>(config.at(key)); };
    const int stages = block("num_stages");
    std::vector<Id> shared{b.alloc_ring(stages)};
    const auto add = [&](ValueId value, int rows, int cols) {
      const bool transposed = lies_transposed(body, value);
      shared.push_back(b.alloc_panels(body.type(value).dtype, transposed ? cols : rows,
                                      transposed ? rows : cols, stages));
    };
    const std::vector<const Node*> matmuls = matmuls_of(body);
    const std::size_t first = first_matrix(*matmuls[0]);
    add(matmuls[0]->inputs[first], block("BLOCK_M"), block("BLOCK_K"));
    const int parts = parts_of(b, body, config);
    for (const Node* matmul : matmuls) {
      for (int part = 0; part < parts; ++part) {
        add(matmul->inputs[first + 1], block("BLOCK_K"), block("BLOCK_N") / parts);
      }
    }
    int columns = std::min(block("BLOCK_N"), static_cast<int>(kStagedColumns));
    if (const Unit* unit =
            multiplier(b.program().target, body.type(matmuls[0]->inputs[first]).dtype,
                       /*asynchronous=*/true);
        unit != nullptr && has_own_sums(*unit)) {
      if (parts == 1) columns = columns_taken(body, config);
      const int slots = slots_in(body, config);
      shared.push_back(b.alloc_ring(slots));
      for (int i = 0; i < parts * static_cast<int>(matmuls.size()); ++i) {
        shared.push_back(b.alloc_sums(block("BLOCK_M"), block("BLOCK_N") / parts, slots));
      }
    }
    for (const ValueId output : body.outputs()) {
      if (facts.collective != nullptr || !is_pushed(body, output)) continue;
      shared.push_back(b.alloc_panels(body.type(output).dtype, block("BLOCK_M"), columns, 1));
      break;
    }
    return shared;
  }

  Id compute(std::span<const Id> shared, Id begin) {
    shared_ = shared;
    if (chain_ != 0) return compute_chains(begin);
    if (has_sums()) return take_sums(begin);
    const auto count = static_cast<int>(matmuls_.size());
    std::vector<Id> initial;
    initial.reserve(matmuls_.size() + 1);
    for (int i = 0; i < count; ++i) {
      initial.push_back(b_.undefined(block("BLOCK_M"), block("BLOCK_N")));
    }
    initial.push_back(begin);
    const Id ring = shared[0];
    const Id one = b_.integer(1, Kind::kI32);
    const Id loop = begin_loop(std::move(initial));
    const Id step = b_.carried(loop, count);
    b_.await(ring, step);
    const Id slot = slot_of(step);
    const Id adds = b_.map(Fn::kLt, {b_.integer(0), b_.induction(loop)});
    std::vector<Id> next;
    next.reserve(matmuls_.size() + 1);
    for (int i = 0; i < count; ++i) {
      next.push_back(b_.async_dot(shared[1], right(i), b_.carried(loop, i), slot, adds,
                                  is_transposed(first_, 0), is_transposed(first_ + 1, i)));
    }
    b_.wait_dots(count);
    b_.release(ring, b_.map(Fn::kSub, {step, one}), adds);
    next.push_back(b_.map(Fn::kAdd, {step, one}));
    std::vector<Id> results = b_.end_for(loop, std::move(next));
    const Id end = results.back();
    results.pop_back();
    for (Id& result : results) result = b_.settled(result);
    const Id has_steps = select_steps(results);
    b_.release(ring, b_.map(Fn::kSub, {end, one}), has_steps);
    finish(results);
    return end;
  }

  /// By a thread that does nothing else, into slots for sums: one for all of K, or for each step.
  RingWork::Steps multiply(std::span<const Id> shared, const RingWork::Steps& begin) {
    shared_ = shared;
    const Id one = b_.integer(1, Kind::kI32);
    const bool is_whole = chain_ == 0;
    if (is_whole) b_.acquire(sums_ring(), begin.of_sums, 0);
    const Id loop = begin_loop({begin.of_operands, begin.of_sums});
    const Id step = b_.carried(loop, 0), of_sums = b_.carried(loop, 1);
    if (!is_whole) b_.acquire(sums_ring(), of_sums, 0);
    b_.await(shared[0], step);
    const Id adds = b_.map(Fn::kLt, {b_.integer(0), is_whole ? b_.induction(loop) : b_.integer(0)});
    for (int i = 0; i < right_tiles(); ++i) {
      b_.dot_to_sums(shared[1], right(i), slot_of(step), sums(i, of_sums), adds,
                     is_transposed(first_, 0), is_transposed(first_ + 1, i));
    }
    b_.release(shared[0], step);
    if (!is_whole) b_.publish(sums_ring(), of_sums);
    const std::vector<Id> end =
        b_.end_for(loop, {b_.plus(step, one), is_whole ? of_sums : b_.plus(of_sums, one)});
    if (!is_whole) return {end[0], end[1]};
    b_.publish(sums_ring(), begin.of_sums);
    return {end[0], b_.plus(begin.of_sums, one)};
  }

  Id fill(std::span<const Id> shared, Id begin) {
    shared_ = shared;
    const int count = right_tiles();
    const auto bytes = [&](Id tile) {
      return b_.type(tile).rows * b_.type(tile).cols *
             static_cast<int>(dtype_size(b_.program().at(tile).dtype));
    };
    int all = bytes(shared[1]);
    for (int i = 0; i < count; ++i) all += bytes(right(i));
    const Id loop = begin_loop({begin});
    const Id step = b_.carried(loop, 0);
    const Id depth = b_.induction(loop);
    b_.acquire(shared[0], step, all);
    if (const auto& of = place_.gathered) {
      b_.copy_tile(shared[0], step, shared[1], of->from, place_.row, depth, {of->chunk});
    } else {
      const Id row = place_.chunk ? b_.plus(place_.row, place_.chunk->first_row) : place_.row;
      copy(shared[1], step, matmuls_[0]->inputs[first_], row, depth);
    }
    for (int i = 0; i < count; ++i) {
      copy(right(i), step, matmul_of(i).inputs[first_ + 1], depth, column_of(i));
    }
    return b_.end_for(loop, {b_.map(Fn::kAdd, {step, b_.integer(1, Kind::kI32)})})[0];
  }

 private:
  /// Of a tile's columns, by a ring.
  static int parts_of(tile::Builder& b, const Graph& body, const Config& config) {
    return static_cast<int>(parts_of_tile(chain_of(body, b.program().target), config.at("BLOCK_N"),
                                          std::ssize(matmuls_of(body))));
  }
  static int columns_taken(const Graph& body, const Config& config) {
    return static_cast<int>(braid::columns_taken(config.at("BLOCK_M"), config.at("BLOCK_N"),
                                                 config.at("num_warps"),
                                                 std::ssize(matmuls_of(body))));
  }
  Id begin_loop(std::vector<Id> initial) {
    Id depth = place_.group ? place_.group->depth : scalar_of(b_, Expr(k_), body_.symbols());
    // Slots for sums are never read before something is there.
    if (place_.group && has_sums()) depth = b_.map(Fn::kMax, {depth, b_.integer(1)});
    return b_.begin_for(b_.integer(0), depth, b_.integer(block("BLOCK_K")), std::move(initial));
  }
  // Tiles of right operands: of each matmul its parts, side by side.
  [[nodiscard]] int right_tiles() const { return static_cast<int>(matmuls_.size()) * parts_; }
  [[nodiscard]] const Node& matmul_of(int tile) const { return *matmuls_[tile / parts_]; }
  [[nodiscard]] Id right(int tile) const { return shared_[static_cast<std::size_t>(tile) + 2]; }
  // Slots for the sums of each of them, where the unit has a memory for sums.
  [[nodiscard]] bool has_sums() const {
    return std::ranges::any_of(shared_, [&](Id id) { return b_.type(id).kind == Kind::kSums; });
  }
  [[nodiscard]] Id sums_ring() const {
    return shared_[static_cast<std::size_t>(right_tiles()) + 2];
  }
  tile::Builder::SumsSlot sums(int tile, Id step) {
    return {shared_[static_cast<std::size_t>(right_tiles() + tile) + 3],
            b_.map(Fn::kRem, {step, b_.integer(slots_in(body_, config_), Kind::kI32)})};
  }
  [[nodiscard]] Id column_of(int tile) {
    const int part = tile % parts_;
    return part == 0 ? place_.col : b_.plus(place_.col, b_.integer(part * n_.block));
  }
  [[nodiscard]] bool is_transposed(std::size_t input, int tile) const {
    return lies_transposed(body_, matmul_of(tile).inputs[input]);
  }

  Id slot_of(Id step) {
    return b_.map(Fn::kRem, {step, b_.integer(block("num_stages"), Kind::kI32)});
  }

  /// Where a group of rows is empty, its sums are zero. Returns whether it is not, or nothing.
  Id select_steps(std::vector<Id>& sums) {
    if (!place_.group) return tile::kNone;
    const Id has_steps = b_.less(b_.integer(0), place_.group->depth);
    for (Id& sum : sums) {
      sum = b_.map(Fn::kSelect, {has_steps, sum, b_.constant(Kind::kF32, 0)});
    }
    return has_steps;
  }

  /// What `multiply` has made for this piece.
  Id take_sums(Id step) {
    b_.await(sums_ring(), step);
    n_.block = columns_taken(body_, config_);
    for (int first = 0; first < block("BLOCK_N"); first += n_.block) {
      if (first > 0) n_.start = b_.plus(place_.col, b_.integer(first));
      emitter_.open_scope();
      std::vector<Id> results;
      results.reserve(static_cast<std::size_t>(right_tiles()));
      for (int i = 0; i < right_tiles(); ++i) {
        results.push_back(b_.load_sums(sums(i, step), first, n_.block));
      }
      if (first + n_.block == block("BLOCK_N")) b_.release(sums_ring(), step);
      select_steps(results);
      finish(results);
      emitter_.close_scope();
    }
    return b_.plus(step, b_.integer(1, Kind::kI32));
  }

  /// Each step of K begins sums of its own. While a group of warps adds them to those of the steps
  /// before, the other one, or another thread, multiplies.
  Id compute_chains(Id begin) {
    const int count = right_tiles();
    const auto sums_of = [&](auto make) {
      std::vector<Id> all;
      all.reserve(static_cast<std::size_t>(count) + 1);
      for (int i = 0; i < count; ++i) all.push_back(make(i));
      return all;
    };
    const int rows = block("BLOCK_M"), cols = n_.block;
    std::vector<Id> initial = sums_of([&](int) { return b_.splat(Kind::kF32, rows, cols, 0); });
    initial.push_back(begin);
    const Id loop = begin_loop(std::move(initial));
    const Id step = b_.carried(loop, count);
    emitter_.open_scope();
    // Under way while the step's tiles are awaited and multiplied.
    std::vector<Scales> scales(static_cast<std::size_t>(count));
    for (int i = 0; in_blocks_ && i < count; ++i) {
      scales[i] = scales_of(matmul_of(i), b_.induction(loop), column_of(i));
    }
    const Id ring = has_sums() ? sums_ring() : shared_[0];
    b_.await(ring, step);
    const Id slot = slot_of(step);
    const Id adds = b_.map(Fn::kLt, {b_.integer(0), b_.integer(0)});
    // One after the other: there are registers for one.
    std::vector<Id> next = sums_of([&](int i) {
      const Scales& scale = scales[i];
      if (has_sums())
        return sum_of(b_.carried(loop, i), b_.load_sums(sums(i, step), 0, cols), scale);
      const Id product = b_.async_dot(shared_[1], right(i), b_.undefined(rows, cols), slot, adds,
                                      is_transposed(first_, 0), is_transposed(first_ + 1, i));
      return sum_of(b_.carried(loop, i), b_.settled(product), scale);
    });
    emitter_.close_scope();
    b_.release(ring, step);
    next.push_back(b_.map(Fn::kAdd, {step, b_.integer(1, Kind::kI32)}));
    std::vector<Id> results = b_.end_for(loop, std::move(next));
    const Id end = results.back();
    results.pop_back();
    const auto of_part = static_cast<std::ptrdiff_t>(matmuls_.size());
    for (int part = 0; part < parts_; ++part) {
      n_.start = column_of(part);
      emitter_.open_scope();
      const auto first = results.begin() + part * of_part;
      finish({first, first + of_part});
      emitter_.close_scope();
    }
    return end;
  }

  /// What the sum of a step of K is multiplied by where scales are in blocks: numbers of the tile's
  /// rows; one of its columns, or of each; kNone where there are none.
  struct Scales {
    Id of_rows = tile::kNone, of_columns = tile::kNone;
  };
  Scales scales_of(const Node& matmul, Id depth, Id column) {
    Scales scales;
    const auto block_of = [&](Id index) {
      const Id element = as_index(index);
      return b_.map(Fn::kDiv, {element, b_.integer(kScaleBlock, b_.type(element).kind)});
    };
    const Id block_of_k = block_of(depth);
    Mask mask;
    if (is_scale_in_blocks(body_, matmul, 2)) {
      const Shape& shape = body_.type(matmul.inputs[2]).shape;
      const Id row = in_all(index(m_, m_.block, 1, 0, mask));
      scales.of_rows =
          emitter_.value(matmul.inputs[2], {{row, {shape[0]}}, {block_of_k, {shape[1]}}}, mask);
    }
    if (is_scale_in_blocks(body_, matmul, 3)) {
      const Shape& shape = body_.type(matmul.inputs[3]).shape;
      const bool each = shape[1] == n_.dim;
      const bool is_one = !each && n_.block <= kScaleBlock;
      mask.clear();
      const Extent columns{n_.dim, n_.block, column};
      const Id col = is_one ? column : index(columns, m_.block, n_.block, 1, mask);
      scales.of_columns = emitter_.value(
          matmul.inputs[3],
          {{block_of_k, {shape[0]}}, {each ? as_index(col) : block_of(col), {shape[1]}}}, mask);
    }
    return scales;
  }
  /// A product by the rows' numbers is in the product's registers: if both numbers were multiplied
  /// first, ptxas would put the sum there, and spill.
  Id sum_of(Id before, Id product, const Scales& scales) {
    Id factor = scales.of_rows;
    if (scales.of_columns != tile::kNone) {
      if (factor != tile::kNone) product = b_.map(Fn::kMul, {product, factor});
      factor = scales.of_columns;
    }
    return factor == tile::kNone ? b_.map(Fn::kAdd, {before, product})
                                 : b_.map(Fn::kFma, {product, factor, before});
  }

  void copy(Id tile, Id step, ValueId value, Id row, Id col) {
    emitter_.copy_tile({shared_[0], step, tile}, value, row, col, matrix_at(value));
  }
  Id map_of(std::size_t output, Id tile) {
    const Shape& shape = body_.type(body_.outputs()[output]).shape;
    return b_.param(
        {.kind = KernelParam::Kind::kOutputMap,
         .index = static_cast<int>(output),
         .group = {},
         .map = {Expr(shape[0]), Expr(shape[1]), b_.type(tile).rows, b_.program().at(tile).dtype}});
  }

  /// Whether an output goes to memory through shared memory, by bulk copies: one that has its
  /// elements where the product has them.
  static bool is_pushed(const Graph& body, ValueId output) {
    constexpr std::int64_t kBytes = 16, kMost = std::int64_t{1} << 31;
    const TensorType& type = body.type(output);
    const SymbolTable& symbols = body.symbols();
    // Past the rows of a group are those of the next one.
    return update_of(body, output) == nullptr && type.shape.size() == 2 && !is_grouped(body) &&
           type.shape == body.type(matmuls_of(body)[0]->outputs[0]).shape &&
           (type.dtype == DType::kF16 || type.dtype == DType::kBF16) &&
           type.shape[1].divisor(symbols) * 2 % kBytes == 0 && type.shape[0].max(symbols) < kMost &&
           type.shape[1].max(symbols) < kMost;
  }

  struct Extent {
    Dim dim;
    int block;
    Id start;              ///< first index of the tile, a scalar
    Id end = tile::kNone;  ///< past the last index, where it is not the dim's
  };
  struct Operand {
    Id tile;
    bool transposed;
  };
  /// Rows of a matrix.
  struct Selected {
    ValueId from;
    Id row;     ///< a tile of one column
    Mask mask;  ///< which of them exist
  };

  int block(const char* key) const { return static_cast<int>(config_.at(key)); }

  Id as_index(Id id) { return b_.map(facts_.narrow ? Fn::kToI32 : Fn::kToI64, {id}); }

  /// The tile's indices along an extent; masks those past it where blocks do not divide it.
  Id index(const Extent& extent, int rows, int cols, int axis, Mask& mask, bool always = false) {
    const Id index = b_.map(Fn::kAdd, {as_index(extent.start), b_.range(rows, cols, axis)});
    if (extent.end != tile::kNone) {
      mask.push_back(b_.map(Fn::kLt, {index, extent.end}));
    } else if (always || extent.dim.divisor(body_.symbols()) % extent.block != 0) {
      mask.push_back(b_.map(Fn::kLt, {index, scalar_of(b_, Expr(extent.dim), body_.symbols())}));
    }
    return index;
  }

  /// Converts a row of the chunk to a row of the whole result.
  Id in_all(Id row) {
    if (!place_.chunk) return row;
    const Id first = place_.chunk->first_row;
    return b_.map(Fn::kAdd, {facts_.narrow ? b_.map(Fn::kToI32, {first}) : first, row});
  }

  /// Where the left operand's rows are those of a matrix at indices: looks these up once, not in
  /// each step along K.
  void select_rows() {
    const Node* const node = row_selection(body_, *matmuls_[0]);
    if (node == nullptr) return;
    Mask mask;
    const Id row = in_all(index(m_, m_.block, 1, 0, mask));
    const Dim& count = body_.type(node->inputs[0]).shape[0];
    const Shape& rows = body_.type(node->inputs[1]).shape;
    const Id selected = emitter_.checked_index(*node, count, {{row, rows}}, mask);
    selected_ = {node->inputs[0], selected, std::move(mask)};
  }

  /// The tile [rows, cols] of an operand's last two dims; transposed when its rows are contiguous.
  Operand operand(ValueId value, const Extent& rows, const Extent& cols) {
    const bool selects = &rows == &m_ && selected_;
    if (selects) value = selected_->from;
    const Shape& shape = body_.type(value).shape;
    const std::size_t rank = shape.size();
    // ldmatrix transposes pairs of 8-bit elements for B only. A must have its elements along K
    // adjacent in shared memory, whatever the order in global memory.
    const bool transposed = !is_contiguous(body_, value, rank - 1) &&
                            is_contiguous(body_, value, rank - 2) &&
                            !(is_float8(body_.type(value).dtype) && &rows == &m_);
    const Extent& outer = transposed ? cols : rows;
    const Extent& inner = transposed ? rows : cols;
    Mask mask;
    if (selects) mask = selected_->mask;
    // An operand that is computed, not copied, is loaded past the last step too. What it takes for
    // each row is one column.
    const bool computed = !is_plain(body_, value);
    Id along_outer = selects
                         ? selected_->row
                         : index(outer, outer.block, computed ? 1 : inner.block, 0, mask, computed);
    Id along_inner = index(inner, outer.block, inner.block, 1, mask, computed);
    if (&rows == &m_ && !selects) {
      Id& row = transposed ? along_inner : along_outer;
      row = in_all(row);
    }
    Coords at = matrix_at(value);
    at.push_back({transposed ? along_inner : along_outer, {shape[rank - 2]}});
    at.push_back({transposed ? along_outer : along_inner, {shape[rank - 1]}});
    const Id tile = emitter_.whole(emitter_.value(value, at, mask, outer.block), outer.block,
                                   inner.block, mask);
    return {tile, transposed};
  }

  /// Which of an operand's matrices.
  Coords matrix_at(ValueId value) {
    const Shape& shape = body_.type(value).shape;
    const Shape batch(shape.begin(), shape.end() - 2);
    const Axis matrix =
        place_.group && !batch.empty() ? Axis{place_.group->weight, batch} : place_.batch;
    return emitter_.coords().broadcast({matrix}, batch);
  }

  /// The tile of a gathered left operand, read where its chunk lies.
  Operand gathered(const Extent& along_k) {
    Mask mask;
    const Id row = index(m_, m_.block, along_k.block, 0, mask);
    const Id col = index(along_k, m_.block, along_k.block, 1, mask);
    const DType dtype = body_.type(matmuls_[0]->inputs[first_]).dtype;
    const Coords at{{row, {m_.dim}}, {col, {k_}}};
    return {emitter_.load(place_.gathered->from, at, dtype, mask), false};
  }

  /// Whether a thread's part of the result is large, and its pieces of 16 bytes are whole. A matrix
  /// instruction leaves two neighbours in a thread, of which a store has 4 bytes of 16 bits each,
  /// half a sector of each row. The change of a matmul's result costs as much as a wide access
  /// saves, so a pair that ends in one store and meets no other matrix is left alone.
  bool is_worth_widening(DType dtype) const {
    const auto matrices = std::ranges::count_if(
        body_.inputs(), [](const GraphInput& input) { return input.type.shape.size() > 1; });
    const std::ptrdiff_t met = std::max<std::ptrdiff_t>(
        0, matrices - 1 - std::ssize(matmuls_) - std::ssize(block_scales_of(body_)));
    const bool stores_apart = facts_.output_apart() < body_.outputs().size();
    const std::ptrdiff_t stored = std::ssize(body_.outputs()) - (stores_apart ? 1 : 0);
    if (std::ssize(matmuls_) > stored + met) return false;
    constexpr int kLeast = 32;  // elements of a thread
    const int threads = 32 * static_cast<int>(config_.at("num_warps"));
    return body_.type(matmuls_[0]->inputs[first_]).dtype != DType::kF32 && dtype_size(dtype) == 2 &&
           block("BLOCK_M") * block("BLOCK_N") >= kLeast * threads &&
           n_.dim.divisor(body_.symbols()) % 8 == 0;
  }

  /// Emits the epilogue on the same tile: in the accumulators' layout, or in one of wide pieces.
  void finish(const std::vector<Id>& sums) {
    Mask mask;
    const int block_m = block("BLOCK_M");
    const Id row = index(m_, block_m, 1, 0, mask);
    const Id col = index(n_, block_m, n_.block, 1, mask);
    const TensorType& type = body_.type(matmuls_[0]->outputs[0]);
    const Coords at{
        place_.batch, {in_all(row), {type.shape[type.shape.size() - 2]}}, {col, {n_.dim}}};
    const auto result = [&](std::size_t i) {
      const Node& matmul = *matmuls_[i];
      const DType dtype = body_.type(matmul.outputs[0]).dtype;
      const Id rounded = b_.round(dtype, scaled(matmul, sums[i], at, mask));
      // Peers' memory is far.
      const bool wide =
          place_.product != tile::kNone || (shared_.empty() && is_worth_widening(dtype));
      return wide ? b_.convert_layout(rounded) : rounded;
    };
    if (place_.product != tile::kNone) {
      const Coords in_chunk{{row, {m_.dim}}, {col, {n_.dim}}};
      emitter_.store(place_.product, type, result(0), in_chunk, mask);
      return;
    }
    for (std::size_t i = 0; i < sums.size(); ++i) {
      emitter_.define(matmuls_[i]->outputs[0],
                      [id = result(i)](const Coords&, const Mask&) { return id; });
    }
    for (std::size_t i = 0; i < body_.outputs().size(); ++i) {
      if (i == facts_.output_apart()) continue;
      if (!push(i, at, mask)) emitter_.store(i, at, mask);
    }
  }

  /// Through the shared tile for results, where there is one of its dtype.
  bool push(std::size_t output, const Coords& at, const Mask& mask) {
    const ValueId value = body_.outputs()[output];
    const TensorType& type = body_.type(value);
    const auto operands = static_cast<std::size_t>(right_tiles()) + 2;
    const Id tile = shared_.empty() ? tile::kNone : shared_.back();
    const bool is_staged = shared_.size() > operands && b_.type(tile).kind == Kind::kShared;
    if (!is_staged || !is_pushed(body_, value)) return false;
    if (b_.program().at(tile).dtype != type.dtype) return false;
    Id id = emitter_.value(value, emitter_.coords().reshape(at, type.shape), mask);
    if (b_.type(id).cols != n_.block) id = b_.spread(id, block("BLOCK_M"), n_.block);
    b_.push_tile(tile, map_of(output, tile), place_.row, n_.start, id);
    return true;
  }

  /// The scaling that addmm and scaled_mm do before they round.
  Id scaled(const Node& mm, Id sum, const Coords& at, const Mask& mask) {
    const auto term = [&](std::size_t input) {
      const ValueId v = mm.inputs[input];
      return emitter_.value(v, emitter_.coords().broadcast(at, body_.type(v).shape), mask);
    };
    const auto times = [&](Id x, double factor) {
      return factor == 1 ? x : b_.map(Fn::kMul, {x, b_.constant(Kind::kF32, factor)});
    };
    if (mm.op->matmul == Matmul::kScaled) {
      Id product = sum;
      for (const std::size_t i : {2, 3}) {
        if (!is_scale_in_blocks(body_, mm, i)) product = b_.map(Fn::kMul, {product, term(i)});
      }
      return mm.inputs.size() > 4 ? b_.map(Fn::kAdd, {product, term(4)}) : product;
    }
    if (mm.op->matmul != Matmul::kAdd) return sum;
    const Id product = times(sum, *mm.attr<double>("alpha"));
    const double beta = *mm.attr<double>("beta");
    // With beta 0 the bias is ignored, whatever it holds.
    return beta == 0 ? product : b_.map(Fn::kAdd, {product, times(term(0), beta)});
  }

  const Config& config_;
  const BodyFacts& facts_;
  const Graph& body_;
  std::vector<const Node*> matmuls_;
  const GemmPlace& place_;
  tile::Builder& b_;
  BodyEmitter emitter_;
  std::size_t first_;  ///< input index of the left operand
  Extent m_, n_;
  Dim k_;
  bool in_blocks_;      ///< scales of steps of K
  std::int64_t chain_;  ///< of a step of K, or 0 (gemm_config.h)
  int parts_ = 1;       ///< of the tile's columns, each with products of its own
  std::optional<Selected> selected_;
  std::span<const Id> shared_;  ///< what allocate gave, of a ring
};

/// Two matmuls can share a kernel if left operands are equal and right ones alike.
bool is_pair(const Graph& body, const Node& one, const Node& other) {
  const std::size_t left = first_matrix(one);
  return one.op == other.op && one.inputs[left] == other.inputs[left] &&
         (one.op->matmul != Matmul::kGrouped || one.inputs[2] == other.inputs[2]) &&
         std::equal(one.inputs.begin(), one.inputs.end(), other.inputs.begin(), other.inputs.end(),
                    [&](ValueId a, ValueId b) { return body.type(a) == body.type(b); });
}

}  // namespace

bool is_contiguous(const Graph& body, ValueId value, std::size_t dim) {
  for (;;) {
    const NodeId producer = body.value(value).producer;
    if (producer < 0) return dim + 1 == body.type(value).shape.size();
    const Node& node = body.node(producer);
    if (node.inputs.empty()) return false;
    value = node.inputs[0];
    const std::optional<std::size_t> of = dim_of_operand(body, node, value, dim);
    if (!of) return false;
    dim = *of;
  }
}

const Node* row_selection(const Graph& body, const Node& matmul) {
  const NodeId producer = body.value(matmul.inputs[first_matrix(matmul)]).producer;
  if (producer < 0) return nullptr;
  const Node& node = body.node(producer);
  if (node.op_name() != "index_select") return nullptr;
  const std::size_t rank = body.type(node.inputs[0]).shape.size();
  const bool is_of_rows = rank == 2 && axis_of(node.attrs, "dim", rank) == 0;
  return is_of_rows && is_contiguous(body, node.inputs[0], 1) ? &node : nullptr;
}

void emit_gemm_tile(const Piece& piece, const GemmPlace& place) { Gemm(piece, place).emit(); }

std::vector<Id> allocate_gemm_ring(tile::Builder& b, const BodyFacts& facts, const Config& config) {
  return Gemm::allocate(b, facts, config);
}
Id compute_gemm_tile(const Piece& piece, const GemmPlace& place, std::span<const Id> shared,
                     Id step) {
  return Gemm(piece, place).compute(shared, step);
}
RingWork::Steps multiply_gemm_tile(const Piece& piece, const GemmPlace& place,
                                   std::span<const Id> shared, const RingWork::Steps& steps) {
  return Gemm(piece, place).multiply(shared, steps);
}
Id fill_gemm_tile(const Piece& piece, const GemmPlace& place, std::span<const Id> shared, Id step) {
  return Gemm(piece, place).fill(shared, step);
}

Raster::Raster(const Config& config, const Dim& rows, const Dim& columns)
    : block_m(config.at("BLOCK_M")),
      block_n(config.at("BLOCK_N")),
      group(config.at("GROUP_M")),
      down(ceil_div(Expr(rows), Expr(block_m))),
      across(ceil_div(Expr(columns), Expr(block_n))) {}

Pieces Raster::pieces(const BodyFacts& facts, const Config& config, const Expr& results) const {
  const Expr count = down * across * results;
  return {.count = count,
          .divisor = divisor_of(count, facts.body.symbols()),
          .warps_m = gemm_warps_m(config)};
}

Raster::Tile Raster::tile(const Piece& piece, Id number) const {
  tile::Builder& b = piece.b;
  const SymbolTable& symbols = piece.facts.body.symbols();
  // 32-bit: a 64-bit division is a call.
  const auto scalar = [&](const Expr& expr) {
    return b.map(Fn::kToI32, {scalar_of(b, expr, symbols)});
  };
  const Id rows = scalar(down);
  if (down.max(symbols) <= group) {
    return {b.map(Fn::kRem, {number, rows}), b.map(Fn::kDiv, {number, rows})};
  }
  const Id of_group = b.map(Fn::kMul, {scalar(across), b.integer(group)});
  const Id first = b.map(Fn::kMul, {b.map(Fn::kDiv, {number, of_group}), b.integer(group)});
  const Id rest = b.map(Fn::kRem, {number, of_group});
  const Id size = b.map(Fn::kMin, {b.map(Fn::kSub, {rows, first}), b.integer(group)});
  return {b.map(Fn::kAdd, {first, b.map(Fn::kRem, {rest, size})}), b.map(Fn::kDiv, {rest, size})};
}

GemmPlace Raster::place(tile::Builder& b, const Tile& tile) const {
  return {.batch = {b.integer(0), {}},
          .row = b.map(Fn::kMul, {tile.down, b.integer(block_m)}),
          .col = b.map(Fn::kMul, {tile.across, b.integer(block_n)})};
}

std::vector<const Node*> matmuls_of(const Graph& body) {
  std::vector<const Node*> all;
  for (const Node& node : body.nodes()) {
    if (is_matmul(node)) all.push_back(&node);
  }
  return all;
}

std::set<ValueId> block_scales_of(const Graph& body) {
  std::set<ValueId> scales;
  for (const Node* matmul : matmuls_of(body)) {
    if (matmul->op->matmul != Matmul::kScaled) continue;
    for (const std::size_t i : {2, 3}) {
      if (is_scale_in_blocks(body, *matmul, i)) scales.insert(matmul->inputs[i]);
    }
  }
  return scales;
}

bool has_matmul(const Graph& body) { return std::ranges::any_of(body.nodes(), is_matmul); }

std::string refuse_matmuls(const Graph& body) {
  const std::vector<const Node*> pair = matmuls_of(body);
  if (pair.size() > 2) return "a kernel holds one matmul, or a pair that shares an operand";
  if (pair.size() == 2 && !is_pair(body, *pair[0], *pair[1])) {
    return "a kernel holds one matmul, or a pair that shares its first operand";
  }
  return "";
}

bool is_grouped(const Graph& body) {
  return std::ranges::any_of(body.nodes(),
                             [](const Node& node) { return node.op->matmul == Matmul::kGrouped; });
}

bool is_reshaped(const Graph& body, ValueId value, ValueId base) {
  while (value != base) {
    const NodeId producer = body.value(value).producer;
    if (producer < 0 || body.node(producer).op->view != View::kFlat) return false;
    value = body.node(producer).inputs[0];
  }
  return true;
}

namespace {

/// Sums in f32 of batches, such as parts of K, take longer by counts than the reckoning has it
/// (512 x 14336 by 14336 x 4096 on an H100 in two parts: 121.6 us, not 85).
GemmUse use_of(const BodyFacts& facts, const Config&) {
  const TensorType& result = facts.body.type(matmuls_of(facts.body)[0]->outputs[0]);
  const bool is_reckoned = result.shape.size() == 2 || dtype_size(result.dtype) == 2;
  return {.rows = facts.space[facts.space.size() - 2],
          .resident = facts.resident,
          .rings = !facts.resident && is_reckoned && can_use_ring(facts)};
}

Raster raster_of(const BodyFacts& facts, const Config& config) {
  const std::size_t rank = facts.space.size();
  return {config, facts.space[rank - 2], facts.space[rank - 1]};
}

Shape batch_of(const BodyFacts& facts) { return {facts.space.begin(), facts.space.end() - 2}; }

GemmPlace place_of(const Piece& piece, bool /*checks*/) {
  tile::Builder& b = piece.b;
  const Raster raster = raster_of(piece.facts, piece.config);
  Id number = b.map(Fn::kToI32, {piece.number});
  Axis batch{b.integer(0), batch_of(piece.facts)};
  if (!(numel(batch.dims) == Expr(1))) {
    const Id tiles = b.map(Fn::kToI32, {b.scalar(raster.down * raster.across)});
    batch.index = b.map(Fn::kToI64, {b.map(Fn::kDiv, {number, tiles})});
    number = b.map(Fn::kRem, {number, tiles});
  }
  GemmPlace place = raster.place(b, raster.tile(piece, number));
  place.batch = batch;
  return place;
}

}  // namespace

/// Matmuls with what comes before and after them at the same place.
extern const Work kGemmTile{
    .settings = kRingGemmSettings,
    .matches = has_matmul,
    .refuse = [](const BodyFacts& facts) -> std::string {
      const std::string reason = refuse_matmuls(facts.body);
      return reason.empty() ? facts.refusal : reason;
    },
    .configs = gemm_configs<use_of>,
    .rough_ns = gemm_rough_ns<use_of>,
    .pieces = [](const BodyFacts& facts, const Config& config) -> std::optional<Pieces> {
      return raster_of(facts, config).pieces(facts, config, numel(batch_of(facts)));
    },
    .emit = [](const Piece& piece) { emit_gemm_tile(piece, place_of(piece, true)); },
    .by_ring = &kGemmByRing<place_of>,
};

}  // namespace braid
