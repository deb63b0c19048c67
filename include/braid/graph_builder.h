#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "braid/export.h"
#include "braid/graph.h"

namespace braid {

/// Builds a graph from C++ expressions. Ops, attributes and rules are those of the JSON form
/// (docs/graph.schema.json). Each call checks its arguments, infers the result type, and throws
/// kInvalidArgument with the place and what was expected.
///
///     GraphBuilder b("block");
///     const Dim t = b.symbol("T", {1, 64});
///     b.group("tp", 2);
///     auto x = b.input("x", {DType::kBF16, {t, 256}}, {.per_rank = true});
///     auto g = b.parameter("g", {DType::kBF16, {256}});
///     auto sum = b.collective("all_reduce", {x}, {{"reduce_op", "sum"}, {"group", "tp"}});
///     b.output(sum.op("rms_norm", {g}, {{"eps", 1e-5}}, "y"));
///     const Graph graph = b.build();
class BRAID_API GraphBuilder {
 public:
  /// A value of the graph being built. Valid as long as its builder is not moved or destroyed.
  class Tensor {
   public:
    [[nodiscard]] ValueId id() const { return id_; }
    [[nodiscard]] const TensorType& type() const;
    /// Applies an op to this value, followed by the others: x.op("mm", {w}).op("silu").
    Tensor op(std::string_view op, const std::vector<Tensor>& others = {}, Attrs attrs = {},
              std::string name = "") const;

   private:
    friend class GraphBuilder;
    Tensor(GraphBuilder& builder, ValueId id) : builder_(&builder), id_(id) {}
    GraphBuilder* builder_;
    ValueId id_;
  };

  /// per_rank: the values may differ between ranks (a shard, a partial sum).
  struct InputOptions {
    bool per_rank = false;
  };

  explicit GraphBuilder(std::string name) : graph_(std::move(name)) {}
  GraphBuilder(const GraphBuilder&) = delete;
  GraphBuilder& operator=(const GraphBuilder&) = delete;

  /// Adds a symbol with its range; the result is for use in shapes.
  Dim symbol(const std::string& name, Symbol range);
  /// Adds a process group of `size` ranks. For the groups of a mesh see Group.
  void group(std::string name, std::int64_t size) { group(std::move(name), Group{size, true, {}}); }
  void group(std::string name, Group group);

  /// Adds an input, which is supplied anew for each run, a parameter, which is supplied once, or a
  /// state, which is zero at first and which the graph's runs change (InputKind).
  Tensor input(std::string name, TensorType type, InputOptions options);
  Tensor input(std::string name, TensorType type) {
    return input(std::move(name), std::move(type), {});
  }
  Tensor parameter(std::string name, TensorType type, InputOptions options);
  Tensor parameter(std::string name, TensorType type) {
    return parameter(std::move(name), std::move(type), {});
  }
  Tensor state(std::string name, TensorType type, InputOptions options);
  Tensor state(std::string name, TensorType type) {
    return state(std::move(name), std::move(type), {});
  }

  /// Adds a node with one result. An empty name becomes a fresh one.
  Tensor op(std::string_view op, const std::vector<Tensor>& inputs, Attrs attrs = {},
            std::string name = "");
  /// Adds a node with any number of results (split, all_reduce_coalesced, ...).
  std::vector<Tensor> results(std::string_view op, const std::vector<Tensor>& inputs,
                              Attrs attrs = {}, std::string name = "");
  /// Adds a collective and its wait_tensor, which gets the name. No node can stand between the two.
  Tensor collective(std::string_view op, const std::vector<Tensor>& inputs, Attrs attrs,
                    std::string name = "");

  /// Appends an output, known by the value's name.
  void output(const Tensor& value);

  /// Verifies the whole graph and returns a copy. More nodes may be added afterwards.
  [[nodiscard]] Graph build() const;

 private:
  [[nodiscard]] std::vector<ValueId> ids(const std::vector<Tensor>& tensors) const;

  Graph graph_;
};

}  // namespace braid
