// Properties of every graph pass on every tensor-parallel graph.

#include <cstdlib>
#include <map>

#include "braid/error.h"
#include "braid/reference.h"
#include "lowering/lowering_testing.h"
#include "lowering/random_tp_graph.h"

namespace braid::testing {
namespace {

/// The graph means what it meant. A pass may change the order of a sum over ranks or over K.
void expect_equal_values(const Graph& before, const Graph& after, std::uint64_t seed) {
  const Bindings bindings{{"t", 1 + static_cast<std::int64_t>(seed % 3)}};
  const RankTensors inputs = random_inputs(before, bindings, seed);
  const RankTensors expected = evaluate(before, inputs, bindings);
  const RankTensors got = evaluate(after, inputs, bindings);
  for (std::size_t rank = 0; rank < expected.size(); ++rank) {
    ASSERT_EQ(expected[rank].size(), got[rank].size());
    for (std::size_t i = 0; i < expected[rank].size(); ++i) {
      EXPECT_LT(relative_error(got[rank][i], expected[rank][i]), 1e-5)
          << "rank " << rank << " output " << i;
    }
  }
}

/// Runs each pass in its place, on what the passes before it made.
void check_passes(const Graph& given, std::uint64_t seed,
                  std::map<std::pair<std::string_view, bool>, int>& outcomes) {
  PassContext context = sm80();
  context.config.always_pipeline = true;
  Graph graph = given;
  verify(graph);
  for (const Pass* pass : all_passes()) {
    SCOPED_TRACE(std::string(pass->name));
    const bool graph_pass = pass->name != "split_reductions" && pass->name != "lower_collectives" &&
                            pass->name != "fuse";
    // Waits that pass each other do so again; a search that a number of nodes ends goes on.
    const bool settles = graph_pass && pass != &sink_waits_iterative && pass != &overlap &&
                         pass != &reorder_communication_preserving_peak_memory;
    context.remarks.clear();
    const Graph once = (*pass)(graph, context);
    verify(once);
    expect_equal_values(given, once, seed);
    for (const Remark& remark : context.remarks) ++outcomes[{pass->name, remark.applied}];
    const bool applied = std::any_of(context.remarks.begin(), context.remarks.end(),
                                     [](const Remark& remark) { return remark.applied; });
    if (settles) {
      EXPECT_EQ(to_json((*pass)(once, context)), to_json(once)) << "a second time";
    }
    if (graph_pass && !applied) {
      EXPECT_EQ(to_json(once), to_json(graph)) << "nothing was applied";
    }
    if (::testing::Test::HasFailure()) {
      ADD_FAILURE() << to_text(graph) << "\nbecame\n" << to_text(once);
      return;
    }
    graph = once;
  }
}

// Issue-sized in the soak: BRAID_GRAPHS=2000.
TEST(PassesProperty, HoldOnRandomGraphsAndNearMisses) {
  const char* given = std::getenv("BRAID_GRAPHS");
  const int count = given == nullptr ? 500 : std::atoi(given);
  std::map<std::pair<std::string_view, bool>, int> outcomes;
  for (int i = 0; i < count && !HasFailure(); ++i) {
    const auto seed = static_cast<std::uint64_t>(i);
    SCOPED_TRACE("seed " + std::to_string(i));
    check_passes(random_tp_graph(seed, i % 4 < 2 ? 2 : 4, i % 2 == 1), seed, outcomes);
  }
  // The graphs are what the passes look for, and what they must refuse.
  for (const char* pass : {"sequence_parallel", "micro_pipeline"}) {
    EXPECT_GT((outcomes[{pass, true}]), count / 5) << pass;
    EXPECT_GT((outcomes[{pass, false}]), count / 10) << pass;
  }
}

}  // namespace
}  // namespace braid::testing
