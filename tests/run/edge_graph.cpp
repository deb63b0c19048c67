#include "run/edge_graph.h"

#include <cmath>
#include <limits>
#include <random>
#include <string>

namespace braid::testing {
namespace {

constexpr DType kFloats[] = {DType::kF32, DType::kBF16, DType::kF16};
constexpr DType kNumbers[] = {DType::kF32, DType::kBF16, DType::kF16, DType::kI32,
                              DType::kI64, DType::kI8,   DType::kU8};
constexpr DType kAll[] = {DType::kF32, DType::kBF16, DType::kF16, DType::kI32,
                          DType::kI64, DType::kI8,   DType::kU8,  DType::kBool};

class Generator {
 public:
  explicit Generator(std::uint64_t seed) : random_(seed), graph_("edges") {
    world_ = 1 + pick(3);
    graph_.add_symbol("T", {1, 40, 1});
    graph_.add_group("tp", {world_, true, {}});
    const std::int64_t widths[] = {1, 5, 16, 24, 40, 64};
    width_ = widths[pick(6)];
    if (pick(4) == 0) rows_ = 1 + pick(9);
  }

  EdgeGraph run() {
    const int count = 3 + pick(8);
    for (int i = 0; i < count; ++i) step();
    const auto users = graph_.users();
    for (const Entry& entry : values_) {
      const bool unread = users[static_cast<std::size_t>(entry.id)].empty();
      if (graph_.value(entry.id).producer >= 0 && (unread || pick(4) == 0)) out(entry.id, true);
    }
    for (int i = pick(3); i > 0; --i) inexact_step();
    if (outputs_.exact.empty()) out(constant(pick_of(kAll)), true);
    outputs_.graph = std::move(graph_);
    return std::move(outputs_);
  }

 private:
  /// A value [rows, width]. `size` bounds its finite elements: about 8^size; kHuge: anything.
  struct Entry {
    ValueId id;
    DType dtype;
    int size;
  };
  static constexpr int kHuge = 100;
  static constexpr int kLargest = 4;  ///< that sums and products in f32 cannot make overflow

  int pick(int n) { return static_cast<int>(random_() % static_cast<std::uint64_t>(n)); }
  template <std::size_t N>
  DType pick_of(const DType (&dtypes)[N]) {
    return dtypes[pick(static_cast<int>(N))];
  }
  Shape matrix() { return {rows_, width_}; }

  ValueId op(const char* name, std::vector<ValueId> inputs, Attrs attrs = {}, int result = 0) {
    const NodeId id = graph_.add_node("", name, std::move(inputs), std::move(attrs));
    return graph_.node(id).outputs[static_cast<std::size_t>(result)];
  }
  ValueId input(DType dtype, Shape shape, const char* prefix) {
    GraphInput in{prefix + std::to_string(graph_.inputs().size()), {dtype, std::move(shape)}};
    in.per_rank = pick(2) == 0;
    return graph_.add_input(in);
  }
  void out(ValueId id, bool exact) {
    graph_.add_output(id);
    outputs_.exact.push_back(exact);
  }
  void add(ValueId id, int size) { values_.push_back({id, graph_.type(id).dtype, size}); }

  /// A value of the dtype: one there is, or a new input, whose name says whether it may be huge.
  Entry any(DType dtype, int largest = kHuge) {
    std::vector<Entry> found;
    for (const Entry& entry : values_) {
      if (entry.dtype == dtype && entry.size <= largest) found.push_back(entry);
    }
    if (!found.empty() && pick(3) != 0) {
      return found[static_cast<std::size_t>(pick(static_cast<int>(found.size())))];
    }
    const bool huge = largest == kHuge && pick(2) == 0;
    const ValueId id =
        input(dtype, pick(3) == 0 ? Shape{width_} : matrix(), huge ? "huge" : "edge");
    if (graph_.type(id).shape.size() == 2) add(id, huge ? kHuge : 1);
    return {id, dtype, huge ? kHuge : 1};
  }
  /// One of [rows, width].
  Entry whole(DType dtype, int largest = kHuge) {
    const Entry x = any(dtype, largest);
    if (graph_.type(x.id).shape.size() == 2) return x;
    return {op("expand", {x.id}, {{"shape", matrix()}}), dtype, x.size};
  }

