// Kernels of one rank on a device: GEMM bf16 1024^3 and rms_norm. On `cpu` beside the pinned C++
// baselines, with the same number of threads (one), in turns, so that all see the same machine.
// Then, on `cpu`, smaller ones with the sanitizer on and off, and with counts. Prints JSON. Usage:
// bench_device [cpu|cuda] [gemm size]

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <nlohmann/json.hpp>
#include <vector>

#include "baseline.h"
#include "braid/executable.h"
#include "braid/reference.h"
#include "graphs.h"
#include "runtime/compile/compiler.h"

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
      const double baseline_s = seconds([&] {
                                  for (int r = 0; r < runs_per_sample; ++r) baselines[b].run();
                                }) /
                                runs_per_sample;
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

ordered_json slowdown(const std::string& name, double off, double on) {
  return {{"name", name}, {"off_ms", off}, {"on_ms", on}, {"slowdown", on / off}};
}

/// How many times longer a run takes where it is watched as `options` say.
ordered_json watched(World& plain, WorldOptions options) {
  options.device = DeviceKind::kCpu;
  options.threads = 1;
  World checked = World::open(options);
  auto results = ordered_json::array();
  for (const Graph& graph : {gemm_graph(256), rms_norm_graph(256, 2048)}) {
    const double off = measure(graph, plain, 1, 1, "run", {})["ms"];
    const double on = measure(graph, checked, 1, 1, "run", {})["ms"];
    results.push_back(slowdown(graph.name(), off, on));
  }
  return results;
}

/// Kernels as people write them, in f32: a product by way of shared memory, and a softmax of rows.
constexpr const char* kKernels = R"(
extern "C" __global__ void product(const float* a, const float* b, float* c, int n) {
  __shared__ float as[32][32], bs[32][32];
  const int x = threadIdx.x, y = threadIdx.y;
  const int column = blockIdx.x * 32 + x, row = blockIdx.y * 32 + y;
  float sum = 0;
  for (int k = 0; k < n; k += 32) {
    as[y][x] = a[row * n + k + x];
    bs[y][x] = b[(k + y) * n + column];
    __syncthreads();
    for (int i = 0; i < 32; ++i) sum += as[y][i] * bs[i][x];
    __syncthreads();
  }
  c[row * n + column] = sum;
}
__device__ float all(float value, bool max) {
  __shared__ float parts[8];
  for (int d = 16; d > 0; d /= 2) {
    const float other = __shfl_xor_sync(~0u, value, d);
    value = max ? fmaxf(value, other) : value + other;
  }
  __syncthreads();
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = value;
  __syncthreads();
  value = parts[0];
  for (int w = 1; w < 8; ++w) value = max ? fmaxf(value, parts[w]) : value + parts[w];
  return value;
}
extern "C" __global__ void softmax(const float* x, const float*, float* y, int n) {
  const float* in = x + blockIdx.x * n;
  float* out = y + blockIdx.x * n;
  float most = -1e30f, sum = 0;
  for (int i = threadIdx.x; i < n; i += 256) most = fmaxf(most, in[i]);
  most = all(most, true);
  for (int i = threadIdx.x; i < n; i += 256) sum += __expf(in[i] - most);
  sum = all(sum, false);
  for (int i = threadIdx.x; i < n; i += 256) out[i] = __expf(in[i] - most) / sum;
}
)";

/// Milliseconds of a launch of one of them, on n x n elements.
double launch_ms(World& world, const std::string& entry, Dim3 grid, Dim3 block, std::int32_t n) {
  Device& device = world.device();
  const auto module = device.load(
      0, {entry, compile_file(kKernels, "bench.cu", Target::parse(device.target())), {}});
  Function& function = module->function(entry);
  const auto stream = device.create_stream(0);
  std::array<std::unique_ptr<Memory>, 3> memory;
  std::array<std::uint64_t, 3> addresses{};
  for (std::size_t i = 0; i < memory.size(); ++i) {
    memory[i] = device.allocate(0, static_cast<std::size_t>(n) * static_cast<std::size_t>(n) * 4);
    addresses[i] = memory[i]->address();
  }
  const std::array<const void*, 4> args = {&addresses[0], &addresses[1], &addresses[2], &n};
  std::vector<double> samples;
  for (int i = 0; i < kWarmUp + kSamples; ++i) {
    const double s = seconds([&] {
      stream->launch(function, {grid, block}, args);
      stream->synchronize();
    });
    if (i >= kWarmUp) samples.push_back(s);
  }
  return median(samples) * 1e3;
}

/// Nanoseconds of a launch of one block of one warp that does nothing, of many one after the
/// other.
/// Of a kernel "nothing" that takes a number, which is 0.
ordered_json launches(World& world, const std::string& source) {
  constexpr int kLaunches = 2000;
  Device& device = world.device();
  const auto module = device.load(
      0, {"nothing", compile_file(source, "bench.cu", Target::parse(device.target())), {}});
  Function& function = module->function("nothing");
  const auto stream = device.create_stream(0);
  const std::int32_t argument = 0;
  const std::array<const void*, 1> args = {&argument};
  std::vector<double> samples;
  for (int i = 0; i < kWarmUp + kSamples; ++i) {
    const double s = seconds([&] {
      for (int l = 0; l < kLaunches; ++l) stream->launch(function, {{1}, {32}}, args);
      stream->synchronize();
    });
    if (i >= kWarmUp) samples.push_back(s);
  }
  return {{"launches", kLaunches},
          {"ns_per_launch", median(samples) / kLaunches * 1e9},
          {"least_ns", *std::min_element(samples.begin(), samples.end()) / kLaunches * 1e9}};
}

/// The cost of counting, for graphs and for the kernels above.
ordered_json counting(World& plain) {
  WorldOptions options;
  options.count = true;
  ordered_json results = watched(plain, options);
  options.device = DeviceKind::kCpu;
  options.threads = 1;
  World counted = World::open(options);
  const auto add = [&](const std::string& entry, Dim3 grid, Dim3 block, std::int32_t n) {
    results.push_back(slowdown(entry, launch_ms(plain, entry, grid, block, n),
                               launch_ms(counted, entry, grid, block, n)));
  };
  add("product", {16, 16}, {32, 32}, 512);
  add("softmax", {1024}, {256}, 1024);
  return results;
}

int bench(const std::string& device, std::int64_t n) {
  WorldOptions options;
  options.device = parse_device_kind(device);
  options.threads = 1;
  World world = World::open(options);
  const bool cpu = device == "cpu";
  // Waking threads for a launch must not weigh as much as the work.
  const int runs = cpu ? 1 : 50, norm_runs = cpu ? 10 : 50;

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
  results.push_back(measure(rms_norm_graph(kRows, kWidth), world, norm_runs,
                            2.0 * kRows * kWidth * 2 / 1e9, "gb", norms));
  results.back()["rows"] = kRows;
  results.back()["width"] = kWidth;
  ordered_json document = {
      {"device", world.device().description()}, {"threads", 1}, {"results", results}};
  if (cpu) {
    WorldOptions checks;
    checks.sanitize = kCheckAll;
    document["sanitizer"] = watched(world, checks);
    document["counting"] = counting(world);
    const std::string head = "extern \"C\" __global__ void nothing(int n) ";
    document["empty_launches"] = launches(world, head + "{}");
    // The same for a worker, by way of a loop of unknown length.
    document["empty_launches_handed_over"] =
        launches(world, "__device__ int word; " + head + "{ while (n-- > 0) word = n; }");
  }
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
