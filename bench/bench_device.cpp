// Kernels of one rank on a device: GEMM bf16 1024^3 and rms_norm. On `cpu` beside the pinned C++
// baselines, with the same number of threads (one), in turns, so that all see the same machine.
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

struct Baseline {
  std::string name;
  std::function<void()> run;
};

// `work` per run is in units of `unit` (GFLOP, GB).
ordered_json measure(const Graph& graph, World& world, int runs_per_sample, double work,
                     const std::string& unit, const std::vector<Baseline>& baselines) {
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
  std::vector<double> own;
  std::vector<std::vector<double>> other(baselines.size()), ratio(baselines.size());
  for (int i = 0; i < kWarmUp + kSamples; ++i) {
    const bool counts = i >= kWarmUp;
    const double braid_s = seconds(run) / runs_per_sample;
    if (counts) own.push_back(braid_s);
    for (std::size_t b = 0; b < baselines.size(); ++b) {
      const double baseline_s = seconds(baselines[b].run);
      if (!counts) continue;
      other[b].push_back(baseline_s);
      ratio[b].push_back(baseline_s / braid_s);
    }
  }
  ordered_json result = {{"name", graph.name()},
                         {"samples", kSamples},
                         {"ms", median(own) * 1e3},
                         {unit + "_per_s", work / median(own)}};
  for (std::size_t b = 0; b < baselines.size(); ++b) {
    result["baselines"].push_back({{"options", baselines[b].name},
                                   {"ms", median(other[b]) * 1e3},
                                   {unit + "_per_s", work / median(other[b])},
                                   {"speedup", median(ratio[b])}});  // of the pairs
  }
  return result;
}

/// How many times longer a run takes under the sanitizer.
ordered_json sanitizer(World& plain) {
  WorldOptions options;
  options.device = DeviceKind::kCpu;
  options.sanitize = kCheckAll;
  World checked = World::open(options);
  auto results = ordered_json::array();
  for (const Graph& graph : {gemm_graph(256), rms_norm_graph(256, 2048)}) {
    const double off = measure(graph, plain, 1, 1, "run", {})["ms"];
    const double on = measure(graph, checked, 1, 1, "run", {})["ms"];
    results.push_back(
        {{"name", graph.name()}, {"off_ms", off}, {"on_ms", on}, {"slowdown", on / off}});
  }
  return results;
}

int bench(const std::string& device, std::int64_t n) {
  WorldOptions options;
  options.device = parse_device_kind(device);
  options.threads = 1;
  World world = World::open(options);
  const bool cpu = device == "cpu";
  const int runs = cpu ? 1 : 50;  // a launch must not weigh more than the work

  const auto size = static_cast<std::size_t>(n * n);
  const std::vector<float> a(size, 0.5F), b(size, 0.25F);
  std::vector<float> c(size);
  const std::vector<std::uint16_t> x(kRows * kWidth, 0x3f80), g(kWidth, 0x3f80);
  std::vector<std::uint16_t> y(x.size());
  std::vector<Baseline> gemms, norms;
  auto add_baselines = [&](const std::string& name, BaselineGemm* gemm, BaselineRmsNorm* norm) {
    gemms.push_back({name, [&, gemm] { gemm(a.data(), b.data(), c.data(), n); }});
    norms.push_back(
        {name, [&, norm] { norm(x.data(), g.data(), y.data(), kRows, kWidth, 1e-5F); }});
  };
  if (cpu) {
    add_baselines("-O3", o3::gemm, o3::rms_norm);
    add_baselines("-Ofast", ofast::gemm, ofast::rms_norm);
  }

  auto results = ordered_json::array();
  const auto extent = static_cast<double>(n);
  results.push_back(
      measure(gemm_graph(n), world, runs, 2 * extent * extent * extent / 1e9, "gflop", gemms));
  results.back()["n"] = n;
  results.push_back(measure(rms_norm_graph(kRows, kWidth), world, runs,
                            2.0 * kRows * kWidth * 2 / 1e9, "gb", norms));
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
