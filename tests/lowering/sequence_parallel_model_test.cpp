#include <gmock/gmock.h>

#include <algorithm>
#include <random>

#include "lowering/lowering_testing.h"
#include "lowering/rewrite.h"

// sequence_parallel on whole models, and on random graphs.
namespace braid::testing {
namespace {

constexpr std::int64_t kHidden = 8;
constexpr std::int64_t kWidth = 4;  // of one rank

/// Builds a graph node by node.
struct Builder {
  Graph graph{"model"};

  explicit Builder(std::int64_t world) {
    graph.add_symbol("T", {1, 64, 1});
    graph.add_group("tp", {world, true, {}});
  }
  ValueId take(const std::string& name, Shape shape, bool per_rank) {
    return graph.add_input(
        {name, {DType::kF32, std::move(shape)}, InputKind::kActivation, per_rank});
  }
  const std::vector<ValueId>& add(const char* op, std::vector<ValueId> inputs, Attrs attrs = {}) {
    return graph.node(graph.add_node("", op, std::move(inputs), std::move(attrs))).outputs;
  }
  ValueId one(const char* op, std::vector<ValueId> inputs, Attrs attrs = {}) {
    return add(op, std::move(inputs), std::move(attrs))[0];
  }
  ValueId sum(ValueId x, const char* reduce_op = "sum") {
    return one("wait_tensor",
               {one("all_reduce", {x},
                    {{"reduce_op", std::string(reduce_op)}, {"group", std::string("tp")}})});
  }
};

enum class Spelling { kAddThenNorm, kAddRmsNorm2 };

/// Decoder layers as examples/llama.py has them, on 4*T tokens. The stream starts with an input
/// that is equal on all ranks or, as behind a vocabulary-parallel embedding, with a sum.
Graph llama(std::int64_t world, int layers, Spelling spelling, bool starts_with_a_sum) {
  Builder b(world);
  const Dim tokens = Dim::symbol("T") * 4;
  const Attrs eps = {{"eps", 1e-5}};
  const ValueId g = b.take("g", {kHidden}, false);
  const ValueId in = b.take("in", {kHidden, kWidth}, true);
  const ValueId out = b.take("out", {kWidth, kHidden}, true);
  const ValueId x = b.take("x", {tokens, kHidden}, starts_with_a_sum);
  ValueId stream = starts_with_a_sum ? b.sum(x) : x;
  ValueId normed = b.one("rms_norm", {stream, g}, eps);
  for (int block = 0; block < 2 * layers; ++block) {  // attention and MLP
    const ValueId h = b.one("silu", {b.one("mm", {normed, in})});
    const ValueId partial = b.sum(b.one("mm", {h, out}));
    if (spelling == Spelling::kAddThenNorm) {
      stream = b.one("add", {partial, stream});
      normed = b.one("rms_norm", {stream, g}, eps);
    } else {
      const std::vector<ValueId> both = b.add("add_rms_norm2", {partial, stream, g}, eps);
      normed = both[0];
      stream = both[1];
    }
  }
  b.graph.add_output(b.one("mm", {normed, b.take("logits", {kHidden, 5}, false)}));
  return b.graph;
}

int count(const Graph& graph, std::string_view op) {
  int n = 0;
  for (const Node& node : graph.nodes()) n += node.op_name() == op ? 1 : 0;
  return n;
}

// C-24, A1-18: four layers without markers; the stream is split from the first block to the last.
TEST(SequenceParallelModel, TheResidualStreamOfALlamaStaysSharded) {
  constexpr int kBlocks = 8;
  for (std::int64_t world : {2, 4}) {
    for (Spelling spelling : {Spelling::kAddThenNorm, Spelling::kAddRmsNorm2}) {
      for (bool starts_with_a_sum : {false, true}) {
        SCOPED_TRACE(::testing::Message()
                     << world << " ranks, spelling " << static_cast<int>(spelling)
                     << ", a sum first " << starts_with_a_sum);
        const Graph graph = llama(world, kBlocks / 2, spelling, starts_with_a_sum);
        PassContext context = eager();
        const Graph result = sequence_parallel(graph, context);
        verify(result);
        // The same bits: reduce_scatter sums in the order of all_reduce.
        expect_same_values(graph, result);
        EXPECT_EQ(count(result, "all_reduce"), 0);
        // One for each block; the stream that they start from is a sum, too, or is cut.
        EXPECT_EQ(count(result, "reduce_scatter_tensor"), kBlocks + (starts_with_a_sum ? 1 : 0));
        EXPECT_EQ(count(result, "shard"), starts_with_a_sum ? 0 : 1);
        // Only the matmuls' operands are gathered.
        EXPECT_EQ(count(result, "all_gather_into_tensor"), kBlocks + (starts_with_a_sum ? 1 : 0));
        const Shape chunk{Dim::symbol("T") * (4 / world), kHidden};
        const char* adder = spelling == Spelling::kAddThenNorm ? "add" : "add_rms_norm2";
        EXPECT_EQ(count(result, adder), kBlocks);
        for (const Node& node : result.nodes()) {
          if (node.op_name() == adder) {
            EXPECT_EQ(result.type(node.outputs.back()).shape, chunk);
          }
        }
        for (const Remark& remark : context.remarks) {
          EXPECT_TRUE(remark.applied) << remark.reason.text();
        }
        EXPECT_EQ(context.remarks.size(), kBlocks + (starts_with_a_sum ? 1U : 0U));
        context.remarks.clear();
        EXPECT_EQ(to_json(sequence_parallel(result, context)), to_json(result));
      }
    }
  }
}

/// Streams of tokens, summed, normed, viewed and marked at random; some sums, weights and residuals
/// are none that the pass may use.
Graph random_streams(std::uint64_t seed, std::int64_t world) {
  std::mt19937_64 random(seed);
  const auto pick = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  Builder b(world);
  const Dim t = Dim::symbol("T");
  const Dim tokens = pick(8) == 0 ? t : t * 4;
  const Shape flat{tokens, 16};
  const Shape shapes[] = {flat, {1, tokens, 16}, {tokens, 4, 4}, {tokens * 4, 4}, {4, tokens, 4}};
  const Attrs eps = {{"eps", 1e-5}};
  std::vector<ValueId> weights[2];
  for (std::int64_t i : {0, 1}) {
    const Shape shape{i == 0 ? 16 : 4};
    weights[i].assign(5, b.take("g" + std::to_string(i), shape, false));
    weights[i].push_back(b.take("h" + std::to_string(i), shape, true));
  }
  std::vector<ValueId> values{b.take("x", flat, true), b.take("r", flat, false)};
  values.push_back(b.sum(values[0]));
  for (int i = 0; i < 14; ++i) {
    const ValueId x = values[values.size() - 1 - pick(std::min<std::size_t>(values.size(), 4))];
    const Shape& shape = b.graph.type(x).shape;
    std::vector<ValueId> alike;
    for (ValueId v : values) {
      if (b.graph.type(v).shape == shape) alike.push_back(v);
    }
    const ValueId y = alike[pick(alike.size())];
    const ValueId g = weights[shape.back() == Dim(16) ? 0 : 1][pick(6)];
    switch (pick(8)) {
      case 0:
        values.push_back(b.sum(x, pick(6) == 0 ? "max" : pick(3) == 0 ? "avg" : "sum"));
        break;
      case 1:
        values.push_back(b.one("add", {x, y}));
        break;
      case 2:
        values.push_back(b.one("rms_norm", {x, g}, eps));
        break;
      case 3:
        values.push_back(b.one("add_rms_norm", {x, y, g}, eps));
        break;
      case 4:
      case 5:
        for (ValueId v : b.add("add_rms_norm2", {x, y, g}, eps)) values.push_back(v);
        break;
      case 6:
        values.push_back(b.one("view", {x}, {{"shape", shapes[pick(std::size(shapes))]}}));
        break;
      default:
        values.push_back(b.one("copy_region", {x}, {{"id", std::int64_t{0}}}));
        break;
    }
  }
  b.graph.add_output(values.back());
  for (int i = 0; i < 2; ++i) b.graph.add_output(values[pick(values.size())]);
  PassContext context;
  return canonicalize(b.graph, context);
}

TEST(SequenceParallelModel, RandomStreamsKeepTheirValues) {
  int applied = 0;
  int missed = 0;
  for (std::int64_t world : {2, 4}) {
    for (std::uint64_t seed = 0; seed < 200; ++seed) {
      SCOPED_TRACE(seed);
      const Graph graph = random_streams(seed, world);
      PassContext context = eager();
      if (seed % 4 == 0) context.config.sequence_dim = static_cast<std::int64_t>(seed / 4 % 3);
      const PassConfig config = context.config;
      const Graph once = sequence_parallel(graph, context);
      verify(once);
      expect_same_values(graph, once, seed);
      const std::vector<bool> live = live_nodes(once);
      EXPECT_EQ(std::count(live.begin(), live.end(), false), 0);
      bool any = false;
      for (const Remark& remark : context.remarks) {
        any = any || remark.applied;
        ++(remark.applied ? applied : missed);
      }
      if (!any) {
        EXPECT_EQ(to_json(once), to_json(graph));
      }
      PassContext again = eager();
      again.config = config;
      EXPECT_EQ(to_json(sequence_parallel(once, again)), to_json(once));
    }
  }
  // Both kinds are there.
  EXPECT_GT(applied, 200);
  EXPECT_GT(missed, 200);
}

}  // namespace
}  // namespace braid::testing
