#include "lowering/plan/plan_steps.h"

#include <algorithm>
#include <set>
#include <utility>

#include "lowering/plan/lifetimes.h"
#include "lowering/schedule/streams.h"

namespace braid {
std::size_t PlanSteps::whole(int buffer) const {
  const std::optional<Slice>& slice = program_.buffers[buffer].slice;
  return slice ? slice->of : buffer;
}

void PlanSteps::append(Step step) {
  for (const int id : step.outputs) written_at_[whole(id)] = count();
  if (step.destination >= 0) written_at_[whole(step.destination)] = count();
  program_.steps.push_back(std::move(step));
}

void PlanSteps::push(Step step) {
  step.stream = kComputeStream;
  for (auto& [stream, awaited] : awaited_) {
    if (awaited.next < 0) continue;
    append({.kind = Step::Kind::kEventWait,
            .name = awaited.name,
            .stream = kComputeStream,
            .event = std::exchange(awaited.next, -1)});
  }
  append(std::move(step));
}

void PlanSteps::copy(std::string name, int source, int destination) {
  push({.kind = Step::Kind::kCopy,
        .name = std::move(name),
        .source = source,
        .destination = destination});
}

int PlanSteps::copy_from_peer(Step step) {
  meet(step.source_peer->group, step.source, step.stream);
  const std::string name = step.name;
  const int stream = step.stream;
  append(std::move(step));
  return record(name, stream);
}

int PlanSteps::record(const std::string& name, int stream) {
  const int event = stream_of_.size();
  stream_of_.push_back(stream);
  Step step{.kind = Step::Kind::kEventRecord, .name = name, .stream = stream, .event = event};
  stream == kComputeStream ? push(std::move(step)) : append(std::move(step));
  return event;
}

int PlanSteps::collective(Step step) {
  const std::string name = step.name;
  const int stream = step.stream;
  const int event = record(name, kComputeStream);
  append({.kind = Step::Kind::kEventWait, .name = name, .stream = stream, .event = event});
  append(std::move(step));
  return record(name, stream);
}

void PlanSteps::await(const std::string& name, int event) {
  Awaited& awaited = awaited_[stream_of_[event]];
  if (event <= awaited.last) return;  // the later one follows it on its stream
  awaited = {event, event, name};
}

/// One barrier serves everything written before it.
void PlanSteps::meet(const std::string& group, int source, int stream) {
  const auto met = met_at_.try_emplace(group, -1).first;
  const auto written = written_at_.find(whole(source));
  if (met->second > (written == written_at_.end() ? -1 : written->second)) return;
  const std::string name = program_.buffers[whole(source)].name;
  met->second = count();
  const int event = record(name, kComputeStream);
  append({.kind = Step::Kind::kEventWait, .name = name, .stream = stream, .event = event});
  add_barrier(name, group, stream);
}

void PlanSteps::add_barrier(const std::string& name, const std::string& group, int stream) {
  const auto [known, is_new] =
      barriers_.try_emplace(group, static_cast<int>(program_.kernels.size()));
  if (is_new) {
    auto body = std::make_shared<Graph>();
    body->add_group(group, program_.groups.find(group)->second);
    ProgramKernel kernel{.spec = {body, default_config(*body, context_.target)}, .needs = {}};
    kernel.needs = requirements(kernel.spec, context_.target, context_.ranks_per_device);
    program_.kernels.push_back(std::move(kernel));
  }
  append({.kind = Step::Kind::kBarrier, .name = name, .stream = stream, .kernel = known->second});
}

void PlanSteps::finish() {
  drop_unused_events();
  add_closing_barriers();
  drop_unused_streams();
}

void PlanSteps::drop_unused_events() {
  std::vector<int> number(stream_of_.size(), -1);
  for (const Step& step : program_.steps) {
    if (step.kind == Step::Kind::kEventWait) number[step.event] = 0;
  }
  std::erase_if(program_.steps, [&](const Step& step) {
    return step.kind == Step::Kind::kEventRecord && number[step.event] < 0;
  });
  int used = 0;
  for (int& n : number) n = n < 0 ? n : used++;
  for (Step& step : program_.steps) {
    if (step.event >= 0) step.event = number[step.event];
  }
}

/// Renumbers the streams in use without gaps.
void PlanSteps::drop_unused_streams() {
  std::map<int, int> number{{kComputeStream, 0}};
  for (const Step& step : program_.steps) number[step.stream] = 0;
  int used = 0;
  for (auto& [stream, n] : number) n = used++;
  for (Step& step : program_.steps) step.stream = number[step.stream];
}

/// Ensures that no remote read outlives a run: a step that no later wait for its group follows ends
/// with a barrier, or gets a barrier step behind it.
void PlanSteps::add_closing_barriers() {
  const StepOrder order(program_.steps);
  const Barriers barriers = barriers_of(program_);
  std::set<std::string> unmet;
  for (int s = 0; s < count(); ++s) {
    Step& step = program_.steps[s];
    const bool copies = step.source_peer.has_value();
    const std::string& group = copies ? step.source_peer->group : comm_group(program_, step);
    if (group.empty() || step.kind == Step::Kind::kBarrier) continue;
    // Packets outlive no run: one is over when it has all that were sent to it.
    if (!copies && program_.kernels[step.kernel].needs.remote.empty()) continue;
    const auto found = barriers.find(group);
    const bool met =
        found != barriers.end() && std::any_of(found->second.rbegin(), found->second.rend(),
                                               [&](int later) { return order.before(s, later); });
    if (met) continue;
    if (copies) {
      unmet.insert(group);
    } else {
      step.closing_barrier = true;
    }
  }
  for (const std::string& group : unmet) add_barrier("end of " + group, group, kCopyStream);
}

}  // namespace braid
