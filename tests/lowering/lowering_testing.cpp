#include "lowering/lowering_testing.h"

#include <random>

#include "braid/reference.h"
#include "codegen/kernel/spec.h"
#include "ir/op_registry.h"

namespace braid::testing {
namespace {

std::string op_text(const Node& node) {
  const auto* body = node.attr<std::shared_ptr<const Graph>>("body");
  if (body == nullptr) return std::string(node.op_name());
  std::string text = std::string(template_name(**body)) + "{";
  for (const Node& inner : (*body)->nodes()) {
    if (text.back() != '{') text += '+';
    text += inner.op_name();
  }
  return text + "}";
}

}  // namespace

std::vector<std::string> lines(const Graph& graph) {
  std::vector<std::string> result;
  auto joined = [&](const std::vector<ValueId>& values, bool groups) {
    std::string text;
    for (ValueId id : values) {
      const Value& value = graph.value(id);
      if (!text.empty()) text += ", ";
      text += value.name;
      if (groups && !value.comm_group.empty()) text += "@" + value.comm_group;
    }
    return text;
  };
  for (const Node& node : graph.nodes()) {
    result.push_back(joined(node.outputs, true) + " = " + op_text(node) + "(" +
                     joined(node.inputs, false) + ")");
  }
  result.push_back("-> " + joined(graph.outputs(), false));
  return result;
}

std::vector<std::string> node_names(const Graph& graph) {
  std::vector<std::string> result;
  for (const Node& node : graph.nodes()) result.push_back(node.name);
  return result;
}

std::vector<std::string> remarks_of(const PassContext& context, std::string_view node) {
  std::vector<std::string> result;
  for (const Remark& remark : context.remarks) {
    if (remark.node == node) {
      result.push_back((remark.applied ? "applied: " : "missed: ") + remark.reason.text());
    }
  }
  return result;
}

namespace {

/// Calls expect(got, expected) for each output of each rank.
template <class Expect>
void compare_values(const Graph& before, const Graph& after, std::uint64_t seed,
                    const Expect& expect) {
  Bindings bindings;
  if (before.symbols().contains("T")) bindings["T"] = 5;
  const RankTensors inputs = random_inputs(before, bindings, seed);
  const RankTensors expected = evaluate(before, inputs, bindings);
  const RankTensors got = evaluate(after, inputs, bindings);
  ASSERT_EQ(expected.size(), got.size());
  for (std::size_t rank = 0; rank < expected.size(); ++rank) {
    ASSERT_EQ(expected[rank].size(), got[rank].size());
    for (std::size_t i = 0; i < expected[rank].size(); ++i) {
      SCOPED_TRACE("rank " + std::to_string(rank) + " output " + std::to_string(i));
      expect(got[rank][i], expected[rank][i]);
    }
  }
}

}  // namespace

void expect_same_values(const Graph& before, const Graph& after, std::uint64_t seed) {
  compare_values(before, after, seed, [](const HostTensor& got, const HostTensor& expected) {
    EXPECT_EQ(expected.shape, got.shape);
    EXPECT_EQ(expected.data, got.data);
  });
}

void expect_close_values(const Graph& before, const Graph& after, std::uint64_t seed) {
  compare_values(before, after, seed, [](const HostTensor& got, const HostTensor& expected) {
    EXPECT_LT(relative_error(got, expected), expected.dtype == DType::kF32 ? 1e-6 : 1e-3);
  });
}

Graph random_graph(std::uint64_t seed, int nodes, int world) {
  std::mt19937_64 random(seed);
  auto pick = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  Graph graph("random");
  graph.add_symbol("T", {1, 8, 1});
  graph.add_group("tp", {world, true, {}});
  const Dim rows = Dim::symbol("T");
  constexpr std::int64_t kCols = 6;
  const TensorType matrix{DType::kF32, {rows, kCols}};
  std::vector<ValueId> full;  // [T, 6]
  std::vector<ValueId> tall;  // [6, T]
  for (int i = 0; i < 3; ++i) {
    full.push_back(
        graph.add_input({"x" + std::to_string(i), matrix, InputKind::kActivation, true}));
  }
  const ValueId square =
      graph.add_input({"w", {DType::kF32, {kCols, kCols}}, InputKind::kParameter, true});
  const ValueId weight = graph.add_input({"g", {DType::kF32, {kCols}}, InputKind::kParameter});
  auto add = [&](const char* op, std::vector<ValueId> inputs, Attrs attrs = {}) {
    return graph.node(graph.add_node("", op, std::move(inputs), std::move(attrs)));
  };
  const char* unary[] = {"silu", "relu", "neg", "gelu"};
  const char* binary[] = {"add", "sub", "mul"};
  while (graph.nodes().size() < static_cast<std::size_t>(nodes)) {
    const ValueId a = full[pick(full.size())];
    const ValueId b = full[pick(full.size())];
    switch (pick(11)) {
      case 0:
      case 1:
        full.push_back(add(unary[pick(4)], {a}).outputs[0]);
        break;
      case 2:
      case 3:
        full.push_back(add(binary[pick(3)], {a, b}).outputs[0]);
        break;
      case 4:
        full.push_back(add("rms_norm", {a, weight}, {{"eps", 1e-5}}).outputs[0]);
        break;
      case 5:
        full.push_back(add("mm", {a, square}).outputs[0]);
        break;
      case 6: {
        const ValueId sum = add("all_reduce", {a},
                                {{"reduce_op", std::string("sum")}, {"group", std::string("tp")}})
                                .outputs[0];
        full.push_back(add("wait_tensor", {sum}).outputs[0]);
        break;
      }
      case 7: {
        const ValueId row =
            add("amax", {a}, {{"dim", std::vector<std::int64_t>{-1}}, {"keepdim", true}})
                .outputs[0];
        full.push_back(add("sub", {b, row}).outputs[0]);
        break;
      }
      case 8: {
        const Shape flat{rows * kCols};
        const ValueId view = add("view", {a}, {{"shape", flat}}).outputs[0];
        full.push_back(add("view", {view}, {{"shape", matrix.shape}}).outputs[0]);
        break;
      }
      case 9: {
        const Node norm = add("add_rms_norm2", {a, b, weight}, {{"eps", 1e-5}});
        full.insert(full.end(), norm.outputs.begin(), norm.outputs.end());
        break;
      }
      default: {
        const ValueId source = tall.empty() || pick(2) == 0 ? a : tall[pick(tall.size())];
        const ValueId t =
            add("transpose", {source}, {{"dim0", std::int64_t{0}}, {"dim1", std::int64_t{-1}}})
                .outputs[0];
        (graph.type(t).shape == matrix.shape ? full : tall).push_back(t);
        break;
      }
    }
  }
  for (int i = 0; i < 3; ++i) graph.add_output(full[full.size() - 1 - pick(full.size() / 2 + 1)]);
  if (!tall.empty()) graph.add_output(tall.back());
  return graph;
}

}  // namespace braid::testing