  ValueId constant(DType dtype) {
    AttrValue value = -0.0;
    if (!is_float(dtype)) {
      const std::int64_t i64[] = {std::numeric_limits<std::int64_t>::min(),
                                  std::numeric_limits<std::int64_t>::max(), 9007199254740993, -1};
      const std::int64_t i32[] = {std::numeric_limits<std::int32_t>::min(),
                                  std::numeric_limits<std::int32_t>::max(), -1, 7};
      const std::int64_t i8[] = {-128, 127, -1, 7};
      const std::int64_t u8[] = {0, 255, 128, 1};
      value = (dtype == DType::kI64   ? i64
               : dtype == DType::kI32 ? i32
               : dtype == DType::kI8  ? i8
                                      : u8)[pick(4)];
    } else if (pick(2) == 0) {
      value = 1.5;
    }
    return op("full", {}, {{"value", value}, {"dtype", dtype}, {"shape", matrix()}});
  }

  void step() {
    switch (pick(11)) {
      case 0:
      case 1:
        return arithmetic();
      case 2:
        return unary();
      case 3:
        return comparison();
      case 4:
        return cast();
      case 5:
        return clamp();
      case 6:
        return extreme();
      case 7:
        return movement();
      case 8:
        return bits();
      case 9:
        return sequence();
      default:
        return collective();
    }
  }

  void arithmetic() {
    const DType dtype = pick_of(kNumbers);
    const Entry a = whole(dtype);
    if (pick(5) == 0) return add(op("maximum", {a.id, constant(dtype)}), a.size);
    const Entry b = any(dtype);
    const char* names[] = {"add", "sub", "mul", "maximum", "minimum", "div"};
    const int which = pick(is_float(dtype) ? 6 : 5);
    const int sizes[] = {
        std::max(a.size, b.size) + 1, std::max(a.size, b.size) + 1, a.size + b.size,
        std::max(a.size, b.size),     std::max(a.size, b.size),     kHuge};
    add(op(names[which], {a.id, b.id}), std::min(sizes[which], kHuge));
  }

  void unary() {
    const DType dtype = pick_of(kNumbers);
    const Entry x = whole(dtype);
    const char* names[] = {"neg", "abs", "relu", "sign", "floor", "round", "sqrt"};
    add(op(names[pick(is_float(dtype) ? 7 : 4)], {x.id}), x.size);
  }

  void bits() {
    const DType integers[] = {DType::kI32, DType::kI64, DType::kI8, DType::kU8};
    const char* names[] = {
        "bitwise_and",  "bitwise_or",         "bitwise_xor",         "remainder",  "fmod",
        "floor_divide", "bitwise_left_shift", "bitwise_right_shift", "bitwise_not"};
    const int which = pick(9);
    const bool of_truths = which < 3 && pick(4) == 0;
    const DType dtype = of_truths ? DType::kBool : pick_of(integers);
    std::vector<ValueId> operands{whole(dtype).id};
    if (which < 8) operands.push_back(any(dtype).id);
    add(op(names[which], std::move(operands)), kHuge);
  }

  void sequence() {
    const DType dtype = pick_of(kNumbers);
    const Entry x = whole(dtype);
    const std::int64_t dim = pick(2);
    const bool up = pick(2) == 0;
    if (!is_float(dtype) && up) return add(op("cumsum", {x.id}, {{"dim", dim}}), kHuge);
    if (pick(2) == 0) {
      return add(op("sort", {x.id}, {{"dim", dim}, {"descending", up}}, pick(2)), kHuge);
    }
    const Attrs best{
        {"k", std::int64_t{1} + pick(static_cast<int>(std::min<std::int64_t>(width_, 8)))},
        {"largest", up}};
    out(op("topk", {x.id}, best, pick(2)), true);
  }

  void comparison() {
    const DType dtype = pick_of(kNumbers);
    const char* names[] = {"lt", "le",          "gt",         "ge",         "eq",
                           "ne", "logical_and", "logical_or", "logical_xor"};
    const char* kinds[] = {"isnan", "isinf", "isfinite"};
    ValueId truth = pick(5) == 0 ? op(kinds[pick(3)], {whole(dtype).id})
                                 : op(names[pick(9)], {whole(dtype).id, any(dtype).id});
    if (pick(3) == 0) truth = op("logical_not", {truth});
    if (pick(2) == 0) return add(truth, 0);
    const DType of = pick_of(kAll);
    const Entry a = any(of);
    if (pick(3) == 0) {
      const ValueId value = op("full", {}, {{"value", std::int64_t{1}}, {"dtype", of}});
      return add(op("masked_fill", {a.id, truth, value}), a.size);
    }
    const Entry b = any(of);
    add(op("where", {truth, a.id, b.id}), std::max(a.size, b.size));
  }

