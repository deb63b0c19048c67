#include "run/run_graph.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "braid/error.h"
#include "findings.h"
#include "ir/collective.h"
#include "lowering/passes.h"
#include "runtime/device_loader.h"
#include "runtime/dynamic_library.h"

namespace braid::testing {
namespace {

/// Holds a GPU's context from the first test to the last: each that opens one anew, because no
/// device has it, waits a second, and far longer for processes that do the same.
class HeldContext final : public ::testing::Environment {
 public:
  void SetUp() override {
    if (world_options(1).device != DeviceKind::kCuda) return;
    try {
      world_.emplace(World::open(world_options(1)));
    } catch (const Error&) {  // without one the tests say more
    }
  }
  void TearDown() override { world_.reset(); }

 private:
  std::optional<World> world_;
};
[[maybe_unused]] const ::testing::Environment* const kHeldContext =
    ::testing::AddGlobalTestEnvironment(std::make_unique<HeldContext>().release());

[[noreturn]] void skip(const std::string& why) {
  [&] { GTEST_SKIP() << why; }();
  // Leaves the test, too, without a word of its own.
  throw ::testing::AssertionException(
      {::testing::TestPartResult::kSkip, __FILE__, __LINE__, why.c_str()});
}

}  // namespace

WorldOptions world_options(std::int64_t world) {
  WorldOptions options;
  const char* device = std::getenv("BRAID_TEST_DEVICE");
  options.device = parse_device_kind(device != nullptr ? device : "cpu");
  options.world = static_cast<int>(world);
  const char* target = std::getenv("BRAID_TEST_TARGET");
  if (target != nullptr) options.target = target;
  return options;
}

WorldOptions cpu_world_options(std::int64_t world) {
  need_cpu_device();
  WorldOptions options;
  options.device = DeviceKind::kCpu;
  options.world = static_cast<int>(world);
  return options;
}

void need_cpu_device() {
  static const DynamicLibrary kLibrary(cpu_library_candidates());
  if (kLibrary.loaded() || world_options(1).device == DeviceKind::kCpu) return;
  skip("needs the cpu device: " + kLibrary.failure());
}

PassConfig all_reduce_by(std::string algorithm) {
  const bool ordered = algorithm != algorithm_name(Algorithm::kMultimem);
  if (!ordered && world_options(1).device == DeviceKind::kCuda) {
    static const bool kHas = World::open(world_options(2)).device().has_multicast();
    if (!kHas) skip("ranks that share a GPU have no multicast memory");
  }
  return {.all_reduce = std::move(algorithm), .batch_invariant = ordered};
}

std::string target_of(const PassConfig& passes) {
  return passes.all_reduce == algorithm_name(Algorithm::kMultimem) ? "sm_90a" : "";
}

void set_inputs(Executable& executable, const Graph& graph, const RankTensors& inputs) {
  for (int rank = 0; rank < static_cast<int>(inputs.size()); ++rank) {
    for (std::size_t i = 0; i < graph.inputs().size(); ++i) {
      executable.set_input(rank, graph.inputs()[i].name, inputs[static_cast<std::size_t>(rank)][i]);
    }
  }
}

RankTensors run_once(Executable& executable, const Graph& graph, const Bindings& bindings,
                     const RankTensors& inputs) {
  executable.prepare(bindings);
  set_inputs(executable, graph, inputs);
  executable.poison_outputs();
  executable.run();
  RankTensors outputs(inputs.size());
  for (int rank = 0; rank < static_cast<int>(inputs.size()); ++rank) {
    for (ValueId v : graph.outputs()) {
      outputs[static_cast<std::size_t>(rank)].push_back(
          executable.output(rank, graph.value(v).name));
    }
  }
  return outputs;
}

namespace {

/// The effect of one rounding on a tensor in which few elements outweigh all others.
double two_epsilons(const HostTensor& tensor) {
  return tensor.dtype == DType::kBF16 ? 0x1p-7 : tensor.dtype == DType::kF16 ? 0x1p-10 : 0;
}

/// A sum of K products in f32 is off by about sqrt(K) times what the last bits of its operands
/// make: its partial sums are that much larger than one product.
constexpr double kRoundingOfF32Sums = 16;

/// Flips the last bit of each float of 16 or 32 bits.
RankTensors nudged(RankTensors tensors) {
  for (std::vector<HostTensor>& of_rank : tensors) {
    for (HostTensor& tensor : of_rank) {
      if (!is_float(tensor.dtype) || dtype_size(tensor.dtype) < 2) continue;
      for (std::size_t b = 0; b < tensor.data.size(); b += dtype_size(tensor.dtype)) {
        tensor.data[b] ^= std::byte{1};
      }
    }
  }
  return tensors;
}

}  // namespace

::testing::AssertionResult same_as_reference(const Graph& graph, const RankTensors& got,
                                             const RankTensors& expected,
                                             const std::optional<RankTensors>& rounded_otherwise) {
  for (std::size_t i = 0; i < graph.outputs().size(); ++i) {
    const std::string& name = graph.value(graph.outputs()[i]).name;
    bool equal = true;
    for (std::size_t rank = 0; rank < got.size(); ++rank) {
      const double error = relative_error(got[rank][i], expected[rank][i]);
      double allowed = tolerance(graph, graph.outputs()[i], expected[0][i].shape);
      if (rounded_otherwise) {
        const double otherwise = relative_error((*rounded_otherwise)[rank][i], expected[rank][i]);
        const bool is_f32 = got[rank][i].dtype == DType::kF32;
        allowed = std::max({allowed, two_epsilons(got[rank][i]),
                            is_f32 ? kRoundingOfF32Sums * otherwise : otherwise});
      }
      if (!(error <= allowed)) {
        return ::testing::AssertionFailure()
               << "output " << name << " of rank " << rank << ": relative error " << error;
      }
      equal = equal && expected[rank][i].data == expected[0][i].data;
    }
    for (std::size_t rank = 1; equal && rank < got.size(); ++rank) {
      if (got[rank][i].data != got[0][i].data) {
        return ::testing::AssertionFailure()
               << "output " << name << " differs between ranks 0 and " << rank;
      }
    }
  }
  return ::testing::AssertionSuccess();
}

namespace {

RankTensors compile_and_run(const Graph& graph, const Bindings& bindings, const RankTensors& inputs,
                            const PassConfig& passes = {}) {
  WorldOptions options = world_options(world_size(graph));
  options.target = target_of(passes);
  World world = World::open(options);
  Executable executable = Executable::compile(graph, world, passes);
  return run_once(executable, graph, bindings, inputs);
}

/// The reference's result after another value was rounded the other way.
std::optional<RankTensors> rounded_otherwise(bool but_for_ties, const Graph& graph,
                                             const Bindings& bindings, const RankTensors& inputs) {
  if (!but_for_ties) return {};
  return evaluate(graph, nudged(inputs), bindings);
}

}  // namespace

::testing::AssertionResult matches_reference(const Graph& graph, const Bindings& bindings,
                                             std::uint64_t seed, const PassConfig& passes,
                                             bool but_for_ties) {
  const RankTensors inputs = random_inputs(graph, bindings, seed);
  return same_as_reference(graph, compile_and_run(graph, bindings, inputs, passes),
                           evaluate(graph, inputs, bindings),
                           rounded_otherwise(but_for_ties, graph, bindings, inputs));
}

namespace {

/// The graph's outputs under the sanitizer, on the cpu device; a finding is a failure.
::testing::AssertionResult run_clean(const Graph& graph, const Bindings& bindings,
                                     const RankTensors& inputs, const PassConfig& passes,
                                     RankTensors& outputs) {
  WorldOptions options = cpu_world_options(world_size(graph));
  options.sanitize = kCheckAll;
  options.target = target_of(passes);
  World world = World::open(options);
  Executable executable = Executable::compile(graph, world, passes);
  outputs = run_once(executable, graph, bindings, inputs);
  // Once more without the host in between.
  executable.run();
  executable.run();
  executable.synchronize();
  const auto findings = found_by(world.device());
  if (!findings.empty()) return ::testing::AssertionFailure() << findings[0].text();
  return ::testing::AssertionSuccess();
}

/// Whether the outputs are bitwise those of the graph with a kernel per node.
::testing::AssertionResult same_as_unfused(const Graph& graph, const Bindings& bindings,
                                           const RankTensors& inputs, const PassConfig& config,
                                           const RankTensors& fused) {
  PassContext context;
  context.config = config;
  if (const std::string target = target_of(config); !target.empty()) {
    context.target = Target::parse(target);
  }
  context.max_kernel_nodes = 1;
  std::vector<std::string> passes;
  for (const Pass* pass : all_passes()) {
    if (runs(*pass, context.config)) passes.emplace_back(pass->name);
  }
  const Graph separate = run_passes(graph, passes, context);
  const RankTensors unfused = compile_and_run(separate, bindings, inputs);
  for (std::size_t rank = 0; rank < fused.size(); ++rank) {
    for (std::size_t i = 0; i < fused[rank].size(); ++i) {
      if (fused[rank][i].data == unfused[rank][i].data) continue;
      return ::testing::AssertionFailure()
             << "output " << graph.value(graph.outputs()[i]).name << " of rank " << rank
             << " is not what it is unfused: relative difference "
             << relative_error(fused[rank][i], unfused[rank][i]);
    }
  }
  return ::testing::AssertionSuccess();
}

}  // namespace

::testing::AssertionResult matches_reference_and_unfused(const Graph& graph,
                                                         const Bindings& bindings,
                                                         std::uint64_t seed,
                                                         const PassConfig& config,
                                                         bool but_for_ties) {
  const RankTensors inputs = random_inputs(graph, bindings, seed);
  const RankTensors fused = compile_and_run(graph, bindings, inputs, config);
  const auto good = same_as_reference(graph, fused, evaluate(graph, inputs, bindings),
                                      rounded_otherwise(but_for_ties, graph, bindings, inputs));
  return good ? same_as_unfused(graph, bindings, inputs, config, fused) : good;
}

::testing::AssertionResult runs_clean(const Graph& graph, const Bindings& bindings,
                                      std::uint64_t seed, const PassConfig& passes) {
  const RankTensors inputs = random_inputs(graph, bindings, seed);
  RankTensors outputs;
  const auto clean = run_clean(graph, bindings, inputs, passes, outputs);
  return clean ? same_as_reference(graph, outputs, evaluate(graph, inputs, bindings)) : clean;
}

::testing::AssertionResult runs_clean_as_unfused(const Graph& graph, const Bindings& bindings,
                                                 std::uint64_t seed, const PassConfig& passes) {
  if (world_options(1).device != DeviceKind::kCpu) {
    return matches_reference_and_unfused(graph, bindings, seed, passes);
  }
  const RankTensors inputs = random_inputs(graph, bindings, seed);
  RankTensors outputs;
  const auto clean = run_clean(graph, bindings, inputs, passes, outputs);
  if (!clean) return clean;
  const auto good = same_as_reference(graph, outputs, evaluate(graph, inputs, bindings));
  return good ? same_as_unfused(graph, bindings, inputs, passes, outputs) : good;
}

}  // namespace braid::testing
