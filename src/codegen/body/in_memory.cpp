#include "codegen/body/in_memory.h"

#include "codegen/body/coords.h"
#include "ir/op_registry.h"
#include "ir/views.h"

namespace braid {
namespace {

InMemory dense(int input, const Shape& shape) {
  InMemory result{.input = input, .dims = {}};
  const std::vector<Expr> strides = dense_strides(shape);
  for (std::size_t d = 0; d < shape.size(); ++d) result.dims.push_back({shape[d], strides[d], d});
  return result;
}

}  // namespace

std::optional<InMemory> in_memory(const Graph& body, ValueId value) {
  const Shape& shape = body.type(value).shape;
  const NodeId producer = body.value(value).producer;
  if (producer < 0) return dense(body.value(value).result, shape);
  const Node& node = body.node(producer);
  if (node.inputs.empty()) return std::nullopt;
  std::optional<InMemory> from = in_memory(body, node.inputs[0]);
  if (!from) return std::nullopt;
  if (node.op->view == View::kFlat && from->is_dense) return dense(from->input, shape);
  if (node.op->view == View::kPermute) {
    InMemory result{.input = from->input, .dims = {}, .is_dense = false};
    for (const std::size_t d : permutation(node.op_name(), node.attrs, shape.size())) {
      result.dims.push_back(from->dims[d]);
    }
    return result;
  }
  if (node.op->view == View::kPart) {
    const SliceRange range = part_ranges(node.attrs, body.type(node.inputs[0]).shape,
                                         body.symbols())[body.value(value).result];
    if (range.step != 1) return std::nullopt;
    InMemory::Along& along = from->dims[range.axis];
    along.first = along.first + range.start;
    along.cut = true;
    from->is_dense = false;
    return from;
  }
  return std::nullopt;
}

namespace {

std::optional<MatrixInMemory> as_matrix(InMemory memory, DType dtype, const SymbolTable& symbols) {
  constexpr std::int64_t kBytes = 16, kMost = std::int64_t{1} << 31;
  if (memory.dims.size() < 2 || memory.dims.size() > kMostOuter + 2) return {};
  MatrixInMemory matrix{std::move(memory), false};
  matrix.transposed = matrix.from_end(2).place > matrix.from_end(1).place;
  const auto bytes = static_cast<std::int64_t>(dtype_size(dtype));
  for (const InMemory::Along& along : matrix.memory.dims) {
    if (along.extent.max(symbols) >= kMost) return {};
    if (&along == &matrix.columns() ? along.stride != Expr(1)
                                    : divisor_of(along.stride, symbols) * bytes % kBytes != 0) {
      return {};
    }
  }
  return matrix;
}

}  // namespace

std::optional<MatrixInMemory> matrix_in_memory(const Graph& body, ValueId value) {
  std::optional<InMemory> memory = in_memory(body, value);
  if (!memory) return std::nullopt;
  return as_matrix(*std::move(memory), body.type(value).dtype, body.symbols());
}

bool has_rows_for_maps(const TensorType& type, const SymbolTable& symbols) {
  constexpr int kNoInput = -1;
  return as_matrix(dense(kNoInput, type.shape), type.dtype, symbols).has_value();
}

TileMap MatrixInMemory::map(int box, DType dtype) const {
  const Expr width(columns().extent);
  TileMap map{.rows = Expr(rows().extent), .columns = width, .box = box, .dtype = dtype};
  if (rows().stride != width) map.row_stride = rows().stride;
  for (std::size_t d = outer(); d-- > 0;) {
    map.outer.push_back({Expr(memory.dims[d].extent), memory.dims[d].stride});
  }
  return map;
}

}  // namespace braid
