// The host time of a server's thread, on the cuda device over the tests' stand-in for the driver,
// whose cuLaunchKernel does nothing here: a run per launch beside a bare loop over the same
// function, the switch between two plans, and prepare(). One rank, a chain of matmuls. Minimum and
// median of many, in turns. Prints JSON. Usage: bench_serving [launches]

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "braid/executable.h"
#include "braid/reference.h"
#include "runtime/dynamic_library.h"
#include "runtime/fake_libcuda.h"

namespace braid::bench {
namespace {

using nlohmann::ordered_json;

constexpr int kSamples = 101;
constexpr int kRuns = 20;  // of a sample

Graph chain(int length) {
  std::string inputs = R"({"name": "x", "dtype": "bf16", "shape": ["T", 64]},
                          {"name": "w", "dtype": "bf16", "shape": [64, 64], "kind": "parameter"})";
  std::string nodes;
  std::string last = "x";
  for (int i = 0; i < length; ++i) {
    const std::string name = i + 1 == length ? "y" : fmt::format("h{}", i);
    nodes += fmt::format(R"({}{{"name": "{}", "op": "mm", "inputs": ["{}", "w"]}})",
                         i == 0 ? "" : ", ", name, last);
    last = name;
  }
  return parse_graph(
      fmt::format(R"({{"braid": 1, "name": "chain", "symbols": {{"T": {{"max": 64}}}},
    "inputs": [{}], "nodes": [{}], "outputs": ["y"]}})",
                  inputs, nodes));
}

double ns_of(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count();
}

ordered_json summary(std::vector<double> samples) {
  std::sort(samples.begin(), samples.end());
  return {{"least_ns", samples.front()}, {"median_ns", samples[samples.size() / 2]}};
}

/// Nanoseconds for each of so many runs or launches, of all works in turns.
std::vector<std::vector<double>> in_turns(const std::vector<std::function<void()>>& works,
                                          double count) {
  std::vector<std::vector<double>> samples(works.size());
  for (int i = 0; i < kSamples; ++i) {
    for (std::size_t w = 0; w < works.size(); ++w) samples[w].push_back(ns_of(works[w]) / count);
  }
  return samples;
}

/// The driver's own function, with arguments that are there.
class BareLoop {
 public:
  explicit BareLoop(const DynamicLibrary& driver) {
    std::string missing;
    bind_symbol(driver, "cuLaunchKernel", launch_, missing);
    if (!missing.empty()) throw std::runtime_error("the stand-in lacks " + missing);
    for (std::size_t i = 0; i < arguments_.size(); ++i) arguments_[i] = &values_[i];
  }
  void run(int launches) {
    for (int i = 0; i < launches; ++i) {
      if (launch_(nullptr, 8, 1, 1, 128, 1, 1, 0, nullptr, arguments_.data(), nullptr) != 0) {
        throw std::runtime_error("a bare launch failed");
      }
    }
  }

 private:
  int (*launch_)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*,
                 void**, void**) = nullptr;
  std::vector<std::uint64_t> values_ = std::vector<std::uint64_t>(4);
  std::vector<void*> arguments_ = std::vector<void*>(4);
};

/// The GPU's own context is current as long as this is there.
class CurrentContext {
 public:
  explicit CurrentContext(const DynamicLibrary& driver) {
    int (*retain)(void**, int) = nullptr;
    int (*push)(void*) = nullptr;
    std::string missing;
    bind_symbol(driver, "cuDevicePrimaryCtxRetain", retain, missing);
    bind_symbol(driver, "cuDevicePrimaryCtxRelease_v2", release_, missing);
    bind_symbol(driver, "cuCtxPushCurrent_v2", push, missing);
    bind_symbol(driver, "cuCtxPopCurrent_v2", pop_, missing);
    void* context = nullptr;
    if (!missing.empty() || retain(&context, 0) != 0 || push(context) != 0) {
      throw std::runtime_error("the stand-in gives no context");
    }
  }
  CurrentContext(const CurrentContext&) = delete;
  CurrentContext& operator=(const CurrentContext&) = delete;
  ~CurrentContext() {
    void* context = nullptr;
    pop_(&context);
    release_(0);
  }

 private:
  int (*release_)(int) = nullptr;
  int (*pop_)(void**) = nullptr;
};

int bench(int launches) {
  ::setenv("BRAID_LIBCUDA", BRAID_FAKE_LIBCUDA, 1);
  const DynamicLibrary driver({BRAID_FAKE_LIBCUDA});
  decltype(&::fake_cuda) control = nullptr;
  std::string missing;
  bind_symbol(driver, "fake_cuda", control, missing);
  if (control == nullptr) throw std::runtime_error(driver.failure());
  // Kernels do nothing here, so units that are tried would fail.
  const World world = World::open({.device = DeviceKind::kCuda, .target = ":fma"});
  Executable executable = Executable::compile(chain(launches), world);
  const Executable::Plan one = executable.prepare({{"T", 1}});
  const Executable::Plan all = executable.prepare({{"T", 64}});
  const RankTensors inputs = random_inputs(chain(launches), all.bindings(), 1);
  executable.set_input(0, "x", inputs[0][0]);
  executable.set_input(0, "w", inputs[0][1]);
  if (executable.launches() != launches) throw std::runtime_error("the chain is no chain");
  const std::vector<double> warm =
      in_turns({[&] { (void)Executable::compile(chain(launches), world); }}, 1)[0];
  control()->no_launches = true;
  BareLoop bare(driver);
  const auto repeat = [](auto work) {
    return [work] {
      for (int i = 0; i < kRuns; ++i) work();
    };
  };
  executable.run(all);
  const auto per_launch =
      in_turns({repeat([&] { bare.run(launches); }), repeat([&] { executable.run(all); })},
               static_cast<double>(kRuns) * launches);
  // A server's thread has its GPU's context current; the measurements above do not.
  const CurrentContext context(driver);
  const auto with_context =
      in_turns({repeat([&] { bare.run(launches); }), repeat([&] { executable.run(all); })},
               static_cast<double>(kRuns) * launches);
  const auto per_run = in_turns({repeat([&] {
                                   executable.run(all);
                                   executable.run(all);
                                 }),
                                 repeat([&] {
                                   executable.run(all);
                                   executable.run(one);
                                 })},
                                2.0 * kRuns);
  const auto prepare = in_turns({[&] { (void)executable.prepare({{"T", 32}}); }}, 1);
  const auto least = [](const std::vector<double>& samples) {
    return *std::min_element(samples.begin(), samples.end());
  };
  const ordered_json document = {
      {"launches", launches},
      {"bare_launch", summary(with_context[0])},
      {"launch_of_a_run", summary(with_context[1])},
      {"overhead_ns", least(with_context[1]) - least(with_context[0])},
      {"overhead_without_context_ns", least(per_launch[1]) - least(per_launch[0])},
      {"run_of_one_plan", summary(per_run[0])},
      {"runs_of_two_plans", summary(per_run[1])},
      {"switch_ns", least(per_run[1]) - least(per_run[0])},
      {"prepare", summary(prepare[0])},
      {"compile_with_a_warm_cache", summary(warm)}};
  fmt::print("{}\n", document.dump(2));
  return 0;
}

}  // namespace
}  // namespace braid::bench

int main(int argc, char** argv) {
  try {
    const int launches = argc > 1 ? std::atoi(argv[1]) : 64;
    if (launches < 1) throw std::runtime_error("expected 1 launch or more");
    return braid::bench::bench(launches);
  } catch (const std::exception& error) {
    fmt::print(stderr, "bench_serving: {}\n", error.what());
    return 1;
  }
}
