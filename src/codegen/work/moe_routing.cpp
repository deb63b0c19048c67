// Sorts the choices of all tokens by expert. A block has one expert: it counts the choices of
// experts below, and finds the place of each of its own among these, in their order. So equal
// experts keep the order of their tokens, and nothing depends on the order of blocks.
//
// Choices are seen as tiles [rows, 64], in row-major order. Which of them are the block's is a
// matrix of zeros and ones, and how many are in front of an element, in its row and in the rows
// above, are products of that matrix with triangles of ones:
//
//     up to an element of its row = mine U        U: on and above the diagonal
//     in the rows above           = L mine        L: below the diagonal; the sum of its columns
//
// Products of zeros and ones are exact.

#include <algorithm>
#include <bit>

#include "codegen/body/emitter.h"
#include "codegen/protocol.h"
#include "codegen/work/rows.h"
#include "ir/moe.h"
#include "ir/numel.h"

namespace braid {
namespace {

using tile::Fn;
using tile::Id;
using tile::Kind;

constexpr Setting kRoutingSettings[] = {kWarpsSetting, {"num_stages", 2, 2, false}};
constexpr int kColumns = 64;
constexpr std::int64_t kMostRows = 64, kLeastRows = 16;

bool is_routing(const Node& node) { return node.op_name() == "moe_routing"; }

/// No more than the choices fill.
int rows_of(const BodyFacts& facts) {
  const std::int64_t choices = max_numel(facts.space, facts.body.symbols());
  const auto rows = static_cast<std::uint64_t>((choices + kColumns - 1) / kColumns);
  return static_cast<int>(
      std::clamp(static_cast<std::int64_t>(std::bit_ceil(rows)), kLeastRows, kMostRows));
}

Dim experts_of(const BodyFacts& facts) {
  return facts.body.type(facts.scan->outputs[kRoutedEnds]).shape[0];
}

class Routing {
 public:
  explicit Routing(const Piece& piece)
      : piece_(piece),
        b_(piece.b),
        body_(piece.facts.body),
        node_(*piece.facts.scan),
        rows_(rows_of(piece.facts)),
        emitter_(b_, piece.facts, rows_),
        expert_(narrow(piece.number)),
        count_(b_.scalar(numel(piece.facts.space),
                         divisor_of(numel(piece.facts.space), body_.symbols()))) {}

  void emit() {
    const Id zeros = b_.splat(Kind::kF32, rows_, kColumns, 0);
    const Id ones = triangle(rows_, [](Id, Id) { return tile::kNone; });
    Id loop = begin_loop({zeros});
    Choices choices = next(loop, /*checks=*/true);
    const Id is_below = b_.both(choices.exist, b_.less(choices.expert, expert_));
    const Id sums = b_.end_for(loop, {product(ones, as_number(is_below), b_.carried(loop, 0))})[0];
    emitter_.close_scope();
    const Id below = row_sum(sums);

    const Id above = triangle(rows_, [&](Id row, Id col) { return b_.less(col, row); });
    const Id up_to =
        triangle(kColumns, [&](Id row, Id col) { return b_.inverse(b_.less(col, row)); });
    loop = begin_loop({below});
    choices = next(loop, /*checks=*/false);
    const Id is_mine = b_.both(choices.exist, b_.map(Fn::kEq, {choices.expert, expert_}));
    const Id mine = as_number(is_mine);
    const Id first = b_.carried(loop, 0);
    const Id before = b_.plus(first, row_sum(product(above, mine, zeros)));
    const Id place = b_.minus(b_.plus(before, whole(product(mine, up_to, zeros))), b_.integer(1));
    store(kRoutedPlaces, choices.number, place, is_mine);
    const Id token = b_.map(Fn::kDiv, {choices.number, piece_.scalar(piece_.facts.space[1])});
    store(kRoutedTokens, place, token, is_mine);
    store(kRoutedExperts, place, b_.spread(expert_, rows_, kColumns), is_mine);
    const Id end = b_.end_for(loop, {b_.plus(first, row_sum(product(ones, mine, zeros)))})[0];
    emitter_.close_scope();

    const Id is_first = b_.less(b_.range(rows_, 1, 0), b_.integer(1));
    store(kRoutedEnds, b_.spread(expert_, rows_, 1), end, is_first);
  }

