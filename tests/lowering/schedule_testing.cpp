#include "lowering/schedule_testing.h"

#include <random>
#include <stdexcept>

#include "lowering/lowering_testing.h"

namespace braid::testing {
namespace {

TensorType bytes_of(std::int64_t bytes) { return {DType::kU8, {bytes}}; }

}  // namespace

Costs::Costs() : graph_("costs") { graph_.add_group("tp", {2, true, {}}); }

Costs& Costs::input(const std::string& name, std::int64_t bytes) {
  graph_.add_input({name, bytes_of(bytes), InputKind::kActivation, true});
  return *this;
}

Costs& Costs::compute(const std::string& name, const std::vector<std::string>& inputs,
                      std::int64_t bytes, double ns, const std::string& kind) {
  std::vector<ValueId> operands;
  for (const std::string& operand : inputs) operands.push_back(value(operand));
  const NodeId id = graph_.add_node(
      name, "opaque", operands, {{"dtype", DType::kU8}, {"shape", Shape{bytes}}, {"kind", kind}});
  graph_.set_hint(id, "runtime_ns", ns);
  return *this;
}

void Costs::add_collective(const std::string& name, const std::string& operand,
                           const std::string& how, double ns) {
  const NodeId id = graph_.add_node(
      name, "all_reduce", {value(operand)},
      {{"reduce_op", std::string("sum")}, {"group", std::string("tp")}, {"algorithm", how}});
  graph_.set_hint(id, "runtime_ns", ns);
}

Costs& Costs::collective(const std::string& name, const std::string& operand, double ns) {
  add_collective(name, operand, "", ns);
  return *this;
}

Costs& Costs::synchronous(const std::string& name, const std::string& operand, double ns) {
  const ValueId of = value(operand);
  if (graph_.value(of).comm_group.empty()) graph_.set_comm_group(of, "tp");
  add_collective(name, operand, "one_shot", ns);
  return *this;
}

Costs& Costs::wait(const std::string& name, const std::string& of) {
  graph_.add_node(name, "wait_tensor", {value(of)});
  return *this;
}

Graph Costs::graph(const std::vector<std::string>& outputs) {
  for (const std::string& output : outputs) graph_.add_output(value(output));
  verify(graph_);
  return graph_;
}

PassContext plain_costs() {
  PassContext context = sm80();
  context.config.options["reorder-sink-runtime-estimations-comm-mult"] = "1";
  context.config.options["reorder-iterative-debug-memory-recompute"] = "true";
  return context;
}

const MoveRecord& record_of(const std::vector<MoveRecord>& records, const std::string& node) {
  for (auto record = records.rbegin(); record != records.rend(); ++record) {
    if (record->node == node) return *record;
  }
  throw std::out_of_range("no record of " + node);
}

namespace {

class RandomCosts {
 public:
  explicit RandomCosts(std::uint64_t seed) : random_(seed) {
    graph_.add_group("tp", {2, true, {}});
    graph_.add_group("dp", {2, true, {}});
    for (int i = 0; i < 3; ++i) {
      ready_.push_back(
          graph_.add_input({"x" + std::to_string(i), type(), InputKind::kActivation, true}));
    }
  }

  Graph run(int nodes) {
    while (static_cast<int>(graph_.nodes().size()) < nodes) step();
    while (!started_.empty()) wait(0);
    for (int i = 0; i < 2; ++i) graph_.add_output(any());
    return std::move(graph_);
  }

 private:
  int pick(int n) { return static_cast<int>(random_() % static_cast<std::uint64_t>(n)); }
  /// Mostly of the last few.
  ValueId any() {
    const auto count = static_cast<int>(ready_.size());
    const int back = pick(4) == 0 ? pick(count) : pick(std::min(count, 5));
    return ready_[static_cast<std::size_t>(count - 1 - back)];
  }
  TensorType type() { return bytes_of(1 + pick(100)); }
  NodeId node(const char* op, std::vector<ValueId> inputs, Attrs attrs, int most_ns) {
    const NodeId id = graph_.add_node("", op, std::move(inputs), std::move(attrs));
    if (most_ns > 0) graph_.set_hint(id, "runtime_ns", pick(most_ns));
    return id;
  }
  ValueId first_result(NodeId id) const { return graph_.node(id).outputs[0]; }

  void step() {
    switch (pick(12)) {
      case 0:
      case 1:
        return collective();
      case 2:
        return overwrite();
      case 3:
        return in_place();
      case 4:
        if (!started_.empty()) return wait(pick(static_cast<int>(started_.size())));
        return compute();
      default:
        return compute();
    }
  }

  void compute() {
    const char* kinds[] = {"compute", "compute", "compute", "gemm", "extern"};
    std::vector<ValueId> inputs{any()};
    while (pick(3) == 0) inputs.push_back(any());
    if (slot_ >= 0 && pick(4) == 0) inputs.push_back(slot_);
    const NodeId id = node(
        "opaque", std::move(inputs),
        {{"dtype", DType::kU8}, {"shape", type().shape}, {"kind", std::string(kinds[pick(5)])}},
        200);
    if (pick(8) != 0) ready_.push_back(first_result(id));
  }

  /// Some memory that is read, overwritten, and read by its new name.
  void overwrite() {
    const Attrs like{{"dtype", DType::kU8}, {"shape", slot_type_.shape}};
    if (slot_ < 0) {
      slot_ = first_result(node("opaque", {any()}, like, 200));
    } else {
      const ValueId source = first_result(node("opaque", {any()}, like, 200));
      slot_ = first_result(node("copy_", {slot_, source}, {}, 50));
    }
  }

  void in_place() {
    const NodeId made =
        node("opaque", {any()}, {{"dtype", DType::kU8}, {"shape", type().shape}}, 200);
    const NodeId id = node("all_reduce_", {first_result(made)},
                           {{"reduce_op", std::string("sum")}, {"group", std::string("tp")}}, 400);
    started_.push_back(first_result(id));
  }

  void collective() {
    const ValueId operand = any();
    const NodeId id = node(
        "all_reduce", {operand},
        {{"reduce_op", std::string("sum")}, {"group", std::string(pick(4) == 0 ? "dp" : "tp")}},
        400);
    started_.push_back(first_result(id));
  }

  void wait(int which) {
    const auto at = started_.begin() + which;
    ready_.push_back(first_result(node("wait_tensor", {*at}, {}, 0)));
    started_.erase(at);
  }

  std::mt19937_64 random_;
  Graph graph_{"random_costs"};
  std::vector<ValueId> ready_, started_;
  TensorType slot_type_ = bytes_of(30);
  ValueId slot_ = -1;
};

}  // namespace

Graph random_costs(std::uint64_t seed, int nodes) {
  Graph graph = RandomCosts(seed).run(nodes);
  verify(graph);
  return graph;
}

}  // namespace braid::testing
