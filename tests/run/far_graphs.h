#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "run/graph_builder.h"

namespace braid::testing {

inline const Dim kT = Dim::symbol("T");
inline const Attrs kFar = {{"group", std::string("far")}};

inline Attrs with(Attrs attrs, std::string key, AttrValue value) {
  attrs.insert_or_assign(std::move(key), std::move(value));
  return attrs;
}
inline Attrs reducing(const char* op) { return with(kFar, "reduce_op", std::string(op)); }
inline Attrs along(Attrs attrs, std::int64_t dim) { return with(std::move(attrs), "dim", dim); }

/// A world "tp" with symmetric memory and the same ranks as "far", without.
class FarBuilder : public GraphBuilder {
 public:
  explicit FarBuilder(std::int64_t world) : GraphBuilder(40, world) {
    graph().add_group("far", {world, false, {}});
  }
  ValueId waited(const char* name, std::vector<ValueId> inputs, Attrs attrs) {
    return op("wait_tensor", {op(name, std::move(inputs), std::move(attrs))});
  }
};

/// One collective of each kind, of an input and of a value that is computed in front of it.
inline Graph every_collective(std::int64_t world, DType dtype) {
  FarBuilder b(world);
  const Dim rows = kT * world;
  std::vector<ValueId> outputs;
  const auto both = [&](const char* op, Shape shape, const Attrs& attrs) {
    const ValueId x = b.in(dtype, std::move(shape));
    outputs.push_back(b.waited(op, {x}, attrs));
    outputs.push_back(b.op("neg", {b.waited(op, {b.op("neg", {x})}, attrs)}));
  };
  both("all_reduce", {kT, 33}, reducing("sum"));
  both("all_reduce", {kT, 8}, reducing("max"));
  both("reduce_scatter_tensor", {rows, 5}, reducing(dtype == DType::kI32 ? "min" : "avg"));
  both("reduce_scatter_tensor", {3, 2 * world, 5}, along(reducing("product"), 1));
  both("all_gather_into_tensor", {kT, 7}, kFar);
  both("all_gather_into_tensor", {kT, 3, 7}, along(kFar, -1));
  both("all_to_all_single", {rows, 6}, kFar);
  both("broadcast", {kT, 65}, with(kFar, "src", world - 1));
  both("shard_dim_alltoall", {kT, 4 * world},
       with(with(kFar, "gather_dim", std::int64_t{0}), "shard_dim", std::int64_t{1}));
  // Rank r sends to rank s, and both keep the rest.
  std::vector<std::int64_t> splits;
  for (std::int64_t from = 0; from < world; ++from) {
    for (std::int64_t to = 0; to < world; ++to) splits.push_back(from == to ? 3 : 0);
  }
  splits[0] = splits[static_cast<std::size_t>(world + 1)] = 1;
  splits[1] = splits[static_cast<std::size_t>(world)] = 2;
  both("all_to_all_single", {3, 9}, with(kFar, "input_split_sizes", splits));
  return b.take(outputs);
}

/// Three layers on 4 ranks, each with a reduction over neighbours, which have symmetric memory, and
/// one across, over a group that has none, beside it.
inline Graph mesh_of_groups() {
  FarBuilder b(4);
  b.graph().add_group("near", {2, true, {{0, 1}, {2, 3}}});
  b.graph().add_group("across", {2, false, {{0, 2}, {1, 3}}});
  const auto of = [](Attrs attrs, const char* group) {
    return with(std::move(attrs), "group", std::string(group));
  };
  const ValueId x = b.in(DType::kBF16, {kT, 64});
  const ValueId w = b.in(DType::kBF16, {64, 64});
  ValueId y = x;
  std::vector<ValueId> outputs;
  for (int layer = 0; layer < 3; ++layer) {
    const ValueId h = b.op("mm", {y, w});
    const ValueId c = b.op("all_reduce", {h}, of(reducing("avg"), "across"));
    const ValueId near = b.waited("all_reduce", {b.op("silu", {y})}, of(reducing("avg"), "near"));
    const ValueId far = b.op("wait_tensor", {c});
    y = b.op("tanh", {b.op("add", {near, far})});
    // A communication buffer that a communicator writes, and one that it reads.
    outputs.push_back(b.waited("reduce_scatter_tensor",
                               {b.waited("all_gather_into_tensor", {far}, of(kFar, "across"))},
                               of(reducing("max"), "near")));
  }
  outputs.push_back(b.waited("broadcast", {y}, with(kFar, "src", std::int64_t{2})));
  return b.take(outputs);
}

}  // namespace braid::testing
