// Kernels of one rank on a device: GEMM bf16 1024^3 and rms_norm. On `cpu` beside the pinned C++
// baselines, with the same number of threads (one), in turns, so that both see the same machine.
// Then, on `cpu`, smaller ones with the sanitizer on and off. Prints JSON. Usage: bench_device
// [cpu|cuda] [gemm size]

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <nlohmann/json.hpp>
#include <vector>

#include "baseline.h"
#include "braid/executable.h"
#include "braid/reference.h"
#include "graphs.h"

namespace braid::bench {
namespace {

using nlohmann::ordered_json;

constexpr int kSamples = 15;
constexpr int kWarmUp = 3;
constexpr std::int64_t kRows = 1024, kWidth = 2048;

double seconds(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2),
                   values.end());
  return values[values.size() / 2];
}

// `work` per run is in units of `unit` (GFLOP, GB). `baseline` may be empty.
ordered_json measure(const Graph& graph, World& world, int runs_per_sample, double work,
                     const std::string& unit, const std::function<void()>& baseline) {
  Executable executable = Executable::compile(graph, world);
  executable.prepare({});
  const RankTensors inputs = random_inputs(graph, {}, 1);
  for (std::size_t i = 0; i < graph.inputs().size(); ++i) {
    executable.set_input(0, graph.inputs()[i].name, inputs[0][i]);
  }
  auto run = [&] {
    for (int i = 0; i < runs_per_sample; ++i) executable.run();
    executable.synchronize();
  };
  std::vector<double> own, other, ratio;
  for (int i = 0; i < kWarmUp + kSamples; ++i) {
    const double braid_s = seconds(run) / runs_per_sample;
    const double baseline_s = baseline ? seconds(baseline) : 0;
    if (i < kWarmUp) continue;
    own.push_back(braid_s);
    other.push_back(baseline_s);
    ratio.push_back(baseline_s / braid_s);
  }
  ordered_json result = {{"name", graph.name()},
                         {"samples", kSamples},
                         {"braid_ms", median(own) * 1e3},
                         {"braid_" + unit + "_per_s", work / median(own)}};
  if (baseline) {
    result["baseline_ms"] = median(other) * 1e3;
    result["baseline_" + unit + "_per_s"] = work / median(other);
    result["speedup"] = median(ratio);  // of the pairs
  }
  return result;
}

/// How many times longer a run takes under the sanitizer.
ordered_json sanitizer(World& plain) {
  WorldOptions options;
  options.device = "cpu";
  options.sanitize = "all";
  World checked = World::open(options);
  auto results = ordered_json::array();
  for (const Graph& graph : {gemm_graph(256), rms_norm_graph(256, 2048)}) {
    const double off = measure(graph, plain, 1, 1, "run", nullptr)["braid_ms"];
    const double on = measure(graph, checked, 1, 1, "run", nullptr)["braid_ms"];
    results.push_back(
        {{"name", graph.name()}, {"off_ms", off}, {"on_ms", on}, {"slowdown", on / off}});
  }
  return results;
}

int bench(const std::string& device, std::int64_t n) {
  WorldOptions options;
  options.device = device;
  options.threads = 1;
  World world = World::open(options);
  const bool cpu = device == "cpu";
  const int runs = cpu ? 1 : 50;  // a launch must not weigh more than the work

  const auto size = static_cast<std::size_t>(n * n);
  const std::vector<float> a(size, 0.5F), b(size, 0.25F);
  std::vector<float> c(size);
  std::function<void()> gemm = [&] { baseline_gemm(a.data(), b.data(), c.data(), n); };
  const std::vector<std::uint16_t> x(kRows * kWidth, 0x3f80), g(kWidth, 0x3f80);
  std::vector<std::uint16_t> y(x.size());
  std::function<void()> norm = [&] {
    baseline_rms_norm(x.data(), g.data(), y.data(), kRows, kWidth, 1e-5F);
  };
  if (!cpu) gemm = norm = nullptr;

  auto results = ordered_json::array();
  const auto extent = static_cast<double>(n);
  results.push_back(
      measure(gemm_graph(n), world, runs, 2 * extent * extent * extent / 1e9, "gflop", gemm));
  results.back()["n"] = n;
  results.push_back(measure(rms_norm_graph(kRows, kWidth), world, runs,
                            2.0 * kRows * kWidth * 2 / 1e9, "gb", norm));
  results.back()["rows"] = kRows;
  results.back()["width"] = kWidth;
  ordered_json document = {
      {"device", world.device().description()}, {"threads", 1}, {"results", results}};
  if (cpu) document["sanitizer"] = sanitizer(world);
  fmt::print("{}\n", document.dump(2));
  return 0;
}

}  // namespace
}  // namespace braid::bench

int main(int argc, char** argv) {
  try {
    return braid::bench::bench(argc > 1 ? argv[1] : "cpu", argc > 2 ? std::atoll(argv[2]) : 1024);
  } catch (const std::exception& error) {
    fmt::print(stderr, "bench_device: {}\n", error.what());
    return 1;
  }
}
