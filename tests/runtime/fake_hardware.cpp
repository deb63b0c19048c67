#include "runtime/fake_hardware.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace braid::fake {

Stream::Stream(Hardware& hardware, int gpu, int queues, int delay_ms)
    : hardware_(hardware), gpu_(gpu), delay_ms_(delay_ms) {
  const std::lock_guard lock(hardware_.mutex);
  Hardware::Gpu& state = hardware_.gpus[static_cast<std::size_t>(gpu_)];
  queue_ = state.streams_made++ % static_cast<std::size_t>(queues);
  if (state.queues.size() <= queue_) state.queues.resize(queue_ + 1);
  thread_ = std::thread([this] { loop(); });
}

Stream::~Stream() {
  {
    const std::lock_guard lock(hardware_.mutex);
    stop_ = true;
  }
  hardware_.changed.notify_all();
  thread_.join();
}

std::shared_ptr<Mark> Stream::submit(Work work) {
  auto mark = std::make_shared<Mark>();
  {
    const std::lock_guard lock(hardware_.mutex);
    const std::uint64_t ticket = hardware_.next_ticket++;
    hardware_.gpus[static_cast<std::size_t>(gpu_)].queues[queue_].push_back(ticket);
    items_.push_back({std::move(work), ticket, mark});
  }
  hardware_.changed.notify_all();
  return mark;
}

void Stream::wait(const std::shared_ptr<Mark>& mark) {
  std::unique_lock lock(hardware_.mutex);
  hardware_.changed.wait(lock, [&] { return mark->reached; });
}

void Stream::wait_idle() {
  std::unique_lock lock(hardware_.mutex);
  hardware_.changed.wait(lock, [&] { return items_.empty(); });
}

bool Stream::can_start(const Item& item) const {
  const Hardware::Gpu& gpu = hardware_.gpus[static_cast<std::size_t>(gpu_)];
  if (gpu.queues[queue_].front() != item.ticket) return false;
  if (item.work.after != nullptr && !item.work.after->reached) return false;
  // A grid that is larger than the GPU comes in waves, once the GPU is empty.
  return gpu.capacity == 0 || gpu.resident == 0 || gpu.resident + item.work.blocks <= gpu.capacity;
}

void Stream::loop() {
  Hardware::Gpu& gpu = hardware_.gpus[static_cast<std::size_t>(gpu_)];
  std::unique_lock lock(hardware_.mutex);
  for (;;) {
    hardware_.changed.wait(lock,
                           [&] { return items_.empty() ? stop_ : can_start(items_.front()); });
    if (items_.empty()) return;
    const Item item = items_.front();  // stays at the front while it runs: see wait_idle
    gpu.queues[queue_].pop_front();
    gpu.resident += item.work.blocks;
    const bool dead = gpu.fault != 0;
    hardware_.changed.notify_all();
    lock.unlock();
    if (delay_ms_ > 0) std::this_thread::sleep_for(std::chrono::milliseconds(delay_ms_));
    const int error = dead ? 0 : item.work.run();
    lock.lock();
    if (error != 0 && gpu.fault == 0) gpu.fault = error;
    gpu.resident -= item.work.blocks;
    item.mark->reached = true;
    items_.pop_front();
    hardware_.changed.notify_all();
  }
}

}  // namespace braid::fake
