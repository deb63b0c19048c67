#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "braid/export.h"
#include "braid/graph.h"

namespace braid {

/// Writes a graph down as an expression. Ops, their attributes and the rules are those of the JSON
/// form (docs/graph.schema.json); each call checks its own, infers the result's type and throws
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
  /// A value of the graph that is being written. Valid while its builder stays where it is.
  class Tensor {
   public:
    [[nodiscard]] ValueId id() const { return id_; }
    [[nodiscard]] const TensorType& type() const;
    /// The op on this value and the others after it: x.op("mm", {w}).op("silu").
    Tensor op(std::string_view op, const std::vector<Tensor>& others = {}, Attrs attrs = {},
              std::string name = "") const;

   private:
    friend class GraphBuilder;
    Tensor(GraphBuilder& builder, ValueId id) : builder_(&builder), id_(id) {}
    GraphBuilder* builder_;
    ValueId id_;
  };

  /// Of an input: whether it may differ between ranks (a shard, a partial sum).
  struct InputOptions {
    bool per_rank = false;
  };

  explicit GraphBuilder(std::string name) : graph_(std::move(name)) {}
  GraphBuilder(const GraphBuilder&) = delete;
  GraphBuilder& operator=(const GraphBuilder&) = delete;

  /// A symbolic extent and its range; use the result in shapes.
  Dim symbol(const std::string& name, Symbol range);
  /// A process group of `size` ranks. Groups of a mesh: see Group.
  void group(std::string name, std::int64_t size) { group(std::move(name), Group{size, true, {}}); }
  void group(std::string name, Group group);

  /// What is given anew in each run, or once and for all.
  Tensor input(std::string name, TensorType type, InputOptions options);
  Tensor input(std::string name, TensorType type) {
    return input(std::move(name), std::move(type), {});
  }
  Tensor parameter(std::string name, TensorType type, InputOptions options);
  Tensor parameter(std::string name, TensorType type) {
    return parameter(std::move(name), std::move(type), {});
  }

  /// A node with one result. Without a name it gets a fresh one.
  Tensor op(std::string_view op, const std::vector<Tensor>& inputs, Attrs attrs = {},
            std::string name = "");
  /// A node with any number of them (split, all_reduce_coalesced, ...).
  std::vector<Tensor> results(std::string_view op, const std::vector<Tensor>& inputs,
                              Attrs attrs = {}, std::string name = "");
  /// A collective and its wait_tensor, which has the name: nothing may stand between the two here.
  Tensor collective(std::string_view op, const std::vector<Tensor>& inputs, Attrs attrs,
                    std::string name = "");

  /// Appends an output; it is known by the value's name.
  void output(const Tensor& value);

  /// The graph, checked as a whole. More may be added after.
  [[nodiscard]] Graph build() const;

 private:
  [[nodiscard]] std::vector<ValueId> ids(const std::vector<Tensor>& tensors) const;

  Graph graph_;
};

}  // namespace braid
