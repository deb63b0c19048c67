
#include <limits>

#include "braid/error.h"
#include "ir/ops.h"
#include "ir/text.h"

namespace braid {

void add_opaque_ops(std::vector<OpDef>& ops) {
  ops.push_back({
      .name = "opaque",
      .op_class = OpClass::kOpaque,
      .min_inputs = 0,
      .max_inputs = std::numeric_limits<int>::max(),
      .attrs = {{"dtype", AttrType::kDType, {}},
                {"shape", AttrType::kShape, {}},
                {"flops", AttrType::kDouble, 0.0},
                {.name = "kind",
                 .type = AttrType::kString,
                 .fallback = std::string("compute"),
                 .about = "gemm is a matmul, extern of a library.",
                 .choices = {"compute", "gemm", "extern"}}},
      .infer = [](const InferContext& context) -> std::vector<TensorType> {
        if (get_attr<double>(context.attrs, "flops") < 0) {
          fail("/attrs/flops", "below 0; expected the float operations of the node");
        }
        return {{get_attr<DType>(context.attrs, "dtype"), get_attr<Shape>(context.attrs, "shape")}};
      },
      .flops = [](auto, auto, const Bindings&) { return 0.0; },
      .evaluate = [](const EvalContext& context, const EvalTensors&) -> EvalTensors {
        throw_invalid(context.node.name, "an opaque node has a cost and no meaning: it cannot run");
      },
  });
}

}  // namespace braid