  void cast() {
    const Entry x = whole(pick_of(kAll));
    if (is_float(x.dtype) && pick(3) == 0) {
      const DType narrow = pick(2) == 0 ? DType::kF8E4M3 : DType::kF8E5M2;
      const ValueId y = op("to", {x.id}, {{"dtype", narrow}});
      if (pick(2) == 0) out(y, true);
      return add(op("to", {y}, {{"dtype", pick_of(kAll)}}), x.size);
    }
    const bool grows = !is_float(x.dtype) || x.size == kHuge;
    add(op("to", {x.id}, {{"dtype", pick_of(kAll)}}), grows ? kHuge : x.size);
  }

  void clamp() {
    const DType dtype = pick_of(kNumbers);
    const Entry x = whole(dtype);
    Attrs bounds;
    if (is_float(dtype)) {
      bounds["min"] = pick(2) == 0 ? -0.0 : -1.5;
      if (pick(2) == 0) bounds["max"] = pick(2) == 0 ? 0.0 : 2.5;
    } else {
      const std::int64_t lows[] = {0, 3, 100};
      bounds["min"] = lows[pick(3)];
      if (pick(2) == 0) bounds["max"] = std::int64_t{dtype == DType::kI8 ? 120 : 200};
      if (dtype == DType::kI64 && pick(2) == 0) bounds["max"] = std::int64_t{9007199254740993};
    }
    add(op("clamp", {x.id}, bounds), x.size);
  }

  void extreme() {
    const DType dtype = pick_of(kNumbers);
    const Entry x = whole(dtype);
    const std::vector<std::int64_t> dims[] = {{0}, {1}, {}};
    const char* names[] = {"amax", "amin", "argmax", "argmin", "any", "all"};
    const int which = pick(6);
    const auto& dim = dims[pick(3)];
    const ValueId y = op(names[which], {x.id}, {{"dim", dim}, {"keepdim", true}});
    if (which >= 2 || pick(2) == 0) return out(y, true);
    add(op(pick(2) == 0 ? "maximum" : "add", {x.id, y}), std::min(x.size + 1, kHuge));
  }

  void movement() {
    const Entry x = whole(pick_of(kAll));
    const Attrs last{{"dim", std::int64_t{1}}};
    switch (pick(5)) {
      case 0: {
        const Attrs swap{{"dim0", std::int64_t{0}}, {"dim1", std::int64_t{1}}};
        const ValueId y = op("transpose", {x.id}, swap);
        return add(op("transpose", {op("where", {op("eq", {y, y}), y, y})}, swap), x.size);
      }
      case 1:
        return out(op("cat", {x.id, whole(x.dtype).id}, last), true);
      case 2:
        return out(
            op("gather",
               {input(x.dtype, {rows_, 8}, "edge"), input(DType::kI64, {rows_, width_}, "index")},
               last),
            true);
      case 3:
        return out(op("index_select", {x.id, input(DType::kI64, {3}, "first")},
                      {{"dim", std::int64_t{1}}}),
                   true);
      default:
        return add(op("embedding",
                      {input(x.dtype, {8, width_}, "edge"), input(DType::kI32, {rows_}, "index")}),
                   1);
    }
  }

  void collective() {
    const DType dtype = pick_of(kNumbers);
    const std::string group = "tp";
    // The sum of three floats depends on intermediate rounding.
    const bool sums = !is_float(dtype) || world_ <= 2;
    const Entry x = whole(dtype, is_float(dtype) && sums && pick(2) == 0 ? kLargest : kHuge);
    const auto waited = [&](ValueId id) { return op("wait_tensor", {id}); };
    switch (pick(4)) {
      case 0:
        return add(waited(op("broadcast", {x.id}, {{"src", world_ - 1}, {"group", group}})),
                   x.size);
      case 1:
        return out(waited(op("all_gather_into_tensor", {x.id},
                             {{"dim", std::int64_t{pick(2)}}, {"group", group}})),
                   true);
      default: {
        const char* names[] = {"min", "max", "sum", "product"};
        const bool all = !is_float(dtype) || (sums && x.size <= kLargest);
        const std::string reduce = names[pick(all ? 4 : 2)];
        const ValueId y = op("all_reduce", {x.id}, {{"reduce_op", reduce}, {"group", group}});
        return add(waited(y), std::min(2 * x.size + 1, kHuge));
      }
    }
  }

