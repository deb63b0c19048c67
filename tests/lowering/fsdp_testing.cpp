#include "lowering/fsdp_testing.h"

#include <fmt/format.h>

namespace braid::testing {
namespace {

/// Builds the step; the names of layer l's nodes begin with a letter and l: "f" in the forward
/// pass, "b" in the backward pass.
class Step {
 public:
  explicit Step(int world) : world_(world), numel_(72 / world) {}

  Graph build() {
    std::vector<std::string> inputs{R"({"name": "x0", "dtype": "bf16", "shape": ["T", 8],
                                        "per_rank": true})",
                                    R"({"name": "g2", "dtype": "bf16", "shape": ["T", 8],
                                        "per_rank": true})"};
    for (const char* l : {"0", "1"}) {
      const auto param = [&](const std::string& name, const char* dtype, const std::string& shape) {
        inputs.push_back(fmt::format(R"({{"name": "{}{}", "dtype": "{}", "shape": [{}],
                                          "kind": "parameter", "per_rank": true}})",
                                     name, l, dtype, shape));
      };
      param("shard_w", "f32", fmt::format("{}, 8", 8 / world_));
      param("shard_b", "f32", fmt::format("{}", 8 / world_));
      param("w", "bf16", "8, 8");
      param("b", "bf16", "8");
    }
    launch_gather("f", "0");
    launch_gather("f", "1");
    finish_gather("f", "0");
    forward("0", "x0", "x1");
    finish_gather("f", "1");
    forward("1", "x1", "x2");
    launch_gather("b", "1");
    launch_gather("b", "0");
    finish_gather("b", "1");
    backward("1", "x1", "g2", "g1");
    finish_gather("b", "0");
    backward("0", "x0", "g1", "g0");
    finish_scatter("1");
    finish_scatter("0");
    return graph_of(nodes(inputs), nodes(nodes_),
                    names({"x2", "g0", "grad_w0", "grad_b0", "grad_w1", "grad_b1"}), world_);
  }

 private:
  void add(const std::string& name, const std::string& op, const std::vector<std::string>& operands,
           const std::string& attrs = "") {
    nodes_.push_back(call(name, op, operands, attrs));
  }
  static std::string shape(const std::string& extents) { return R"("shape": [)" + extents + "]"; }

  void launch_gather(const std::string& pass, const std::string& l) {
    const std::string p = pass + l + "_";
    add(p + "cast_w", "to", {"shard_w" + l}, R"("dtype": "bf16")");
    add(p + "cast_b", "to", {"shard_b" + l}, R"("dtype": "bf16")");
    add(p + "buffer", "full", {}, R"("shape": [72], "value": 0, "dtype": "bf16")");
    add(p + "copy_in", "fsdp.all_gather_copy_in", {p + "cast_w", p + "cast_b", p + "buffer"},
        R"("group": "tp")");
    add(p + "part", "getitem", {p + "copy_in"}, R"("index": 0)");
    add(p + "whole", "getitem", {p + "copy_in"}, R"("index": 1)");
    add(p + "gather", "all_gather_into_tensor", {p + "part"}, R"("group": "tp")");
  }

  void finish_gather(const std::string& pass, const std::string& l) {
    const std::string p = pass + l + "_";
    add(p + "wait", "wait_tensor", {p + "gather"});
    add(p + "ranks", "view", {p + "wait"}, shape(fmt::format("{}, {}", world_, numel_)));
    add(p + "split", "fsdp.split_with_sizes_copy", {p + "ranks"},
        fmt::format(R"("split_sizes": [{}, {}], "dim": 1)", 64 / world_, 8 / world_));
    add(p + "w", "view", {p + "split:0"}, shape("8, 8"));
    add(p + "b", "view", {p + "split:1"}, shape("8"));
    for (const char* param : {"w", "b"}) {
      nodes_.push_back(resize(p + "full_" + param, param + l, param[0] == 'w' ? 128 : 16));
      add(p + "fill_" + param, "fsdp.copy_", {param + l, p + param});
    }
  }

  void free_params(const std::string& p, const std::string& l) {
    for (const char* param : {"w", "b"})
      nodes_.push_back(resize(p + "free_" + param, param + l, 0));
  }

  void forward(const std::string& l, const std::string& x, const std::string& y) {
    add("f" + l + "_mm", "mm", {x, "w" + l});
    add(y, "add", {"f" + l + "_mm", "b" + l});
    free_params("f" + l + "_", l);
  }

  void backward(const std::string& l, const std::string& x, const std::string& g,
                const std::string& result) {
    const std::string p = "b" + l + "_";
    const std::string dims = R"("dim0": 0, "dim1": 1)";
    add(p + "wt", "transpose", {"w" + l}, dims);
    add(result, "mm", {g, p + "wt"});
    free_params(p, l);
    add(p + "xt", "transpose", {x}, dims);
    add(p + "dw", "mm", {p + "xt", g});
    add(p + "db", "sum", {g}, R"("dim": [0])");
    add(p + "chunks", "fsdp.chunk_cat", {p + "dw", p + "db"},
        fmt::format(R"("num_chunks": {})", world_));
    add(p + "flat", "view", {p + "chunks"}, shape("72"));
    add(p + "float", "to", {p + "flat"}, R"("dtype": "f32")");
    add(p + "scatter", "reduce_scatter_tensor", {p + "float"},
        R"("group": "tp", "reduce_op": "avg")");
  }

  void finish_scatter(const std::string& l) {
    const std::string p = "b" + l + "_";
    add(p + "grads", "wait_tensor", {p + "scatter"});
    add(p + "parts", "split", {p + "grads"},
        fmt::format(R"("split_size": [{}, {}])", 64 / world_, 8 / world_));
    add("grad_w" + l, "view", {p + "parts:0"}, shape(fmt::format("{}, 8", 8 / world_)));
    add("grad_b" + l, "neg", {p + "parts:1"});
  }

  int world_;
  int numel_;  ///< parameters of a layer on a rank
  std::vector<std::string> nodes_;
};

}  // namespace

Graph fsdp_training_step(int world) { return Step(world).build(); }

}  // namespace braid::testing
