#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "braid/error.h"
#include "braid/graph.h"
#include "braid/reference.h"

namespace braid {

/// "where | message" of the kInvalidArgument error that `action` throws, "no error" when it throws
/// none.
template <class Action>
std::string error_of(Action action) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    const std::string text = error.what();
    EXPECT_EQ(text.find('\n'), std::string::npos) << text;
    if (error.where().empty()) return " | " + text;
    return error.where() + " | " + text.substr(error.where().size() + 2);
  }
  return "no error";
}

inline ::testing::AssertionResult is_error(const std::string& found, const std::string& where,
                                           const std::string& fragment) {
  const bool good = found.rfind(where + " | ", 0) == 0 && found.find(fragment) != std::string::npos;
  return (good ? ::testing::AssertionSuccess() : ::testing::AssertionFailure())
         << "found \"" << found << "\"; expected \"" << where << " | ..." << fragment << "...\"";
}

inline constexpr DType kF32 = DType::kF32, kBF16 = DType::kBF16, kI32 = DType::kI32,
                       kI64 = DType::kI64;

/// Attributes that many ops have.
inline Attrs along(std::int64_t dim) { return {{"dim", dim}}; }
inline Attrs group(const char* name = "tp") { return {{"group", std::string(name)}}; }

inline Dim sym(const char* name) { return Dim::symbol(name); }

/// A graph with the symbols T in [1, 256] and S in [1, 64], a group "tp", and one input for each
/// type, named a, b, c, ...
inline Graph graph_with(const std::vector<TensorType>& types, std::int64_t ranks = 2,
                        bool per_rank = false) {
  Graph graph("test");
  graph.add_symbol("T", {1, 256, 1});
  graph.add_symbol("S", {1, 64, 1});
  graph.add_group("tp", {ranks, true, {}});
  for (std::size_t i = 0; i < types.size(); ++i) {
    graph.add_input(
        {std::string(1, static_cast<char>('a' + i)), types[i], InputKind::kActivation, per_rank});
  }
  return graph;
}

/// The result types of `op` on inputs of these types, as text.
inline std::string inferred(const std::vector<TensorType>& types, const char* op,
                            Attrs attrs = {}) {
  Graph graph = graph_with(types);
  const Node& node = graph.node(graph.add_node("n", op, graph.input_values(), std::move(attrs)));
  std::string text;
  for (ValueId id : node.outputs) {
    if (!text.empty()) text += ' ';
    text += graph.type(id).str();
  }
  return text;
}

/// The error of `op` on inputs of these types.
inline std::string refused(const std::vector<TensorType>& types, const char* op, Attrs attrs = {}) {
  return error_of([&] { static_cast<void>(inferred(types, op, std::move(attrs))); });
}

using Values = std::vector<double>;

/// Every result of `op` on constant-shaped operands, values[rank][operand] -> [rank][result].
inline std::vector<std::vector<Values>> computed(const std::vector<TensorType>& types,
                                                 const char* op, Attrs attrs,
                                                 const std::vector<std::vector<Values>>& values) {
  Graph graph = graph_with(types, static_cast<std::int64_t>(values.size()), true);
  const NodeId node = graph.add_node("n", op, graph.input_values(), std::move(attrs));
  for (ValueId id : graph.node(node).outputs) graph.add_output(id);
  RankTensors inputs(values.size());
  for (std::size_t rank = 0; rank < values.size(); ++rank) {
    for (std::size_t i = 0; i < types.size(); ++i) {
      std::vector<std::int64_t> shape;
      for (const Dim& dim : types[i].shape) shape.push_back(dim.constant());
      inputs[rank].push_back(HostTensor::from_doubles(types[i].dtype, shape, values[rank][i]));
    }
  }
  std::vector<std::vector<Values>> results;
  for (const auto& outputs : evaluate(graph, inputs, {{"T", 1}, {"S", 1}})) {
    results.emplace_back();
    for (const HostTensor& tensor : outputs) results.back().push_back(tensor.to_doubles());
  }
  return results;
}

/// The first result on one rank.
inline Values computed_one(const std::vector<TensorType>& types, const char* op, Attrs attrs,
                           const std::vector<Values>& values) {
  return computed(types, op, std::move(attrs), {values})[0][0];
}

}  // namespace braid
