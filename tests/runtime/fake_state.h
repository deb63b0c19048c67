#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "braid/device.h"
#include "runtime/fake_hardware.h"
#include "runtime/fake_image.h"
#include "runtime/fake_libcuda.h"

namespace braid::fake {

enum class Kind { kStream, kEvent, kModule, kGraph };

struct Capture;  // fake_graph.h

struct FakeFunction {
  std::string entry;
  int gpu = 0;
  const Entry* declared = nullptr;  ///< null for images that are no PTX
  bool faults = false, endless = false;
  int max_shared = 48 << 10;
  Function* cpu = nullptr;
};

/// What a handle points at.
struct Handle {
  Kind kind;
  int gpu;
  std::unique_ptr<Stream> stream;
  std::unique_ptr<braid::Stream> cpu_stream;
  std::shared_ptr<Mark> mark;  ///< of an event: its last record
  bool timed = false;          ///< of an event
  using Time = std::optional<std::chrono::steady_clock::time_point>;
  std::shared_ptr<Time> reached = std::make_shared<Time>();  ///< of a timed event
  std::unique_ptr<Module> module;
  Image image;
  bool faults = false, endless = false;  ///< its kernels
  int late_error = 0;  ///< what loading found, told at the look-up where modules load lazily
  std::map<std::string, FakeFunction> functions;
  std::shared_ptr<Capture> capture;   ///< of a stream, or in which an event was recorded last
  std::map<const Handle*, int> seen;  ///< of such an event: what of each stream comes before it
  std::vector<Work> works;            ///< of a graph
};

struct Allocation {
  std::size_t bytes;
  int gpu;  ///< -1: pinned memory of the host, which every GPU reaches
  std::unique_ptr<Memory> cpu;
  /// For mapped memory: the GPUs that may use it.
  std::optional<std::set<int>> access = {};
};

inline constexpr int kHost = -1;

struct State {
  State();
  ~State();
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  FakeCuda control;
  std::mutex mutex;                 ///< of all that follows
  std::multiset<const void*> live;  ///< handles, memory and retained contexts
  std::set<Stream*> streams;
  std::map<unsigned long long, Allocation> memory;
  std::set<std::pair<int, int>> links;  ///< the first may use the memory of the second
  Hardware hardware;
  std::unique_ptr<Device> cpu;
};

State& state();

/// Waits for the work of all streams, as the driver does before it frees memory or code.
void drain();

/// The context that is current on this thread, nullptr at the bottom.
std::vector<void*>& context_stack();
void* context_of(int gpu);
/// The GPU of the current context, or -1.
int current_gpu();

/// The error that this call is told to fail with, or 0.
int enter(const char* call);
/// The same for a call that works in the current context; a fault of its GPU fails it, too.
int enter_context(const char* call);

/// The cpu device that runs kernels, or nothing.
Device* cpu();

int create(const char* call, Kind kind, void** handle);
Handle* find(void* handle, Kind kind);
int destroy(void* handle, Kind kind);
/// Gives back a retained context; the last one takes what a fault left with it.
void release_context(int gpu);

/// Work on a stream; waits for it when told to block.
int enqueue(const char* call, void* stream, bool good, Work work, bool block = false);

int allocate(const char* call, std::size_t bytes, int gpu, unsigned long long* address);
int free_memory(unsigned long long address);
/// The GPU whose memory holds [address, address + bytes), kHost for pinned memory, nothing for
/// other memory of the host.
struct Owner {
  bool known = false;
  int gpu = kHost;
  unsigned long long begin = 0;  ///< of the allocation
  std::size_t bytes = 0;         ///< likewise
};
Owner owner_of(unsigned long long address, std::size_t bytes);
/// Whether kernels of `gpu` may use what lies at `address`.
bool reaches(int gpu, unsigned long long address);

}  // namespace braid::fake
