#include "runtime/tune/stopwatch.h"

#include <algorithm>
#include <utility>

#include "braid/error.h"
#include "braid/executable.h"
#include "runtime/tune/tune_database.h"

namespace braid {
namespace {

constexpr std::size_t kFlushBytes = std::size_t{256} << 20U;
constexpr int kTurns = 15;

/// A kernel ready to run, and its times so far.
struct Runner {
  std::size_t request = 0;
  Executable executable;
  std::vector<double> ns;
};

}  // namespace

Stopwatch::Stopwatch(std::shared_ptr<Device> device)
    : device_(std::move(device)),
      stream_(device_->create_stream(0)),
      flush_(device_->allocate(0, kFlushBytes)) {}

void Stopwatch::fill_inputs(const TrialRequest& request) {
  std::string interface = symbols_text(request.bindings) + to_json(request.graph.clone_interface());
  if (interface == inputs_of_) return;
  constexpr std::uint64_t kSeed = 1;
  inputs_ = random_inputs(request.graph, request.bindings, kSeed);
  inputs_of_ = std::move(interface);
}

std::vector<Trial> Stopwatch::time(std::span<const TrialRequest> requests) {
  std::vector<Trial> trials(requests.size());
  if (requests.empty()) return trials;
  fill_inputs(requests[0]);
  WorldOptions options;
  options.target = requests[0].target.str();
  options.cache_dir = requests[0].cache_dir;
  options.warning = [](std::string_view) {};  // the tuner has reported it already
  const World world = World::open(options, device_);
  std::vector<Runner> runners;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    try {
      Runner runner{i, Executable::compile(requests[i].graph, world), {}};
      runner.executable.prepare(requests[i].bindings);
      for (std::size_t input = 0; input < requests[i].graph.inputs().size(); ++input) {
        runner.executable.set_input(0, requests[i].graph.inputs()[input].name, inputs_[0][input]);
      }
      runner.executable.run();  // one-time work of the first run
      runner.executable.synchronize();
      runners.push_back(std::move(runner));
    } catch (const Error& error) {
      trials[i].note = error.what();
    }
  }
  const auto begin = device_->create_timed_event(0), end = device_->create_timed_event(0);
  Stream* const streams[] = {stream_.get()};
  for (int turn = 0; turn < kTurns; ++turn) {
    for (Runner& runner : runners) {
      stream_->fill(flush_->address(), 0, flush_->size());
      stream_->record(*begin);
      runner.executable.run(streams);
      stream_->record(*end);
      stream_->synchronize();
      runner.ns.push_back(end->ns_since(*begin));
    }
  }
  for (Runner& runner : runners) {
    const auto middle = runner.ns.begin() + kTurns / 2;
    std::nth_element(runner.ns.begin(), middle, runner.ns.end());
    trials[runner.request].ns = *middle;
  }
  return trials;
}

}  // namespace braid
