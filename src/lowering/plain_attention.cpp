// An attention whose heads no kernel holds, as two matmuls and a softmax: scores and their softmax
// are in f32, in memory, and the weights are rounded to the operands' dtype for the second product.

#include <limits>

#include "ir/attention.h"
#include "ir/attributes.h"
#include "lowering/plain_writer.h"

namespace braid {
namespace {

class WideAttention {
 public:
  WideAttention(Writer& w, const Attention& form)
      : w_(w),
        form_(form),
        dtype_(w.type(0).dtype),
        all_(w.type(0).shape),
        rank_(all_.size()),
        queries_(all_[rank_ - 2]),
        keys_(w.type(1).shape[rank_ - 2]) {
    all_.back() = keys_;
  }

  void write() {
    const Dim& width = w_.type(0).shape.back();
    ValueId query = w_.operand(0);
    if (form_.groups > 1) query = view(query, of_key_heads(width));
    const ValueId key = map("transpose", {w_.operand(1)}, {{"dim0", dim(2)}, {"dim1", dim(1)}});
    ValueId scores = map("matmul", {query, key}, {{"out_dtype", DType::kF32}});
    if (form_.groups > 1) scores = view(scores, all_);
    scores = map("mul", {scores, number(form_.scale)});
    ValueId weights = weigh(masked(scores));
    if (dtype_ != DType::kF32) weights = map("to", {weights}, {{"dtype", dtype_}});
    if (form_.groups > 1) weights = view(weights, of_key_heads(keys_));
    if (form_.groups == 1) return w_.finish("matmul", {weights, w_.operand(2)}, {});
    w_.finish("view", {map("matmul", {weights, w_.operand(2)})}, {{"shape", w_.result().shape}});
  }

 private:
  [[nodiscard]] std::int64_t dim(std::size_t from_end) const {
    return static_cast<std::int64_t>(rank_ - from_end);
  }
  ValueId map(const char* op, std::vector<ValueId> inputs, Attrs attrs = {}) {
    return w_.add(op, op, std::move(inputs), std::move(attrs));
  }
  ValueId view(ValueId x, Shape shape) { return map("view", {x}, {{"shape", std::move(shape)}}); }
  ValueId number(double value) {
    return map("full", {}, {{"value", value}, {"dtype", DType::kF32}});
  }
  /// The heads that share a key are rows of one matrix.
  [[nodiscard]] Shape of_key_heads(const Dim& columns) const {
    Shape shape = all_;
    const auto groups = static_cast<std::int64_t>(form_.groups);
    shape[rank_ - 3] = w_.type(1).shape[rank_ - 3];
    shape[rank_ - 2] = queries_ * groups;
    shape.back() = columns;
    return shape;
  }

  ValueId hidden_unless(ValueId seen, ValueId scores) {
    return map("where", {seen, scores, number(-std::numeric_limits<double>::infinity())});
  }
  ValueId masked(ValueId scores) {
    if (form_.causal) {
      const ValueId row = view(map("arange", {}, {{"end", as_bound(queries_)}}), {queries_, 1});
      const ValueId key = map("arange", {}, {{"end", as_bound(keys_)}});
      return hidden_unless(map("le", {key, row}), scores);
    }
    if (!form_.mask) return scores;
    const ValueId mask = w_.operand(*form_.mask);
    const DType dtype = w_.type(*form_.mask).dtype;
    if (dtype == DType::kBool) return hidden_unless(mask, scores);
    return map("add",
               {scores, dtype == DType::kF32 ? mask : map("to", {mask}, {{"dtype", DType::kF32}})});
  }
  /// A row that sees no key has no weights; only a mask makes one.
  ValueId weigh(ValueId scores) {
    const ValueId weights = map("softmax", {scores}, {{"dim", dim(1)}});
    if (!form_.mask) return weights;
    const ValueId none = number(-std::numeric_limits<double>::infinity());
    const ValueId seen = map("sum", {map("ne", {scores, none})},
                             {{"dim", std::vector<std::int64_t>{dim(1)}}, {"keepdim", true}});
    const ValueId nothing = map("full", {}, {{"value", std::int64_t{0}}, {"dtype", DType::kI64}});
    return map("where", {map("ne", {seen, nothing}), weights, number(0)});
  }

  Writer& w_;
  const Attention& form_;
  DType dtype_;
  Shape all_;  ///< of the scores
  std::size_t rank_;
  Dim queries_, keys_;
};

}  // namespace

void write_wide_attention(Writer& writer, const Attention& form) {
  WideAttention(writer, form).write();
}

}  // namespace braid
