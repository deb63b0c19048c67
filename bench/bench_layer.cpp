// Four decoder layers on four ranks, unfused and fused: kernels, barriers, copies and events of
// each, and the bytes that cross the links, counted on the cpu device. Then these bytes for each
// algorithm of an all-reduce, beside the minimum. Counts, no times.

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "braid/executable.h"
#include "braid/reference.h"
#include "graphs.h"
#include "lowering/passes.h"
#include "lowering/plan/program.h"
#include "runtime/compile/compile_program.h"
#include "runtime/exec/executable_impl.h"

namespace braid::bench {
namespace {

using nlohmann::ordered_json;

struct Form {
  const char* name;
  bool fuse = true;
  std::vector<std::string> enable = {};
  bool in_kernel = false;
};

/// For one run of the program: the bytes that ranks access in each other's memory.
std::int64_t peer_bytes(const Program& program, const Graph& graph, const Bindings& bindings) {
  WorldOptions options;
  options.device = DeviceKind::kCpu;
  options.world = static_cast<int>(program.world);
  options.count = true;
  World world = World::open(options);
  Executable executable = Executable::Impl::make(world, program, compile_program(program));
  executable.prepare(bindings);
  const RankTensors inputs = random_inputs(graph, bindings, 1);
  for (int rank = 0; rank < options.world; ++rank) {
    for (std::size_t i = 0; i < graph.inputs().size(); ++i) {
      executable.set_input(rank, graph.inputs()[i].name, inputs[static_cast<std::size_t>(rank)][i]);
    }
  }
  executable.run();
  executable.synchronize();
  std::int64_t bytes = 0;
  for (const KernelCounts& kernel : world.device().inspector()->counts()) {
    bytes += static_cast<std::int64_t>(kernel.total.peer_bytes);
  }
  return bytes;
}

ordered_json layer(const Form& form) {
  constexpr std::int64_t kNodesOfLayers = 4 * 9;
  const Graph graph = parse_graph(decoder_chain_json(kNodesOfLayers));
  PassContext context;
  if (!form.fuse) context.max_kernel_nodes = 1;
  context.config.enable = form.enable;
  context.config.always_pipeline = true;
  context.config.in_kernel = form.in_kernel;
  const Program program = lower(graph, context);
  int kernels = 0, barriers = 0, copies = 0, events = 0;
  for (const Step& step : program.steps) {
    using Kind = Step::Kind;
    kernels += step.kind == Kind::kLaunch ? 1 : 0;
    barriers += meets(program, step) ? 1 : 0;
    copies += step.kind == Kind::kCopy ? 1 : 0;
    events += step.kind == Kind::kEventRecord || step.kind == Kind::kEventWait ? 1 : 0;
  }
  // Copies between ranks are no kernel's.
  const bool counts = copies == 0;
  return {{"form", form.name},
          {"steps", program.steps.size()},
          {"kernels", kernels},
          {"meetings", barriers},
          {"copies", copies},
          {"events", events},
          {"peer_bytes_of_kernels",
           counts ? ordered_json(peer_bytes(program, graph, {{"T", 64}})) : ordered_json()}};
}

ordered_json all_reduce(const std::string& algorithm, std::int64_t ranks) {
  constexpr std::int64_t kRows = 64, kColumns = 4096;
  Graph graph("all_reduce");
  graph.add_group("tp", {ranks, true, {}});
  const ValueId x =
      graph.add_input({"x", {DType::kBF16, {kRows, kColumns}}, InputKind::kActivation, true});
  const NodeId sum = graph.add_node(
      "c", "all_reduce", {x}, {{"reduce_op", std::string("sum")}, {"group", std::string("tp")}});
  const NodeId wait = graph.add_node("y", "wait_tensor", {graph.node(sum).outputs[0]});
  graph.add_output(graph.node(wait).outputs[0]);
  PassContext context;
  context.config.all_reduce = algorithm;
  context.config.batch_invariant = algorithm != "multimem";
  context.multicast = true;
  if (algorithm == "multimem") context.target = Target::parse("H100");
  const Program program = lower(graph, context);
  const std::int64_t size = kRows * kColumns * 2;
  // Every rank reads all parts; or one of each piece, and then the sum; packets bear flags as long
  // as they; switches add, and store to all.
  const std::int64_t least = algorithm == "one_shot"   ? ranks * (ranks - 1) * size
                             : algorithm == "two_shot" ? 2 * (ranks - 1) * size
                             : algorithm == "ll"       ? 2 * ranks * (ranks - 1) * size
                                                       : (ranks + 1) * size;
  std::int64_t flags = 0;
  for (const Step& step : program.steps) {
    if (step.flags < 0 || !meets(program, step)) continue;
    const Requirements& needs = program.kernels[static_cast<std::size_t>(step.kernel)].needs;
    const std::int64_t grid = needs.grid.evaluate({});
    flags += (needs.flag_words - grid) * (ranks - 1) * 4;  // a word of each slot to each peer
  }
  return {{"algorithm", algorithm}, {"ranks", ranks},
          {"bytes", size},          {"peer_bytes", peer_bytes(program, graph, {})},
          {"least", least},         {"flag_bytes", flags}};
}

int bench() {
  ordered_json document = {{"layer", ordered_json::array()}, {"all_reduce", ordered_json::array()}};
  for (const Form& form :
       {Form{.name = "apart", .fuse = false}, Form{.name = "fused"},
        Form{.name = "one kernel with its matmul", .enable = {"micro_pipeline"}, .in_kernel = true},
        Form{.name = "sequence parallel", .enable = {"sequence_parallel"}},
        Form{.name = "sequence parallel, chunks",
        .enable = {"sequence_parallel", "micro_pipeline"}},
        Form{.name = "sequence parallel, one kernel with its matmul",
        .enable = {"sequence_parallel", "micro_pipeline"},
        .in_kernel = true}}) {
    document["layer"].push_back(layer(form));
  }
  for (const std::int64_t ranks : {2, 4, 8}) {
    for (const char* algorithm : {"one_shot", "two_shot", "ll", "multimem"}) {
      document["all_reduce"].push_back(all_reduce(algorithm, ranks));
    }
  }
  fmt::print("{}\n", document.dump(2));
  return 0;
}

}  // namespace
}  // namespace braid::bench

int main() {
  try {
    return braid::bench::bench();
  } catch (const std::exception& error) {
    fmt::print(stderr, "bench_layer: {}\n", error.what());
    return 1;
  }
}
