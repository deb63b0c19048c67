#include "runtime/exec/unit_trials.h"

#include <fmt/format.h>

#include <chrono>
#include <future>
#include <optional>
#include <set>
#include <string_view>
#include <thread>
#include <utility>

#include "braid/error.h"
#include "ir/fail.h"
#include "ir/non_copyable.h"
#include "ir/poison.h"
#include "runtime/compile/compile_program.h"
#include "runtime/cuda/cuda_api.h"
#include "runtime/exec/launch_plan.h"
#include "runtime/exec/loaded_program.h"
#include "runtime/exec/rank_context.h"
#include "runtime/exec/symmetric_heap.h"
#include "runtime/exec/unit_canary.h"

namespace braid {
namespace {

// What the cache has of a canary. A failure follows its mark.
constexpr std::string_view kPassed = "passed", kFailed = "failed: ";

/// The version of NVRTC, or empty.
std::string compiler() {
  try {
    return nvrtc_version();
  } catch (const Error&) {
    return {};
  }
}

/// Nothing where NVRTC is missing and the cache does not have the kernel.
std::optional<ProgramCode> code_of(const Program& canary, const DiskCache* cache) {
  try {
    return compile_program(canary, {.cache = cache});
  } catch (const Error&) {
    if (!compiler().empty()) throw;
    return {};
  }
}

/// That of its kernels.
std::string text_of(const Program& canary) {
  std::string text;
  for (const KernelSource& source : print_program(canary).sources) text += source.text;
  return text;
}

/// The entry of a canary.
struct Entry {
  std::string material, maker;

  Entry(const std::string& gpu, const Program& canary, unsigned units)
      : material(fmt::format("unit {} on {}, format 1\ntarget {}\ndriver {}\nbraid {}\n\n{}",
                             names_of_units(units), gpu, canary.target.arch(),
                             cuda::driver_cuda_version(), BRAID_VERSION, text_of(canary))),
        maker("nvrtc " + compiler()) {}

  /// What is wrong, or "" ; nothing if the cache does not have it.
  [[nodiscard]] std::optional<std::string> find(const DiskCache* cache) const {
    if (cache == nullptr) return {};
    const std::optional<std::string> text =
        compiler().empty() ? cache->get_of_any_maker(material) : cache->get({material, maker});
    if (!text) return {};
    if (*text == kPassed) return "";
    if (!text->starts_with(kFailed)) return {};
    return text->substr(kFailed.size());
  }
  void keep(const DiskCache* cache, const std::string& failure) const {
    if (cache == nullptr) return;
    cache->put({material, maker},
               failure.empty() ? std::string(kPassed) : std::string(kFailed) + failure);
  }
};

/// A canary on one GPU. It owns all that its kernel uses, since a kernel that does not end cannot
/// be taken from it.
class Flight : NonCopyable {
 public:
  Flight(std::shared_ptr<Device> device, int rank, Program canary, ProgramCode code,
         const CanaryTensors& tensors)
      : device_(std::move(device)),
        loaded_(*device_, {rank}, std::move(canary), std::move(code)),
        heap_(loaded_.program(), *device_, std::vector{rank}),
        context_(*device_, allocator_, loaded_, heap_, 0, rank) {
    const Program& program = loaded_.program();
    heap_.connect({});
    context_.allocate_unbound();
    context_.reset();
    const std::vector<RankPlaces> places{context_.places()};
    const auto address_of = [&](const ProgramTensor& tensor) {
      return places[0].buffer_addresses[tensor.buffer];
    };
    Stream& stream = context_.stream();
    for (std::size_t i = 0; i < program.inputs.size(); ++i) {
      const auto& data = tensors.inputs[i].data;
      stream.copy_from_host(address_of(program.inputs[i]), data.data(), data.size());
    }
    found_ = tensors.expected;
    const std::vector<std::uint16_t> poison(static_cast<std::size_t>(found_.numel()),
                                            poison_bits(found_.dtype));
    for (const ProgramTensor& output : program.outputs) {
      outputs_.push_back(address_of(output));
      stream.copy_from_host(outputs_.back(), poison.data(), found_.data.size());
    }
    stream.synchronize();  // throws what went wrong before, which is not a unit's fault
    plan_ = LaunchPlan(program, {}, places, /*timeout_ns=*/0);
  }