  /// An op whose last bits depend on how it is computed.
  void inexact_step() {
    const DType dtype = pick_of(kFloats);
    const Entry x = whole(dtype, kLargest);
    const Attrs row{{"dim", std::vector<std::int64_t>{1}}};
    const auto vector = [&] { return input(dtype, {width_}, "edge"); };
    switch (pick(7)) {
      case 0: {
        const char* names[] = {"exp", "tanh", "erf", "sigmoid", "silu", "gelu", "cos", "sin"};
        return out(op(names[pick(8)], {x.id}), false);
      }
      case 1: {
        const char* names[] = {"log", "sqrt", "rsqrt"};
        return out(op(names[pick(3)], {op("abs", {x.id})}), false);
      }
      case 2:
        return out(op(pick(2) == 0 ? "softmax" : "log_softmax", {x.id}), false);
      case 3:
        return out(op("rms_norm", {x.id, vector()}, {{"eps", 1e-5}}), false);
      case 4:
        return out(op("layer_norm", {x.id, vector(), vector()}, {{"eps", 1e-2}}), false);
      case 5:
        return out(op(pick(2) == 0 ? "sum" : "mean", {op("abs", {x.id})}, row), false);
      default:
        return out(op("mm", {x.id, input(dtype, {width_, 1 + pick(40)}, "rare")}), false);
    }
  }

  std::mt19937_64 random_;
  Graph graph_;
  EdgeGraph outputs_;
  std::int64_t world_ = 1;
  std::int64_t width_ = 1;
  Dim rows_ = Dim::symbol("T");
  std::vector<Entry> values_;
};

double float_edge(DType dtype, bool huge, std::mt19937_64& random) {
  const double inf = std::numeric_limits<double>::infinity();
  // The least subnormal and the least normal value.
  const bool is_half = dtype == DType::kF16;
  const double least = is_half ? 0x1p-24 : dtype == DType::kBF16 ? 0x1p-133 : 0x1p-149;
  const double normal = is_half ? 0x1p-14 : 0x1p-126;
  const double largest = is_half ? 65504 : dtype == DType::kBF16 ? 0x1.FEp127 : 0x1.FFFFFEp127;
  const double edges[] = {
      std::nan(""), std::nan(""), inf,       -inf,     -0.0,         0.0,
      least,        -least,       3 * least, normal,   -normal,      normal - least,
      0.5,          -1,           largest,   -largest, 2147483648.0, 9223372036854775808.0,
      480,          1e5};
  const std::size_t count = huge ? std::size(edges) : std::size(edges) - 6;
  return edges[random() % count];
}

std::int64_t integer_edge(std::mt19937_64& random) {
  using Limits = std::numeric_limits<std::int64_t>;
  constexpr std::int64_t kTwo53 = std::int64_t{1} << 53;
  const std::int64_t edges[] = {Limits::min(),
                                Limits::min() + 1,
                                Limits::max(),
                                Limits::max() - 1,
                                kTwo53 + 1,
                                -kTwo53 - 1,
                                0x7FFFFFFF,
                                -0x80000000LL,
                                0x80000000LL,
                                -1,
                                0,
                                255};
  return edges[random() % std::size(edges)];
}

}  // namespace

EdgeGraph edge_graph(std::uint64_t seed) { return Generator(seed).run(); }

RankTensors edge_inputs(const Graph& graph, const Bindings& bindings, std::uint64_t seed) {
  RankTensors inputs = random_inputs(graph, bindings, seed);
  std::mt19937_64 random(seed);
  for (std::size_t i = 0; i < graph.inputs().size(); ++i) {
    const GraphInput& input = graph.inputs()[i];
    const std::string& name = input.name;
    if (name.starts_with("index") || name.starts_with("first")) {
      // Only the first column of an index_select surely exists.
      if (name.starts_with("index")) continue;
      for (auto& rank : inputs) {
        rank[i] = HostTensor::from_integers(DType::kI64, {3}, {0, 0, 0});
      }
      continue;
    }
    const std::uint64_t rates[] = {2, 8, 8, 64};
    const std::uint64_t rate = name.starts_with("rare") ? 200 : rates[random() % 4];
    const bool huge = name.starts_with("huge");
    for (std::size_t rank = 0; rank < inputs.size(); ++rank) {
      HostTensor& x = inputs[rank][i];
      if (rank > 0 && !input.per_rank) {
        x = inputs[0][i];
      } else if (is_float(x.dtype)) {
        std::vector<double> values = x.to_doubles();
        for (double& value : values) {
          if (random() % rate == 0) value = float_edge(x.dtype, huge, random);
        }
        x = HostTensor::from_doubles(x.dtype, x.shape, values);
      } else {
        std::vector<std::int64_t> values = x.to_integers();
        for (std::int64_t& value : values) {
          if (random() % rate == 0) value = integer_edge(random);
        }
        x = HostTensor::from_integers(x.dtype, x.shape, values);
      }
    }
  }
  return inputs;
}

}  // namespace braid::testing
