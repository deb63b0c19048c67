#pragma once

#include <array>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

namespace braid::fake {

/// A point in a stream's work; guarded by the hardware's mutex.
struct Mark {
  bool reached = false;
};

struct Work {
  std::function<int()> run;     ///< returns a CUresult; one other than 0 is a fault of the GPU
  unsigned blocks = 0;          ///< that must be resident at once
  std::shared_ptr<Mark> after;  ///< starts once this is reached
};

/// What streams share: the hardware queues of each GPU, which start their work in order, its room
/// for resident blocks, and its fault, after which it does nothing more.
struct Hardware {
  struct Gpu {
    std::deque<std::deque<std::uint64_t>> queues;  ///< tickets of the work that has not started
    std::size_t streams_made = 0;
    unsigned resident = 0;
    unsigned capacity = 0;  ///< in blocks; 0: any number
    int fault = 0;
  };
  std::mutex mutex;
  std::condition_variable changed;
  std::array<Gpu, 8> gpus;
  std::uint64_t next_ticket = 0;
};

/// Work in order, done by a thread of its own. The hardware queue of a stream is the number of the
/// stream modulo the number of queues, so that more streams than queues share them.
class Stream {
 public:
  Stream(Hardware& hardware, int gpu, int queues, int delay_ms);
  ~Stream();  ///< waits for the work
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  /// The mark is reached when the work is done.
  std::shared_ptr<Mark> submit(Work work);
  void wait(const std::shared_ptr<Mark>& mark);
  void wait_idle();
  [[nodiscard]] int gpu() const { return gpu_; }

 private:
  struct Item {
    Work work;
    std::uint64_t ticket;
    std::shared_ptr<Mark> mark;
  };
  void loop();
  [[nodiscard]] bool can_start(const Item& item) const;

  Hardware& hardware_;
  int gpu_;
  std::size_t queue_;
  int delay_ms_;
  bool stop_ = false;
  std::deque<Item> items_;
  std::thread thread_;
};

}  // namespace braid::fake