  void launch() {
    std::vector<Stream*> streams;
    std::vector<Event*> events;
    for (const auto& stream : context_.streams()) streams.push_back(stream.get());
    for (const auto& event : context_.events()) events.push_back(event.get());
    plan_.run({streams, events});
  }
  /// Throws what the kernel's fault is.
  void land() { context_.stream().synchronize(); }

  /// What is wrong with the first output of which something is.
  [[nodiscard]] std::string wrong(const HostTensor& expected) {
    Stream& stream = context_.stream();
    for (const std::uint64_t output : outputs_) {
      stream.copy_to_host(found_.data.data(), output, found_.data.size());
      stream.synchronize();
      if (std::string wrong = wrong_elements(found_, expected); !wrong.empty()) return wrong;
    }
    return {};
  }

 private:
  std::shared_ptr<Device> device_;
  Allocator allocator_;
  LoadedProgram loaded_;
  SymmetricHeap heap_;
  RankContext context_;
  LaunchPlan plan_;
  std::vector<std::uint64_t> outputs_;
  HostTensor found_;
};

struct Outcome {
  std::string failure;
  bool lost = false;  ///< the GPU is of no more use to this process
};

Outcome fault(const Error& error) {
  return {fmt::format("a product ended in a fault: {}", error.what()), true};
}

Outcome fly(const std::shared_ptr<Flight>& flight, const HostTensor& expected,
            std::chrono::nanoseconds limit) {
  try {
    flight->launch();
  } catch (const Error&) {
    // The fault of a kernel in front shows at a launch when it is quick, and always on landing.
    try {
      flight->land();
    } catch (const Error& error) {
      return fault(error);
    }
    throw;
  }
  std::packaged_task<void()> task([flight] { flight->land(); });
  std::future<void> landed = task.get_future();
  std::thread waiting(std::move(task));
  if (landed.wait_for(limit) != std::future_status::ready) {
    waiting.detach();  // it ends when the kernel does
    return {fmt::format("a product did not end within {:g} s",
                        std::chrono::duration<double>(limit).count()),
            true};
  }
  waiting.join();
  try {
    landed.get();
  } catch (const Error& error) {
    return fault(error);
  }
  return {flight->wrong(expected)};
}

}  // namespace

UnitTrials::UnitTrials(std::shared_ptr<Device> device, std::vector<int> ranks,
                       const DiskCache* cache, std::chrono::nanoseconds limit)
    : device_(std::move(device)), ranks_(std::move(ranks)), cache_(cache), limit_(limit) {}

UnitFinding UnitTrials::find(unsigned units, const Target& target) const {
  const Program canary = unit_canary(target, units);
  const Entry entry(device_->name(), canary, units);
  if (std::optional<std::string> known = entry.find(cache_)) return {units, *std::move(known)};
  const std::optional<ProgramCode> code = code_of(canary, cache_);
  if (!code) return {units, ""};
  const CanaryTensors tensors = canary_tensors();
  std::set<const void*> tried;
  for (const int rank : ranks_) {
    if (!tried.insert(device_->create_stream(rank)->home().device).second) continue;
    const Outcome outcome = fly(std::make_shared<Flight>(device_, rank, canary, *code, tensors),
                                tensors.expected, limit_);
    if (outcome.failure.empty()) continue;
    std::string failure = fmt::format("on {} (rank {}) {}", device_->name(), rank, outcome.failure);
    if (!outcome.lost) return {units, std::move(failure), /*is_new=*/true};
    entry.keep(cache_, failure);
    throw_environment(names_of_units(units),
                      "{}; this process has lost the GPU: expected another one, {} --units {}",
                      failure, cache_ == nullptr ? "with" : "which will do without, or",
                      other_units(target, units));
  }
  return {units, "", /*is_new=*/true};
}

void UnitTrials::keep(const UnitFinding& finding, const Target& target) const {
  Entry(device_->name(), unit_canary(target, finding.units), finding.units)
      .keep(cache_, finding.failure);
}

std::optional<std::string> known_finding(const std::string& gpu, unsigned units,
                                         const Target& target, const DiskCache& cache) {
  return Entry(gpu, unit_canary(target, units), units).find(&cache);
}

}  // namespace braid
