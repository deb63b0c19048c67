// Outputs, and where updates (ir/mutation.h) put them.

#include <limits>

#include "codegen/body/emitter.h"
#include "codegen/protocol.h"
#include "ir/mutation.h"
#include "ir/views.h"

namespace braid {

using tile::Fn;
using tile::Id;
using tile::Kind;

void BodyEmitter::store(std::size_t output, const Coords& at, const Mask& mask) {
  const ValueId v = body_.outputs()[output];
  const Node* update = update_of(body_, v);
  const ValueId stored = update == nullptr ? v : update->inputs.back();
  Coords own = coords_.reshape(at, body_.type(stored).shape);
  if (update != nullptr && adds_up(*update)) {
    return store_sum(*update, output_pointer(b_, output), own, mask);
  }
  const Id id = value(stored, own, mask);
  Mask exists = mask;
  if (update != nullptr) own = target(*update, own, exists).at;
  store(output_pointer(b_, output), body_.type(v), id, own, exists);
}

/// An index of `index_put` counts from the end where it is negative.
Id BodyEmitter::update_index(const Node& update, std::size_t operand, const Coords& at,
                             const Mask& mask) {
  const UpdateForm form = update_form(update);
  const std::size_t dim = source_dim(body_, update);
  const Id index =
      value(update.inputs[operand], form == UpdateForm::kEach ? at : coords_.pick(at, {dim}), mask);
  if (form != UpdateForm::kFirstDims) return index;
  const Dim& extent = body_.type(update.outputs[0]).shape[operand - 1];
  const Id end = scalar_of(b_, Expr(extent), body_.symbols());
  const Id begin = b_.map(Fn::kSub, {b_.integer(-1), end});
  const Id counts_back =
      b_.map(Fn::kAnd, {b_.map(Fn::kLt, {index, b_.integer(0)}), b_.map(Fn::kLt, {begin, index})});
  return b_.map(Fn::kSelect, {counts_back, b_.map(Fn::kAdd, {index, end}), index});
}

BodyEmitter::Target BodyEmitter::target(const Node& update, const Coords& at, Mask& mask) {
  const Shape& whole = body_.type(update.outputs[0]).shape;
  const UpdateForm form = update_form(update);
  Target to{at, {}};
  if (form == UpdateForm::kRange) {
    const SliceRange range = slice_range(update.attrs, whole, body_.symbols());
    Axis& axis = to.at[coords_.isolate(to.at, range.axis)];
    axis.index = coords_.scaled(axis.index, range.start, range.step);
    axis.dims = {whole[range.axis]};
    return to;
  }
  const std::size_t dim = source_dim(body_, update);
  const Mask given = mask;
  const int node = facts_.number_of(update);
  std::vector<Axis> places;
  for (std::size_t i = 1; i + 1 < update.inputs.size(); ++i) {
    const Dim& extent = whole[dim + i - 1];
    const Id index = update_index(update, i, at, given);
    const Id end = scalar_of(b_, Expr(extent), body_.symbols());
    const bool of_operand = form == UpdateForm::kFirstDims;
    b_.check_index(index, end, conjunction(given, b_.type(index).cols),
                   of_operand ? protocol::check_of(node, static_cast<int>(i)) : node);
    mask.push_back(b_.map(Fn::kLt, {b_.integer(-1), index}));
    mask.push_back(b_.map(Fn::kLt, {index, end}));
    to.indices.push_back(index);
    places.push_back({facts_.narrow ? b_.map(Fn::kToI32, {index}) : index, {extent}});
  }
  const auto first = static_cast<std::ptrdiff_t>(coords_.isolate(to.at, dim));  // may move to.at
  to.at.insert(to.at.erase(to.at.begin() + first), places.begin(), places.end());
  if (form == UpdateForm::kEach) {
    // There may be fewer elements than places.
    for (std::size_t d = 0; d < whole.size(); ++d) {
      if (d != dim) to.at[coords_.isolate(to.at, d)].dims = {whole[d]};
    }
  }
  return to;
}

/// All elements for one place are added by the thread that has the first of them, in order, so that
/// the sum depends on no other. Each looks through all indices along the dim.
void BodyEmitter::store_sum(const Node& update, Id pointer, const Coords& at, const Mask& mask) {
  const TensorType& type = body_.type(update.outputs[0]);
  const ValueId source = update.inputs.back();
  const std::size_t dim = source_dim(body_, update);
  const Id count = scalar_of(b_, Expr(body_.type(source).shape[dim]), body_.symbols());
  Mask exists = mask;
  const Target to = target(update, at, exists);
  // Calls body(coordinates of a step, the conditions that its element has the same place).
  const auto for_each = [&](Id initial, const auto& body) {
    const Id loop = b_.begin_for(b_.integer(0), count, b_.integer(1), {initial});
    open_scope();
    const Id step = b_.induction(loop);
    Coords other = at;
    other[coords_.isolate(other, dim)].index = facts_.narrow ? b_.map(Fn::kToI32, {step}) : step;
    Mask same = exists;
    for (std::size_t i = 0; i < to.indices.size(); ++i) {
      const Id index = update_index(update, i + 1, other, exists);
      same.push_back(b_.map(Fn::kEq, {index, to.indices[i]}));
    }
    const Id next = body(step, other, same, b_.carried(loop, 0));
    close_scope();
    return b_.end_for(loop, {next})[0];
  };
  const auto chosen = [&](const Mask& same, Id then, Id otherwise) {
    return b_.map(Fn::kSelect, {conjunction(same, b_.type(otherwise).cols), then, otherwise});
  };
  const tile::Type tile = b_.type(elements(pointer, to.at, type.dtype).offset);
  const Id far = b_.integer(std::numeric_limits<std::int64_t>::max());
  const Id first = for_each(b_.spread(far, tile.rows, tile.cols),
                            [&](Id step, const Coords&, const Mask& same, Id least) {
                              const Id found = chosen(same, b_.spread(step, tile.rows, tile.cols),
                                                      b_.spread(far, tile.rows, tile.cols));
                              return b_.map(Fn::kMin, {least, found});
                            });
  exists.push_back(b_.map(Fn::kEq, {first, b_.map(Fn::kToI64, {coords_.index_of(at, dim)})}));
  // Only that thread reads what is there, for it changes.
  const Id sum = for_each(load(pointer, to.at, type.dtype, exists),
                          [&](Id, const Coords& other, const Mask& same, Id before) {
                            const Fn add =
                                b_.type(before).kind == Kind::kF32 ? Fn::kAdd : Fn::kWrapAdd;
                            const Id element = value(source, other, same);
                            return chosen(same, b_.map(add, {before, element}), before);
                          });
  store(pointer, type, b_.round(type.dtype, sum), to.at, exists);
}

}  // namespace braid
