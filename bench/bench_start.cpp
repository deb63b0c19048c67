// The time from a loaded library to a program that is ready to run, for each graph given:
// Executable::compile and prepare() with every symbol at its maximum, in one world of the cpu
// device. BRAID_CACHE_DIR decides which kernels come from the cache: the second process on one
// directory starts warm. Prints JSON. Usage: bench_start GRAPH...

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>

#include "braid/executable.h"
#include "lowering/plan/cost.h"
#include "runtime/compile/compiler.h"

namespace braid::bench {
namespace {

using nlohmann::ordered_json;

ordered_json measure(const std::string& path) {
  const Graph graph = load_graph(path);
  WorldOptions options;
  options.device = DeviceKind::kCpu;
  options.world = static_cast<int>(world_size(graph));
  World world = World::open(options);
  const auto start = std::chrono::steady_clock::now();
  Executable executable = Executable::compile(graph, world);
  executable.prepare(max_bindings(graph.symbols()));
  const std::chrono::duration<double, std::milli> elapsed =
      std::chrono::steady_clock::now() - start;
  const auto kernels = executable.kernels();
  const auto calls = std::count_if(kernels.begin(), kernels.end(),
                                   [](const KernelReport& kernel) { return !kernel.cache_hit; });
  return {{"graph", graph.name()},
          {"launches", executable.launches()},
          {"kernels", kernels.size()},
          {"nvrtc_calls", calls},
          {"ready_ms", elapsed.count()}};
}

}  // namespace
}  // namespace braid::bench

int main(int argc, char** argv) {
  if (argc < 2) {
    fmt::print(stderr, "usage: bench_start GRAPH...\n");
    return 2;
  }
  try {
    (void)braid::nvrtc_version();  // loads it
    auto results = braid::bench::ordered_json::array();
    for (int i = 1; i < argc; ++i) results.push_back(braid::bench::measure(argv[i]));
    fmt::print("{}\n", results.dump(2));
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "bench_start: {}\n", error.what());
    return 1;
  }
}
