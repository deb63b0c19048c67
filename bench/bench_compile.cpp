// A cold compile of each graph given: how long braid takes (read, lower, print) and how long NVRTC
// takes for each kernel, and the cpu device to turn its PTX into host code. Prints JSON. Usage:
// bench_compile TARGET GRAPH...

#include <fmt/format.h>

#include <chrono>
#include <nlohmann/json.hpp>

#include "braid/executable.h"
#include "lowering/passes.h"
#include "runtime/compile/compile_program.h"
#include "runtime/compile/compiler.h"

namespace braid::bench {
namespace {

using nlohmann::ordered_json;

// Milliseconds since the last call.
class Lap {
 public:
  double operator()() {
    const auto now = std::chrono::steady_clock::now();
    const double ms = std::chrono::duration<double, std::milli>(now - last_).count();
    last_ = now;
    return ms;
  }

 private:
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

ordered_json measure(Device& device, const Target& target, const std::string& path) {
  Lap lap;
  const Graph graph = load_graph(path);
  const double read_ms = lap();
  PassContext context;
  context.target = target;
  const Program program = lower(graph, context);
  const double lower_ms = lap();
  const ProgramCode code = compile_program(program);
  double print_ms = lap();
  double nvrtc_ms = 0;
  double translate_ms = 0;
  auto kernels = ordered_json::array();
  for (std::size_t i = 0; i < code.sources.size(); ++i) {
    const CompiledKernel& compiled = code.compiled[i];
    kernels.push_back({{"name", code.sources[i].entry},
                       {"nvrtc_ms", compiled.compile_ms},
                       {"registers", compiled.resources.registers},
                       {"spill_bytes", compiled.resources.spill_store_bytes +
                                           compiled.resources.spill_load_bytes}});
    nvrtc_ms += compiled.compile_ms;
  }
  print_ms -= nvrtc_ms;
  for (std::size_t i = 0; i < code.compiled.size(); ++i) {
    (void)lap();
    const auto module = device.load(0, code.compiled[i].image);
    const double ms = lap();
    kernels[i]["translate_ms"] = ms;
    translate_ms += ms;
  }
  const double own_ms = read_ms + lower_ms + print_ms;
  return {{"graph", graph.name()},
          {"target", target.str()},
          {"read_ms", read_ms},
          {"lower_ms", lower_ms},
          {"print_ms", print_ms},
          {"braid_ms", own_ms},
          {"nvrtc_ms", nvrtc_ms},
          {"translate_ms", translate_ms},
          {"braid_share", own_ms / (own_ms + nvrtc_ms)},
          {"launches", program.kernels.size()},
          {"kernels", kernels}};
}

int bench(const std::string& target_name, int count, char** paths) {
  const Target target = Target::parse(target_name);
  WorldOptions options;
  options.device = DeviceKind::kCpu;
  options.use_cache = false;
  const World world = World::open(options);
  auto results = ordered_json::array();
  for (int i = 0; i < count; ++i) results.push_back(measure(world.device(), target, paths[i]));
  const ordered_json document = {{"nvrtc", nvrtc_version()}, {"results", results}};
  fmt::print("{}\n", document.dump(2));
  return 0;
}

}  // namespace
}  // namespace braid::bench

int main(int argc, char** argv) {
  if (argc < 3) {
    fmt::print(stderr, "usage: bench_compile TARGET GRAPH...\n");
    return 2;
  }
  try {
    return braid::bench::bench(argv[1], argc - 2, argv + 2);
  } catch (const std::exception& error) {
    fmt::print(stderr, "bench_compile: {}\n", error.what());
    return 1;
  }
}
