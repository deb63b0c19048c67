#include <fmt/format.h>

#include <algorithm>

#include "ir/fail.h"
#include "ir/ops.h"
#include "ir/scales.h"
#include "ir/views.h"

namespace braid {
namespace {

/// The batch dims of a matmul: all but the last two, broadcast as in NumPy.
Shape broadcast_batch(std::string_view op, std::span<const TensorType> operands) {
  Shape batch(operands[0].shape.begin(), operands[0].shape.end() - 2);
  const Shape other(operands[1].shape.begin(), operands[1].shape.end() - 2);
  if (other.size() > batch.size()) batch.insert(batch.begin(), other.size() - batch.size(), 1);
  for (std::size_t i = 0; i < other.size(); ++i) {
    Dim& extent = batch[batch.size() - other.size() + i];
    if (extent == Dim(1)) {
      extent = other[i];
    } else if (other[i] != Dim(1) && other[i] != extent) {
      fail("/inputs/1", "operands of {} are {}: batch extents {} and {} do not broadcast", op,
           describe(operands), extent.str(), other[i].str());
    }
  }
  return batch;
}

/// The shape of [..., M, K] x [..., K, N]. operands[0] is operand `first` of the node. `rank` 0
/// means any.
Shape matmul_shape(std::string_view op, std::span<const TensorType> operands, std::size_t rank,
                   std::size_t first = 0) {
  for (std::size_t i = 0; i < 2; ++i) {
    const std::size_t dims = operands[i].shape.size();
    if (rank == 0 ? dims >= 2 : dims == rank) continue;
    constexpr const char* kCounts[] = {"at least two", "", "two", "three"};
    fail(fmt::format("/inputs/{}", first + i), "the operand of {} is {}; expected {} dims", op,
         operands[i].str(), kCounts[rank]);
  }
  const Shape& a = operands[0].shape;
  const Shape& b = operands[1].shape;
  if (a.back() != b[b.size() - 2]) {
    fail(fmt::format("/inputs/{}", first + 1),
         "operands of {} are {}: {} and {} differ; expected [M, K], [K, N]", op,
         describe(operands.first(2)), a.back().str(), b[b.size() - 2].str());
  }
  Shape shape = broadcast_batch(op, operands);
  shape.push_back(a[a.size() - 2]);
  shape.push_back(b.back());
  return shape;
}

/// The dtype of a matmul's result: the operands', or what `out_dtype` gives.
DType result_dtype(const InferContext& context) {
  const DType own = context.inputs[0].dtype;
  const auto given = context.attrs.find("out_dtype");
  const DType dtype =
      given == context.attrs.end() ? own : get_attr<DType>(context.attrs, "out_dtype");
  if (dtype != own && dtype != DType::kF32) {
    fail("/attrs/out_dtype", "found {}; expected {} or f32", dtype_name(dtype), dtype_name(own));
  }
  return dtype;
}

std::vector<TensorType> infer_matmul(const char* op, std::size_t rank,
                                     const InferContext& context) {
  expect_float(op, context.inputs);
  expect_same_dtype(op, context.inputs);
  return {{result_dtype(context), matmul_shape(op, context.inputs, rank)}};
}

/// [T, K], [E, K, N] and the end of each group, [E]: ATen's form of two dims by three.
std::vector<TensorType> infer_grouped_mm(const InferContext& context) {
  constexpr std::string_view kOp = "_grouped_mm";
  const auto matrices = context.inputs.first(2);
  expect_float(kOp, matrices);
  expect_same_dtype(kOp, matrices);
  for (std::size_t i = 0; i < 2; ++i) {
    if (matrices[i].shape.size() == 2 + i) continue;
    fail(fmt::format("/inputs/{}", i), "the operand of {} is {}; expected {} dims", kOp,
         matrices[i].str(), i == 0 ? "two" : "three");
  }
  const Shape& a = matrices[0].shape;
  const Shape& b = matrices[1].shape;
  if (a[1] != b[1]) {
    fail("/inputs/1", "operands of {} are {}: {} and {} differ; expected [T, K], [E, K, N]", kOp,
         describe(matrices), a[1].str(), b[1].str());
  }
  constexpr std::int64_t kMostRows = std::int64_t{1} << 30;  // what is counted fits in 32 bits
  if (a[0].max(context.graph.symbols()) > kMostRows) {
    fail("/inputs/0", "the operand of {} is {}, up to {} rows; expected at most {}", kOp,
         matrices[0].str(), a[0].max(context.graph.symbols()), kMostRows);
  }
  const TensorType offsets{DType::kI32, {b[0]}};
  if (context.inputs[2] != offsets) {
    fail("/inputs/2", "the offsets of {} are {}; expected {}, the end of each group", kOp,
         context.inputs[2].str(), offsets.str());
  }
  return {{result_dtype(context), {a[0], b[2]}}};
}

/// Whether `shape` broadcasts to `[m, n]`.
bool broadcasts_to(const Shape& shape, const Shape& to) {
  if (shape.size() > to.size()) return false;
  for (std::size_t i = 1; i <= shape.size(); ++i) {
    const Dim& extent = shape[shape.size() - i];
    if (extent != Dim(1) && extent != to[to.size() - i]) return false;
  }
  return true;
}

std::vector<TensorType> infer_addmm(const InferContext& context) {
  expect_float("addmm", context.inputs);
  expect_same_dtype("addmm", context.inputs);
  const TensorType result{context.inputs[0].dtype,
                          matmul_shape("addmm", context.inputs.subspan(1), 2, 1)};
  if (!broadcasts_to(context.inputs[0].shape, result.shape)) {
    fail("/inputs/0", "the bias of addmm is {}; expected what broadcasts to {}",
         context.inputs[0].str(), result.str());
  }
  return {result};
}

/// A scale is one number, one per row of A ([M, 1]) or column of B ([1, N]), or one per block of
/// 128 along K, too: of A [M, K / 128], of B [K / 128, N] or [K / 128, N / 128]. A bias has one
/// number per column, in the result's dtype.
std::vector<TensorType> infer_scaled_mm(const InferContext& context) {
  for (std::size_t i = 0; i < 2; ++i) {
    if (is_float8(context.inputs[i].dtype)) continue;
    fail(fmt::format("/inputs/{}", i), "the operand of scaled_mm is {}; expected f8e4m3 or f8e5m2",
         context.inputs[i].str());
  }
  if (context.inputs[0].dtype == DType::kF8E5M2 && context.inputs[1].dtype == DType::kF8E5M2) {
    fail("/inputs/1", "both operands of scaled_mm are f8e5m2; expected at least one f8e4m3");
  }
  const DType dtype = get_attr<DType>(context.attrs, "out_dtype");
  if (!is_float(dtype) || is_float8(dtype)) {
    fail("/attrs/out_dtype", "found {}; expected f32, f16 or bf16", dtype_name(dtype));
  }
  const Shape shape = matmul_shape("scaled_mm", context.inputs, 2);
  const SymbolTable& symbols = context.graph.symbols();
  const auto along_k = divide_up(context.inputs[0].shape[1], kScaleBlock, symbols);
  const auto along_n = divide_up(shape[1], kScaleBlock, symbols);
  std::vector<Shape> forms[] = {{{shape[0], 1}}, {{1, shape[1]}}};
  const bool several = along_k && *along_k != Dim(1);
  if (several) forms[0].push_back({shape[0], *along_k});
  if (several) forms[1].push_back({*along_k, shape[1]});
  if (along_k && along_n && (several || *along_n != Dim(1)))
    forms[1].push_back({*along_k, *along_n});
  for (std::size_t i = 0; i < 2; ++i) {
    const TensorType& scale = context.inputs[2 + i];
    const bool one = std::ranges::all_of(scale.shape, [](const Dim& d) { return d == Dim(1); });
    if (scale.dtype == DType::kF32 && scale.shape.size() <= 2 &&
        (one || std::ranges::find(forms[i], scale.shape) != forms[i].end())) {
      continue;
    }
    std::string expected = "f32[]";
    for (const Shape& form : forms[i]) {
      expected += &form == &forms[i].back() ? " or " : ", ";
      expected += TensorType{DType::kF32, form}.str();
    }
    fail(fmt::format("/inputs/{}", 2 + i), "the scale of scaled_mm is {}; expected {}", scale.str(),
         expected);
  }
  const TensorType bias{dtype, {shape[1]}};
  if (context.inputs.size() > 4 && context.inputs[4] != bias) {
    fail("/inputs/4", "the bias of scaled_mm is {}; expected {}", context.inputs[4].str(),
         bias.str());
  }
  return {{dtype, shape}};
}

/// Adds rows [m, k] x a matrix [k, n] to rows [m, n]. The rows of `left` are `stride` apart.
void add_product(double* result, const double* left, const double* right, std::size_t m,
                 std::size_t k, std::size_t n, std::size_t stride) {
  for (std::size_t i = 0; i < m; ++i) {
    double* row = result + i * n;
    for (std::size_t p = 0; p < k; ++p) {
      const double x = left[i * stride + p];
      for (std::size_t j = 0; j < n; ++j) row[j] += x * right[p * n + j];
    }
  }
}

/// [..., M, K] x [..., K, N] in double, batch dims broadcast.
EvalTensor multiply(EvalTensor result, const EvalTensor& a, const EvalTensor& b) {
  const std::size_t rank = result.shape.size();
  const std::size_t m = result.shape[rank - 2];
  const std::size_t n = result.shape[rank - 1];
  const std::size_t k = a.shape.back();
  // The matrix of an operand that belongs to a batch index of the result.
  const auto matrix = [&](const EvalTensor& x, std::size_t index) {
    std::size_t at = 0;
    std::size_t stride = 1;
    for (std::size_t d = 3; d <= rank; ++d) {
      const std::size_t extent = result.shape[rank - d];
      if (d <= x.shape.size()) {
        const std::size_t own = x.shape[x.shape.size() - d];
        if (own != 1) at += index % extent * stride;
        stride *= own;
      }
      index /= extent;
    }
    return at;
  };
  const std::size_t batches = m * n == 0 ? 0 : result.data.size() / (m * n);
  for (std::size_t batch = 0; batch < batches; ++batch) {
    const double* left = a.data.data() + matrix(a, batch) * m * k;
    const double* right = b.data.data() + matrix(b, batch) * k * n;
    add_product(result.data.data() + batch * m * n, left, right, m, k, n, k);
  }
  return result;
}

/// For each element of an [m, n] result, visits the element of an operand that broadcasts to it.
template <class Visit>
void visit_broadcast(EvalTensor& result, const EvalTensor& x, const Visit& visit) {
  const std::size_t n = result.shape[1];
  const bool rows = x.shape.size() == 2 && x.shape[0] != 1;
  const bool cols = !x.shape.empty() && x.shape.back() != 1;
  for (std::size_t i = 0; i < result.data.size(); ++i) {
    const std::size_t row = rows ? i / n : 0;
    visit(result.data[i], x.data[cols ? row * n + i % n : row]);
  }
}

EvalTensors evaluate_matmul(const EvalContext& context, const EvalTensors& inputs) {
  return evaluate_each_rank(inputs, [&](const std::vector<EvalTensor>& operands) {
    return std::vector<EvalTensor>{multiply(make_result(context, 0), operands[0], operands[1])};
  });
}

EvalTensors evaluate_addmm(const EvalContext& context, const EvalTensors& inputs) {
  const double alpha = *context.node.attr<double>("alpha");
  const double beta = *context.node.attr<double>("beta");
  return evaluate_each_rank(inputs, [&](const std::vector<EvalTensor>& operands) {
    EvalTensor result = multiply(make_result(context, 0), operands[1], operands[2]);
    // As in BLAS, with beta 0 the bias is ignored, whatever it holds.
    visit_broadcast(result, operands[0], [&](double& y, double bias) {
      y = beta == 0 ? alpha * y : alpha * y + beta * bias;
    });
    return std::vector<EvalTensor>{std::move(result)};
  });
}

/// Rows past the last group are zeros.
EvalTensors evaluate_grouped_mm(const EvalContext& context, const EvalTensors& inputs) {
  return evaluate_each_rank(inputs, [&](const std::vector<EvalTensor>& operands) {
    EvalTensor result = make_result(context, 0);
    const std::int64_t rows = operands[0].shape[0];
    const std::size_t k = operands[1].shape[1];
    const std::size_t n = operands[1].shape[2];
    // The same checks, in the same order, as in the kernel (codegen/work/grouped_tile.cpp).
    const auto check = [&](std::int64_t found) {
      if (found >= 0 && found <= rows) return;
      throw_invalid(context.node.name,
                    "rank {}: index {} is out of range; expected an integer from 0 to {}",
                    context.first_rank + (&operands - inputs.data()), found, rows);
    };
    std::int64_t first = 0;
    for (std::size_t group = 0; group < operands[2].integers.size(); ++group) {
      const std::int64_t end = operands[2].integers[group];
      check(end);
      check(end - first);
      const auto at = static_cast<std::size_t>(first);
      add_product(result.data.data() + at * n, operands[0].data.data() + at * k,
                  operands[1].data.data() + group * k * n, static_cast<std::size_t>(end - first), k,
                  n, k);
      first = end;
    }
    return std::vector<EvalTensor>{std::move(result)};
  });
}

EvalTensors evaluate_scaled_mm(const EvalContext& context, const EvalTensors& inputs) {
  return evaluate_each_rank(inputs, [&](const std::vector<EvalTensor>& operands) {
    EvalTensor result = make_result(context, 0);
    const std::size_t m = result.shape[0], n = result.shape[1], k = operands[0].shape[1];
    const bool blocks[] = {is_scale_in_blocks(context.graph, context.node, 2),
                           is_scale_in_blocks(context.graph, context.node, 3)};
    const std::size_t step = blocks[0] || blocks[1] ? kScaleBlock : std::max<std::size_t>(1, k);
    for (std::size_t first = 0; first < k; first += step) {
      EvalTensor part = make_result(context, 0);
      add_product(part.data.data(), operands[0].data.data() + first,
                  operands[1].data.data() + first * n, m, std::min(step, k - first), n, k);
      for (std::size_t i = 0; i < part.data.size(); ++i) {
        const std::size_t row = i / n, block = first / kScaleBlock;
        double& y = part.data[i];
        if (blocks[0]) y *= operands[2].data[row * operands[2].shape[1] + block];
        if (blocks[1]) {
          const std::size_t columns = operands[3].shape[1];
          y *= operands[3].data[block * columns + (columns == n ? i % n : i % n / kScaleBlock)];
        }
        result.data[i] += y;
      }
    }
    for (std::size_t i = 2; i < 4; ++i) {
      if (blocks[i - 2]) continue;
      visit_broadcast(result, operands[i], [](double& y, double scale) { y *= scale; });
    }
    if (operands.size() > 4) {
      visit_broadcast(result, operands[4], [](double& y, double bias) { y += bias; });
    }
    return std::vector<EvalTensor>{std::move(result)};
  });
}

}  // namespace

void add_matmul_ops(std::vector<OpDef>& ops) {
  const auto add = [&](std::string_view name, Matmul matmul, int min_inputs, int max_inputs,
                       const std::vector<AttrDef>& attrs, auto infer, auto evaluate) {
    ops.push_back({
        .name = std::string(name),
        .op_class = OpClass::kMatmul,
        .min_inputs = min_inputs,
        .max_inputs = max_inputs,
        .attrs = attrs,
        .infer = infer,
        // addmm's bias is operand 0.
        .flops =
            [a = matmul == Matmul::kAdd ? 1 : 0](auto inputs, auto outputs,
                                                 const Bindings& bindings) {
              const auto k = inputs[a].shape.back().evaluate(bindings);
              return 2 * static_cast<double>(k) * numel_at(outputs[0], bindings);
            },
        .evaluate = evaluate,
        .matmul = matmul,
    });
  };
  const auto infer = [](const char* op, std::size_t rank) {
    return [=](const InferContext& context) { return infer_matmul(op, rank, context); };
  };
  // As in torch.mm: f32 returns the accumulators unrounded.
  const std::vector<AttrDef> out{{"out_dtype", AttrType::kDType, {}, true}};
  add("mm", Matmul::kPlain, 2, 2, out, infer("mm", 2), evaluate_matmul);
  add("bmm", Matmul::kPlain, 2, 2, out, infer("bmm", 3), evaluate_matmul);
  add("matmul", Matmul::kPlain, 2, 2, out, infer("matmul", 0), evaluate_matmul);
  add("addmm", Matmul::kAdd, 3, 3,
      {{"beta", AttrType::kDouble, 1.0}, {"alpha", AttrType::kDouble, 1.0}}, infer_addmm,
      evaluate_addmm);
  add("_grouped_mm", Matmul::kGrouped, 3, 3, out, infer_grouped_mm, evaluate_grouped_mm);
  // A, B, their scales, and a bias if there is one.
  add("scaled_mm", Matmul::kScaled, 4, 5, {{"out_dtype", AttrType::kDType, DType::kBF16}},
      infer_scaled_mm, evaluate_scaled_mm);
}

}  // namespace braid
