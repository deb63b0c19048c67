#include "codegen/templates/body.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "braid/error.h"
#include "ir/op_registry.h"
#include "ir/pointwise.h"

namespace braid {

using tile::Fn;
using tile::Id;
using tile::Kind;
using tile::kNone;

std::int64_t round_up_to_power_of_two(std::int64_t n) {
  std::int64_t power = 1;
  while (power < n) power *= 2;
  return power;
}

std::vector<Expr> dense_strides(const Shape& shape) {
  std::vector<Expr> strides(shape.size(), Expr(1));
  for (std::size_t i = shape.size(); i-- > 1;) strides[i - 1] = strides[i] * Expr(shape[i]);
  return strides;
}

namespace {

/// The strides of a dense tensor of `shape`, broadcast to `space` (aligned at the last dim).
std::vector<Expr> broadcast_strides(const Shape& shape, const Shape& space) {
  const std::vector<Expr> dense = dense_strides(shape);
  std::vector<Expr> strides(space.size(), Expr(0));
  const std::size_t lead = space.size() - shape.size();
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == space[lead + i] && shape[i] != Dim(1)) strides[lead + i] = dense[i];
  }
  return strides;
}

bool is_reduction(const Node& node) {
  return node.op->op_class == OpClass::kReduction || node.op->op_class == OpClass::kNorm;
}

std::vector<std::int64_t> reduced_dims(const Node& node, std::size_t rank) {
  std::vector<std::int64_t> dims;
  if (node.op->op_class == OpClass::kNorm) return {static_cast<std::int64_t>(rank) - 1};
  if (const auto* given = node.attr<std::vector<std::int64_t>>("dim")) dims = *given;
  if (dims.empty()) {
    dims.resize(rank);
    std::iota(dims.begin(), dims.end(), 0);
  }
  for (std::int64_t& d : dims) {
    if (d < 0) d += static_cast<std::int64_t>(rank);
  }
  std::sort(dims.begin(), dims.end());
  return dims;
}

/// How many trailing dims are reduced, or nothing when others are.
std::optional<int> trailing(const std::vector<std::int64_t>& dims, std::size_t rank) {
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] != static_cast<std::int64_t>(rank - dims.size() + i)) return std::nullopt;
  }
  return static_cast<int>(dims.size());
}

std::int64_t max_of_dims(const Shape& shape, std::size_t from, const SymbolTable& symbols) {
  std::int64_t n = 1;
  for (std::size_t i = from; i < shape.size(); ++i) n *= shape[i].max(symbols);
  return n;
}

class Analysis {
 public:
  Analysis(const Graph& body, std::string_view template_name)
      : body_(body), template_(template_name) {}

  BodyInfo run() {
    info_.refusal = find_anchors();
    if (info_.refusal.empty()) info_.refusal = place_nodes();
    return std::move(info_);
  }

 private:
  std::string find_anchors() {
    const Node* reduction = nullptr;
    for (const Node& node : body_.nodes()) {
      if (node.op_name() == "all_reduce") {
        if (info_.all_reduce != nullptr) return "a kernel holds one collective";
        if (body_.value(node.inputs[0]).producer >= 0)
          return "the operand of a collective must be in memory";
        info_.all_reduce = &node;
      } else if (node.op->op_class == OpClass::kMatmul) {
        if (info_.mm != nullptr) return "a kernel holds one matmul";
        info_.mm = &node;
      } else if (is_reduction(node) && reduction == nullptr) {
        reduction = &node;
      }
    }
    if (info_.mm != nullptr) {
      if (info_.all_reduce != nullptr) return "a matmul and a collective are separate kernels";
      if (reduction != nullptr)
        return "a reduction needs whole rows, a matmul computes tiles of them";
      if (!is_float(body_.type(info_.mm->inputs[0]).dtype)) {
        return fmt::format("no matmul of {}", dtype_name(body_.type(info_.mm->inputs[0]).dtype));
      }
      info_.space = body_.type(info_.mm->outputs[0]).shape;
    } else if (reduction != nullptr) {
      return reduction_space(*reduction);
    } else if (info_.all_reduce != nullptr) {
      info_.space = body_.type(info_.all_reduce->outputs[0]).shape;
    } else if (!body_.nodes().empty()) {
      info_.space = body_.type(body_.nodes().front().outputs[0]).shape;
    }
    return "";
  }

