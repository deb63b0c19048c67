#include "runtime/cpu/run/capture.h"

#include <algorithm>
#include <string>

#include "braid/error.h"

namespace braid::cpu {
namespace {

StreamOp copy_of(const StreamOp& op) {
  if (const auto* launch = std::get_if<std::unique_ptr<LaunchOp>>(&op)) {
    return std::make_unique<LaunchOp>(**launch);
  }
  if (const auto* record = std::get_if<RecordOp>(&op)) return *record;
  if (const auto* wait = std::get_if<WaitOp>(&op)) return *wait;
  if (const auto* value = std::get_if<ValueOp>(&op)) return *value;
  return std::get<HostOp>(op);
}

}  // namespace

std::size_t Capture::join(const std::shared_ptr<StreamState>& stream) {
  lanes_.push_back({stream, stream->rank, {}});
  return lanes_.size() - 1;
}

/// An item more on the lane; returns what comes before the next one.
Capture::Seen& Capture::note(std::size_t lane) {
  Seen& seen = lanes_[lane].seen;
  seen.resize(lanes_.size());
  ++seen[lane];
  return seen;
}

void Capture::add(std::size_t lane, StreamOp op) {
  note(lane);
  items_.emplace_back(lane, std::move(op));
}

std::size_t Capture::record(std::size_t lane) {
  events_.push_back({std::make_shared<EventState>(), lanes_[lane].seen});
  items_.emplace_back(lane, RecordOp{events_.back().event, 0});
  return events_.size() - 1;
}

void Capture::wait(std::size_t lane, std::size_t event) {
  const Point& point = events_[event];
  items_.emplace_back(lane, WaitOp{point.event, 0});
  Seen& seen = lanes_[lane].seen;
  seen.resize(lanes_.size());
  for (std::size_t i = 0; i < point.seen.size(); ++i) seen[i] = std::max(seen[i], point.seen[i]);
}

std::size_t Capture::unjoined() const {
  Seen first = lanes_[0].seen;
  first.resize(lanes_.size());
  std::size_t count = 0;
  for (std::size_t i = 1; i < lanes_.size(); ++i) {
    const Seen& own = lanes_[i].seen;
    if (i < own.size() && own[i] > first[i]) ++count;
  }
  return count;
}

Recording Capture::end() {
  over_ = true;
  Recording recording;
  for (const Lane& lane : lanes_) {
    recording.lanes.push_back(std::make_shared<StreamState>());
    recording.lanes.back()->rank = lane.rank;
    if (const std::shared_ptr<StreamState> stream = lane.stream.lock()) stream->capture = nullptr;
  }
  recording.items = std::move(items_);
  return recording;
}

void Engine::begin_capture(const std::shared_ptr<StreamState>& stream) {
  const std::lock_guard lock(mutex_);
  if (stream->capture != nullptr) throw_invalid("stream", "is being captured already");
  stream->capture = std::make_shared<Capture>(stream);
  stream->lane = 0;
}

Recording Engine::end_capture(const std::shared_ptr<StreamState>& stream) {
  const std::lock_guard lock(mutex_);
  if (stream->capture == nullptr) {
    throw_invalid("stream", "is not being captured; expected begin_capture() first");
  }
  if (stream->lane != 0) {
    throw_invalid("stream", "its capture began on another stream; expected end_capture() of that");
  }
  const std::shared_ptr<Capture> capture = stream->capture;
  const std::size_t unjoined = capture->unjoined();
  Recording recording = capture->end();
  if (sanitizer_ != nullptr) {
    for (const auto& lane : recording.lanes) lane->clock = sanitizer_->open_stream(lane->rank);
  }
  if (unjoined == 0) return recording;
  throw_invalid("stream", "found " + std::to_string(unjoined) +
                              " other stream(s) of its capture with work that it does not wait "
                              "for; expected it to wait for an event behind that");
}

bool Engine::is_capturing(const std::shared_ptr<StreamState>& stream) {
  const std::lock_guard lock(mutex_);
  return stream->capture != nullptr;
}

/// Whether the wait is one of a capture, which the stream then is a part of.
bool Engine::wait_captured(const std::shared_ptr<StreamState>& stream, const EventState& event) {
  if (event.capture != stream->capture) {
    if (event.capture == nullptr) {
      if (event.recorded == 0) return true;
      throw_invalid("event", "was recorded outside of the stream's capture; expected one in it");
    }
    if (event.capture->is_over()) {
      throw_invalid("event", "was recorded in a capture that is over; expected it recorded anew");
    }
    if (stream->capture != nullptr) {
      throw_invalid("event", "was recorded in another capture than the stream's");
    }
    stream->capture = event.capture;
    stream->lane = event.capture->join(stream);
  }
  if (stream->capture == nullptr) return false;
  stream->capture->wait(stream->lane, event.captured);
  return true;
}

void Engine::replay(const std::shared_ptr<StreamState>& stream, const Recording& recording) {
  const std::lock_guard lock(mutex_);
  if (stream->capture != nullptr) {
    throw_invalid("stream", "is being captured; expected replays outside of captures");
  }
  const auto enqueue = [&](const std::shared_ptr<StreamState>& on, StreamOp op) {
    push(*on, std::move(op));
    advance(on);
  };
  if (recording.end->reached < recording.end->recorded) {
    enqueue(stream, WaitOp{recording.end, recording.end->recorded});
  }
  for (const auto& lane : recording.lanes) {
    if (!lane->busy && lane->queue.empty()) lane->error.clear();  // told where it was joined
  }
  for (const auto& [lane, recorded] : recording.items) {
    StreamOp op = copy_of(recorded);
    if (auto* record = std::get_if<RecordOp>(&op)) record->count = ++record->event->recorded;
    if (auto* wait = std::get_if<WaitOp>(&op)) wait->count = wait->event->recorded;
    enqueue(lane == 0 ? stream : recording.lanes[lane], std::move(op));
  }
  enqueue(stream, RecordOp{recording.end, ++recording.end->recorded});
}

void Engine::close(const std::shared_ptr<StreamState>& stream) {
  {
    const std::lock_guard lock(mutex_);
    const std::shared_ptr<Capture> capture = std::exchange(stream->capture, nullptr);
    if (capture != nullptr && stream->lane == 0) (void)capture->end();
  }
  (void)drain(stream);
}

}  // namespace braid::cpu
