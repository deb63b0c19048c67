// Captures and graphs of the stand-in for the CUDA driver (fake_libcuda.cpp).
#include "runtime/fake_graph.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "runtime/fake_result.h"

namespace braid::fake {
namespace {

constexpr int kRelaxed = 2;

/// All its streams work again.
void finish(Capture& capture) {
  capture.over = true;
  const std::lock_guard lock(state().mutex);
  for (const auto& [stream, seen] : capture.seen) {
    if (state().live.contains(stream)) const_cast<Handle*>(stream)->capture = nullptr;
  }
}

}  // namespace

bool record_work(Handle& stream, const Work& work) {
  if (stream.capture == nullptr) return false;
  stream.capture->works.push_back(work);
  ++stream.capture->seen[&stream][&stream];
  return true;
}

InCapture record_event(Handle& event, Handle& stream) {
  event.capture = stream.capture;
  if (stream.capture == nullptr) return {};
  event.seen = stream.capture->seen[&stream];
  return {true, 0};
}

InCapture record_wait(Handle& stream, const Handle& event) {
  if (stream.capture == nullptr && event.capture == nullptr) return {};
  if (event.capture == nullptr) return {true, kCaptureIsolation};
  if (event.capture->over) return {true, kCapturedEvent};
  if (stream.capture != nullptr && stream.capture != event.capture) return {true, kCaptureMerge};
  stream.capture = event.capture;
  auto& seen = stream.capture->seen[&stream];
  for (const auto& [other, count] : event.seen) seen[other] = std::max(seen[other], count);
  return {true, 0};
}

}  // namespace braid::fake

using namespace braid::fake;  // NOLINT(google-build-using-namespace)

extern "C" {

int cuStreamBeginCapture_v2(void* stream, int mode) {
  if (const int error = enter_context("cuStreamBeginCapture")) return error;
  Handle* found = find(stream, Kind::kStream);
  if (found == nullptr) return kInvalidHandle;
  if (found->capture != nullptr || mode != kRelaxed) return kInvalidValue;
  found->capture = std::make_shared<Capture>(Capture{found, {}, {{found, {}}}});
  return 0;
}
int cuStreamEndCapture(void* stream, void** graph) {
  if (const int error = enter_context("cuStreamEndCapture")) return error;
  Handle* found = find(stream, Kind::kStream);
  if (found == nullptr || found->capture == nullptr) return kInvalidHandle;
  const std::shared_ptr<Capture> capture = found->capture;
  if (capture->origin != found) return kCaptureUnmatched;
  finish(*capture);
  for (auto& [other, seen] : capture->seen) {
    if (seen[other] > capture->seen[found][other]) return kCaptureUnjoined;
  }
  if (const int error = create("cuStreamEndCapture", Kind::kGraph, graph)) return error;
  static_cast<Handle*>(*graph)->works = std::move(capture->works);
  return 0;
}
int cuGraphInstantiateWithFlags(void** exec, void* graph, unsigned long long) {
  const Handle* found = find(graph, Kind::kGraph);
  if (found == nullptr) return kInvalidHandle;
  if (const int error = create("cuGraphInstantiate", Kind::kGraph, exec)) return error;
  static_cast<Handle*>(*exec)->works = found->works;
  return 0;
}
int cuGraphDestroy(void* graph) { return destroy(graph, Kind::kGraph); }
int cuGraphExecDestroy(void* exec) { return destroy(exec, Kind::kGraph); }
int cuGraphLaunch(void* exec, void* stream) {
  if (const int error = enter_context("cuGraphLaunch")) return error;
  const Handle* graph = find(exec, Kind::kGraph);
  Handle* on = find(stream, Kind::kStream);
  if (graph == nullptr || on == nullptr || graph->gpu != on->gpu) return kInvalidHandle;
  for (const Work& work : graph->works) on->stream->submit(work);
  return 0;
}

}  // extern "C"