 private:
  Id narrow(Id a) { return b_.map(Fn::kToI32, {a}); }
  Id wide(Id a) { return b_.map(Fn::kToI64, {a}); }
  Id whole(Id a) { return b_.map(Fn::kSaturate, {a}, DType::kI64); }

  Id as_number(Id condition) {
    const tile::Type& type = b_.type(condition);
    return b_.map(Fn::kSelect, {condition, b_.splat(Kind::kF32, type.rows, type.cols, 1),
                                b_.constant(Kind::kF32, 0)});
  }
  /// Ones where the condition holds, or everywhere.
  Id triangle(int size, const auto& condition) {
    const Id row = b_.range(size, size, 0);
    const Id col = b_.range(size, size, 1);
    Id holds = condition(row, col);
    if (holds == tile::kNone) holds = b_.less(col, b_.integer(size));
    return as_number(holds);
  }
  Id product(Id a, Id b, Id sum) { return b_.dot(a, b, sum, false, false, DType::kF16); }
  Id row_sum(Id a) { return b_.reduce(Fn::kWrapAdd, whole(a)); }

  Id begin_loop(std::vector<Id> initial) {
    const Id loop =
        b_.begin_for(b_.integer(0), count_, b_.integer(rows_ * kColumns), std::move(initial));
    emitter_.open_scope();
    return loop;
  }

  struct Choices {
    Id number;  ///< which ones
    Id expert;  ///< in range, whatever the operand says
    Id exist;
  };
  Choices next(Id loop, bool checks) {
    const Id at = b_.plus(b_.times(b_.range(rows_, kColumns, 0), b_.integer(kColumns)),
                          b_.range(rows_, kColumns, 1));
    const Id number = b_.plus(narrow(b_.induction(loop)), at);
    const Id exist = b_.less(number, count_);
    const Id given = emitter_.value(node_.inputs[0], {{number, piece_.facts.space}}, {exist});
    const Id experts = piece_.scalar(experts_of(piece_.facts));
    if (checks) {
      const int node = piece_.facts.number_of(node_);
      b_.check_index(given, experts, exist, protocol::check_of(node, 0));
    }
    const Id last = b_.minus(experts, b_.integer(1));
    const Id expert = b_.map(Fn::kMin, {b_.map(Fn::kMax, {given, b_.integer(0)}), last});
    return {number, expert, exist};
  }

  /// Stores a result at an index, where the kernel gives it.
  void store(std::size_t result, Id index, Id value, Id mask) {
    const ValueId stored = node_.outputs[result];
    const auto& outputs = body_.outputs();
    const auto found = std::ranges::find(outputs, stored);
    if (found == outputs.end()) return;
    const TensorType& type = body_.type(stored);
    emitter_.store(output_pointer(b_, static_cast<std::size_t>(found - outputs.begin())), type,
                   wide(value), {{index, type.shape}}, {mask});
  }

  const Piece& piece_;
  tile::Builder& b_;
  const Graph& body_;
  const Node& node_;
  int rows_;
  BodyEmitter emitter_;
  Id expert_;
  Id count_;
};

}  // namespace

extern const Work kRouting{
    .settings = kRoutingSettings,
    .matches = [](const Graph& body) { return std::ranges::any_of(body.nodes(), is_routing); },
    .refuse = [](const BodyFacts& facts) -> std::string {
      if (!facts.refusal.empty()) return facts.refusal;
      return is_moved_input(facts.body, facts.scan->inputs[0])
                 ? ""
                 : "every block of a routing reads all choices from memory";
    },
    .configs = [](const BodyFacts&, const Target&) -> std::vector<Config> {
      return {{{"num_warps", 4}, {"num_stages", 2}}};
    },
    .pieces = [](const BodyFacts& facts, const Config&) -> std::optional<Pieces> {
      return Pieces{.count = Expr(experts_of(facts)),
                    .warps_m = rows_of(facts) / static_cast<int>(kLeastRows)};
    },
    .emit = [](const Piece& piece) { Routing(piece).emit(); },
};

}  // namespace braid
