#include <gmock/gmock.h>

#include <algorithm>
#include <map>
#include <random>

#include "braid/error.h"
#include "ir/mutation.h"
#include "lowering/fsdp_testing.h"

namespace braid::testing {
namespace {

/// Builds random programs around two unsharded parameters p and q: windows that are mostly right,
/// gathers in flight, scatters, views, and mutations in between. What the verifier would refuse is
/// not added.
class RandomStep {
 public:
  RandomStep(std::uint64_t seed, int world) : random_(seed), world_(world), graph_("random") {
    graph_.add_group("tp", {world, true, {}});
    for (const char* name : {"p", "q", "x", "y"}) {
      values_.push_back(graph_.add_input({name, kMatrix, InputKind::kActivation, true}));
    }
    windows_ = {{values_[0]}, {values_[1]}};
    values_.erase(values_.begin(), values_.begin() + 2);
  }

  Graph build() {
    while (graph_.nodes().size() < 40) step();
    while (!waits_.empty()) wait(waits_.size() - 1);
    for (const Window& window : windows_) {
      if (window.open) add("resize_storage_bytes_", {window.param}, {{"size", std::int64_t{0}}});
    }
    for (int i = 0; i < 4; ++i) {
      Graph extended = graph_;
      extended.add_output(any_value());
      if (is_legal(extended)) graph_ = std::move(extended);
    }
    if (graph_.outputs().empty()) graph_.add_output(graph_.nodes().back().outputs[0]);
    return graph_;
  }

 private:
  struct Window {
    ValueId param;
    bool open = false;
    bool filled = false;
  };
  inline static const TensorType kMatrix{DType::kF32, {2, 3}};

  std::size_t pick(std::size_t n) { return static_cast<std::size_t>(random_() % n); }
  ValueId any_value() {
    if (pick(64) == 0) return windows_[pick(2)].param;
    // Mostly a young one: the others are often names of memory that was overwritten.
    const std::size_t n = values_.size();
    return values_[pick(2) == 0 ? pick(n) : n - 1 - pick(std::min<std::size_t>(n, 6))];
  }
  static bool is_legal(const Graph& graph) {
    try {
      verify_mutations(graph, "");
      return true;
    } catch (const Error&) {
      return false;
    }
  }
  /// The results, none where the node is not legal.
  std::vector<ValueId> add(const char* op, std::vector<ValueId> inputs, Attrs attrs = {}) {
    Graph extended = graph_;
    const NodeId id = extended.add_node("", op, std::move(inputs), std::move(attrs));
    if (!is_legal(extended)) return {};
    graph_ = std::move(extended);
    return graph_.node(id).outputs;
  }
  void keep(const std::vector<ValueId>& results) {
    for (ValueId value : results) {
      if (graph_.type(value) == kMatrix) values_.push_back(value);
    }
  }
  static Attrs group(Attrs more = {}) {
    more.emplace("group", std::string("tp"));
    return more;
  }

  void step() {
    switch (pick(16)) {
      case 0:
      case 1:
      case 2:
      case 3:
      case 4:
        return manage(windows_[pick(2)]);
      case 5:
        return keep(add("neg", {any_value()}));
      case 6:
        return keep(add("add", {any_value(), any_value()}));
      case 7: {
        const Window& window = windows_[pick(2)];
        if (window.filled) keep(add("sub", {window.param, any_value()}));
        return;
      }
      case 8: {
        const Window& window = windows_[pick(2)];
        const std::vector<ValueId> t =
            add("transpose", {window.filled ? window.param : any_value()},
                {{"dim0", std::int64_t{0}}, {"dim1", std::int64_t{1}}});
        if (t.empty()) return;
        return keep(add("transpose", t, {{"dim0", std::int64_t{0}}, {"dim1", std::int64_t{1}}}));
      }
      case 9:
        return pick(4) == 0 ? keep(add("copy_", {any_value(), any_value()})) : void();
      case 10: {
        const char* op = pick(3) == 0 ? "all_reduce_" : "all_reduce";
        return launch(add(op, {any_value()}, group({{"reduce_op", std::string("max")}})));
      }
      case 11:
      case 12:
        return copy_in();
      case 13: {
        const std::vector<ValueId> chunks =
            add("fsdp.chunk_cat", {any_value(), any_value()}, {{"num_chunks", std::int64_t{2}}});
        if (chunks.empty()) return;
        const std::vector<ValueId> rows =
            add("view", chunks, {{"shape", Shape{12}}});  // divides by 1, 2 and 4 ranks
        return launch(
            add("reduce_scatter_tensor", rows, group({{"reduce_op", std::string("max")}})));
      }
      default:
        if (!waits_.empty()) wait(pick(waits_.size()));
    }
  }