  std::string reduction_space(const Node& reduction) {
    info_.space = body_.type(reduction.inputs[0]).shape;
    const auto dims = reduced_dims(reduction, info_.space.size());
    const auto count = trailing(dims, info_.space.size());
    const bool held =
        count && max_of_dims(info_.space, info_.space.size() - static_cast<std::size_t>(*count),
                             body_.symbols()) <= kMaxRow;
    if (held) {
      info_.col_dims = *count;
      return "";
    }
    if (reduction.op->op_class == OpClass::kNorm) {
      return fmt::format("rows wider than {} elements", kMaxRow);
    }
    if (body_.nodes().size() > 1) {
      return count ? fmt::format("a reduction over more than {} elements runs alone", kMaxRow)
                   : "a reduction over leading dims runs alone";
    }
    info_.loop_reduction = &reduction;
    return "";
  }

  std::optional<Place> place_of(const Shape& shape) const {
    if (shape == info_.space) return Place::kFull;
    if (info_.col_dims == 0) return std::nullopt;
    const auto rows = static_cast<std::ptrdiff_t>(info_.space.size()) - info_.col_dims;
    Shape kept(info_.space.begin(), info_.space.begin() + rows);
    if (shape == kept) return Place::kRowDropped;
    kept.resize(info_.space.size(), Dim(1));
    if (shape == kept) return Place::kRowKept;
    return std::nullopt;
  }

  std::string place_nodes() {
    info_.places.assign(body_.values().size(), Place::kFull);
    if (info_.loop_reduction != nullptr) return "";
    for (const Node& node : body_.nodes()) {
      for (ValueId out : node.outputs) {
        const Shape& shape = body_.type(out).shape;
        const bool absorbed = node.op_name() == "transpose" && info_.mm != nullptr;
        if (absorbed) continue;
        const auto place = place_of(shape);
        if (!place) {
          return fmt::format("'{}' gives {}, the kernel works on {}", node.op_name(),
                             body_.type(out).str(),
                             TensorType{body_.type(out).dtype, info_.space}.str());
        }
        info_.places[static_cast<std::size_t>(out)] = *place;
      }
      if (std::string reason = check_operands(node); !reason.empty()) return reason;
    }
    return "";
  }

  std::string check_operands(const Node& node) const {
    const auto computed = [&](ValueId v) {
      const NodeId producer = body_.value(v).producer;
      return producer >= 0;
    };
    if (node.op_name() == "transpose") {
      if (computed(node.inputs[0])) return "a transpose of a computed value goes through memory";
      if (info_.mm == nullptr && body_.nodes().size() > 1) return "a transpose runs alone";
      return "";
    }
    if (&node == info_.mm) {
      for (ValueId v : node.inputs) {
        if (computed(v) && body_.node(body_.value(v).producer).op_name() != "transpose") {
          return "a matmul reads its operands from memory";
        }
      }
      return "";
    }
    if (is_reduction(node)) {
      const auto dims = reduced_dims(node, body_.type(node.inputs[0]).shape.size());
      if (body_.type(node.inputs[0]).shape != info_.space ||
          trailing(dims, info_.space.size()) != std::optional<int>(info_.col_dims)) {
        return "reductions of one kernel go over the same dims";
      }
    }
    const Place out = info_.places[static_cast<std::size_t>(node.outputs[0])];
    for (ValueId v : node.inputs) {
      if (!computed(v)) continue;
      const Place in = info_.places[static_cast<std::size_t>(v)];
      if (is_reduction(node)) {
        if (in != Place::kFull) return "a reduction of a reduced value goes through memory";
      } else if (in == Place::kFull ? out != Place::kFull : in != out && in != Place::kRowKept) {
        return fmt::format("'{}' would broadcast a reduced value along rows", node.op_name());
      }
    }
    return "";
  }

  const Graph& body_;
  std::string_view template_;
  BodyInfo info_;
};

}  // namespace

BodyInfo analyze(const Graph& body, std::string_view template_name) {
  return Analysis(body, template_name).run();
}

Id scalar_of(tile::Builder& builder, const Expr& expr, const SymbolTable& symbols) {
  const auto dim = expr.dim();
  return builder.scalar(expr, dim ? std::max<std::int64_t>(1, dim->divisor(symbols)) : 1);
}

Id linear_offset(tile::Builder& b, Id index, std::vector<Dim> dims, std::vector<Expr> strides,
                 const SymbolTable& symbols) {
  // Merge neighbours that step as one dim, drop dims of extent 1.
  for (std::size_t i = dims.size(); i-- > 0;) {
    if (dims[i] == Dim(1)) {
      dims.erase(dims.begin() + static_cast<std::ptrdiff_t>(i));
      strides.erase(strides.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }
  std::vector<Expr> extents(dims.begin(), dims.end());
  for (std::size_t i = extents.size(); i-- > 1;) {
    const bool still = strides[i] == Expr(0) && strides[i - 1] == Expr(0);
    if (!still && !(strides[i - 1] == strides[i] * extents[i])) continue;
    extents[i - 1] = extents[i - 1] * extents[i];
    strides[i - 1] = strides[i];
    extents.erase(extents.begin() + static_cast<std::ptrdiff_t>(i));
    strides.erase(strides.begin() + static_cast<std::ptrdiff_t>(i));
  }
  // A 32-bit index was chosen because every offset fits.
  const auto scalar = [&](const Expr& expr) {
    const Id id = scalar_of(b, expr, symbols);
    return b.type(index).kind == Kind::kI32 ? b.map(Fn::kToI32, {id}) : id;
  };
  Id sum = kNone;
  Expr inner = 1;
  for (std::size_t i = extents.size(); i-- > 0;) {
    if (!(strides[i] == Expr(0))) {
      Id at = index;
      if (!(inner == Expr(1))) at = b.map(Fn::kDiv, {at, scalar(inner)});
      if (i != 0) at = b.map(Fn::kRem, {at, scalar(extents[i])});
      const Id term = b.map(Fn::kMul, {at, scalar(strides[i])});
      sum = sum == kNone ? term : b.map(Fn::kAdd, {term, sum});
    }
    inner = inner * extents[i];
  }
  return sum == kNone ? b.integer(0) : sum;
}

BodyEmitter::BodyEmitter(tile::Builder& builder, const Graph& body, const BodyInfo& info,
                         std::vector<Axis> axes, int rows, int cols, Id mask)
    : b_(builder),
      body_(body),
      info_(info),
      axes_(std::move(axes)),
      rows_(rows),
      cols_(cols),
      mask_(mask) {}

BodyEmitter::Address BodyEmitter::address(Id pointer, DType dtype, const std::vector<Expr>& strides,
                                          bool whole_row) {
  Id offset = kNone;
  std::size_t at = 0;
  for (const Axis& axis : axes_) {
    const auto first = strides.begin() + static_cast<std::ptrdiff_t>(at);
    const auto last = first + static_cast<std::ptrdiff_t>(axis.dims.size());
    at += axis.dims.size();
    const bool scalar = b_.type(axis.index).is_scalar();
    if (whole_row && !scalar) continue;
    const Id term = linear_offset(b_, axis.index, axis.dims, {first, last}, body_.symbols());
    if (scalar) {
      pointer = b_.ptr_add(pointer, term, dtype);
    } else {
      offset = offset == kNone ? term : b_.map(Fn::kAdd, {offset, term});
    }
  }
  if (offset == kNone) offset = b_.integer(0);
  if (b_.type(offset).is_scalar()) {
    // Every element of the tile reads one place: a [rows, 1] tile is enough where the row is a
    // scalar.
    const Id zero = b_.splat(Kind::kI32, whole_row ? 1 : rows_, whole_row ? 1 : cols_, 0);
    offset = b_.map(Fn::kAdd, {zero, offset});
  }
  return {pointer, offset};
}

Id BodyEmitter::load_input(ValueId value, const std::vector<Expr>& strides, bool whole_row) {
  const DType dtype = body_.type(value).dtype;
  const Id pointer = b_.param(
      {.kind = KernelParam::Kind::kInput, .index = body_.value(value).result, .group = {}}, 16);
  const Address at = address(pointer, dtype, strides, whole_row);
  return b_.load(at.pointer, at.offset, whole_row ? kNone : mask_, dtype);
}

Id BodyEmitter::operand(ValueId value, const Node& node) {
  if (auto it = values_.find(value); it != values_.end()) return it->second;
  const Place place = info_.places[static_cast<std::size_t>(node.outputs[0])];
  const Shape& shape = body_.type(value).shape;
  const bool reads_space = is_reduction(node) || place == Place::kFull;
  std::vector<Expr> strides;
  if (reads_space || place == Place::kRowKept) {
    strides = broadcast_strides(shape, info_.space);
  } else {
    const Shape rows(info_.space.begin(), info_.space.end() - info_.col_dims);
    strides = broadcast_strides(shape, rows);
    strides.resize(info_.space.size(), Expr(0));
  }
  // Where the row is a scalar and the columns do not move, one element serves the whole tile.
  bool whole_row = !reads_space;
  if (!whole_row && !axes_.empty()) {
    std::size_t at = 0;
    bool moves = false;
    for (const Axis& axis : axes_) {
      for (std::size_t i = 0; i < axis.dims.size(); ++i, ++at) {
        moves = moves || (!b_.type(axis.index).is_scalar() && !(strides[at] == Expr(0)));
      }
    }
    whole_row = !moves && rows_ == 1;
  }
  return load_input(value, strides, whole_row);
}

Id BodyEmitter::masked(Id value, double fill) {
  if (mask_ == kNone) return value;
  return b_.map(Fn::kSelect, {mask_, value, b_.constant(b_.type(value).kind, fill)});
}

Id BodyEmitter::peers_sum(const Node& node) {
  const ValueId value = node.inputs[0];
  const std::string& group = *node.attr<std::string>("group");
  const DType dtype = body_.type(value).dtype;
  const Id offset = b_.param(
      {.kind = KernelParam::Kind::kOffset, .index = body_.value(value).result, .group = group},
      256);
  const std::vector<Expr> strides = dense_strides(info_.space);
  Id sum = kNone;
  for (int rank = 0; rank < b_.program().world; ++rank) {
    const Address at = address(b_.peer(offset, rank), dtype, strides, false);
    const Id part = b_.load(at.pointer, at.offset, mask_, dtype);
    sum = sum == kNone ? part : b_.map(Fn::kAdd, {sum, part});
  }
  return sum;
}

Id BodyEmitter::norm(const Node& node, Id x, std::size_t weight) {
  const Dim& extent = info_.space.back();
  const SymbolTable& symbols = body_.symbols();
  const Id sum = b_.reduce(Fn::kAdd, masked(b_.map(Fn::kMul, {x, x}), 0));
  const Id n = b_.map(Fn::kToF32, {scalar_of(b_, Expr(extent), symbols)});
  const Id mean = b_.map(Fn::kDiv, {sum, n});
  const Id eps = b_.constant(Kind::kF32, *node.attr<double>("eps"));
  const Id scale = b_.map(Fn::kRsqrt, {b_.map(Fn::kAdd, {mean, eps})});
  Id y = b_.map(Fn::kMul, {x, scale});
  if (node.inputs.size() > weight) y = b_.map(Fn::kMul, {y, operand(node.inputs[weight], node)});
  return y;
}

void BodyEmitter::node(const Node& node) {
  const auto result = [&](std::size_t i) { return node.outputs[i]; };
  const auto rounded = [&](std::size_t i, Id id) {
    values_[result(i)] = b_.round(body_.type(result(i)).dtype, id);
  };
  const std::string_view op = node.op_name();
  switch (node.op->op_class) {
    case OpClass::kCollective:
      rounded(0, peers_sum(node));
      return;
    case OpClass::kView: {
      // A transpose of an input, alone in its kernel: the same elements with two strides exchanged.
      std::vector<Expr> strides = dense_strides(body_.type(node.inputs[0]).shape);
      const auto rank = static_cast<std::int64_t>(strides.size());
      const auto dim = [&](const char* key) {
        const std::int64_t d = *node.attr<std::int64_t>(key);
        return static_cast<std::size_t>(d < 0 ? d + rank : d);
      };
      std::swap(strides[dim("dim0")], strides[dim("dim1")]);
      values_[result(0)] = load_input(node.inputs[0], strides, false);
      return;
    }
    case OpClass::kNorm: {
      Id x = operand(node.inputs[0], node);
      if (op == "add_rms_norm2") {
        x = b_.map(Fn::kAdd, {x, operand(node.inputs[1], node)});
        rounded(1, x);
        rounded(0, norm(node, values_[result(1)], 2));
      } else {
        rounded(0, norm(node, x, 1));
      }
      return;
    }
    case OpClass::kReduction: {
      const bool is_max = op == "amax";
      const Id x = operand(node.inputs[0], node);
      const double lowest = b_.type(x).kind == Kind::kF32 ? -INFINITY : -9223372036854775808.0;
      rounded(0, b_.reduce(is_max ? Fn::kMax : Fn::kAdd, masked(x, is_max ? lowest : 0)));
      return;
    }
    case OpClass::kPointwise:
    case OpClass::kCopy: {
      std::vector<tile::TileExpr> x;
      for (ValueId v : node.inputs) x.push_back({&b_, operand(v, node)});
      Id y = pointwise<tile::TileExpr>(op, x).id;
      const bool to_float = is_float(body_.type(result(0)).dtype);
      if (to_float != (b_.type(y).kind == Kind::kF32)) {
        y = b_.map(to_float ? Fn::kToF32 : Fn::kToI64, {y});
      }
      rounded(0, y);
      return;
    }
    default:
      throw_internal(node.name, fmt::format("no tile form of '{}'", op));
  }
}

void BodyEmitter::emit() {
  for (const Node& n : body_.nodes()) {
    if (values_.contains(n.outputs[0]) || (info_.mm != nullptr && n.op_name() == "transpose"))
      continue;
    node(n);
  }
  for (std::size_t i = 0; i < body_.outputs().size(); ++i) store(i);
}

void BodyEmitter::store(std::size_t output) {
  const ValueId value = body_.outputs()[output];
  const DType dtype = body_.type(value).dtype;
  const bool row = info_.places[static_cast<std::size_t>(value)] != Place::kFull;
  std::vector<Expr> strides = dense_strides(info_.space);
  if (row) {
    const Shape rows(info_.space.begin(), info_.space.end() - info_.col_dims);
    strides = dense_strides(rows);
    strides.resize(info_.space.size(), Expr(0));
  }
  const Id pointer = b_.param(
      {.kind = KernelParam::Kind::kOutput, .index = static_cast<int>(output), .group = {}}, 16);
  const Address at = address(pointer, dtype, strides, row);
  Id id = values_.at(value);
  const tile::Type& have = b_.type(id);
  const tile::Type& want = b_.type(at.offset);
  if (have.rows != want.rows || have.cols != want.cols) {
    // A value that is the same for the whole tile (every operand was) is spread over it.
    id = b_.map(Fn::kAdd, {b_.splat(have.kind, want.rows, want.cols, 0), id});
  }
  b_.store(at.pointer, at.offset, id, row ? kNone : mask_, dtype);
}

}  // namespace braid