  void manage(Window& window) {
    const bool odd = pick(48) == 0;
    const auto size = [](std::int64_t bytes) { return Attrs{{"size", bytes}}; };
    if (window.open == odd) {
      if (!add("resize_storage_bytes_", {window.param}, size(24)).empty()) {
        window = {window.param, true, false};
      }
    } else if (!window.filled || odd || pick(8) == 0) {
      const std::vector<ValueId> filled = add("fsdp.copy_", {window.param, any_value()});
      window.filled = window.filled || !filled.empty();
      if (pick(4) == 0) keep(filled);
    } else if (pick(2) == 0) {
      keep(add("neg", {window.param}));
    } else if (!add("resize_storage_bytes_", {window.param}, size(0)).empty()) {
      window = {window.param};
    }
  }

  void copy_in() {
    const std::vector<ValueId> cast = add("to", {any_value()}, {{"dtype", DType::kBF16}});
    if (cast.empty()) return;
    if (buffers_.empty() || pick(4) != 0) {
      buffers_.push_back(
          add("full", {}, {{"shape", Shape{6 * world_}}, {"value", 1.0}, {"dtype", DType::kBF16}})
              .front());
    }
    const std::vector<ValueId> in =
        add("fsdp.all_gather_copy_in", {cast[0], buffers_.back()}, group());
    if (in.empty()) return;
    std::vector<ValueId> part{in[0]};
    if (pick(2) == 0) part = add("getitem", part, {{"index", std::int64_t{0}}});
    if (pick(6) == 0) add("getitem", {in[1]}, {{"index", std::int64_t{1}}});
    if (pick(8) == 0) {
      const std::vector<ValueId> peek = add("slice", {in[1]}, {{"end", std::int64_t{6}}});
      if (!peek.empty()) expose(peek[0]);
    }
    if (pick(3) == 0) return launch(add("all_gather_into_tensor_out", {part[0], in[1]}, group()));
    launch(add("all_gather_into_tensor", part, group()));
  }

  /// bf16[6] becomes a value like the others.
  void expose(ValueId six) {
    const std::vector<ValueId> view = add("view", {six}, {{"shape", kMatrix.shape}});
    if (!view.empty()) keep(add("to", view, {{"dtype", DType::kF32}}));
  }

  void launch(const std::vector<ValueId>& collective) {
    if (!collective.empty()) waits_.push_back(collective[0]);
  }

  void wait(std::size_t which) {
    const std::vector<ValueId> done = add("wait_tensor", {waits_[which]});
    waits_.erase(waits_.begin() + static_cast<std::ptrdiff_t>(which));
    const TensorType type = graph_.type(done[0]);
    if (type.dtype == DType::kBF16) {
      const std::vector<ValueId> rows = add("view", done, {{"shape", Shape{world_, 6}}});
      const std::vector<ValueId> parts =
          add("fsdp.split_with_sizes_copy", rows,
              {{"split_sizes", std::vector<std::int64_t>{1, 5}}, {"dim", std::int64_t{1}}});
      const std::vector<ValueId> row = add("slice", rows, {{"end", std::int64_t{1}}});
      if (!row.empty()) expose(row[0]);
      if (!parts.empty()) graph_.add_output(parts[1]);
    } else if (type.shape.size() == 1) {
      graph_.add_output(add("neg", done)[0]);
    } else {
      keep(done);
    }
  }

  std::mt19937_64 random_;
  int world_;
  Graph graph_;
  std::vector<ValueId> values_;
  std::vector<ValueId> buffers_;
  std::vector<ValueId> waits_;
  std::vector<Window> windows_;
};

TEST(FsdpRandom, GraphsKeepTheirValues) {
  std::map<std::string, int> applied;
  for (int world : {2, 4}) {
    for (std::uint64_t seed = 0; seed < 100; ++seed) {
      SCOPED_TRACE(seed);
      const Graph graph = RandomStep(seed, world).build();
      verify(graph);
      PassContext context = sm80();
      const Graph result = fsdp(graph, context);
      verify(result);
      expect_same_values(graph, result, seed);
      bool changed = false;
      for (const Remark& remark : context.remarks) {
        changed = changed || remark.applied;
        const std::string text = remark.reason.text();
        ++applied[(remark.applied ? "applied " : "missed ") + text.substr(0, text.find(' '))];
      }
      if (!changed) {
        EXPECT_EQ(to_json(result), to_json(graph));
      }
      PassContext again = sm80();
      EXPECT_EQ(to_json(fsdp(result, again)), to_json(result));
      try {
        expect_same_values(graph, decompose_fsdp(result, again), seed);
        ++applied["decomposed"];
      } catch (const Error& error) {  // a rank's part is read before the gather
        EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
      }
      if (::testing::Test::HasFailure()) {
        FAIL() << to_text(graph) << to_text(result);
      }
    }
  }
  // Each rewrite was tried, and refused.
  for (const char* what : {"applied unsharded", "missed unsharded", "applied in", "missed not",
                           "applied kept", "decomposed"}) {
    EXPECT_GT(applied[what], 10) << what;
  }
}

}  // namespace
}  // namespace braid::testing
