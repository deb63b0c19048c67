#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "braid/error.h"
#include "ir/non_copyable.h"
#include "runtime/cpu/check/counter.h"
#include "runtime/cpu/check/sanitizer.h"
#include "runtime/cpu/cpu_device.h"
#include "runtime/cpu/run/engine.h"
#include "runtime/cpu/run/fault.h"
#include "runtime/cpu/run/guarded_memory.h"
#include "runtime/cpu/run/multicast.h"
#include "runtime/cpu/translate/jit.h"

namespace braid::cpu {

struct Allocation;

/// The linked code of a program: for each entry the variants requested so far.
struct Variants {
  explicit Variants(std::size_t entries) : linked(entries) {}
  std::mutex mutex;
  std::vector<std::array<std::unique_ptr<Jit::Linked>, 2>> linked;
};

/// State shared by all objects of one device, which keep it alive.
struct Core {
  Core(const CpuOptions& options, int threads)
      : world(options.world),
        sanitizer(options.checks == 0 ? nullptr : std::make_unique<Sanitizer>(options.checks)),
        scheduler(options.schedule.kind == Schedule::Kind::kTurns || options.checks == 0
                      ? nullptr
                      : std::make_unique<Scheduler>(options.schedule, options.world)),
        counter(options.count ? std::make_unique<Counter>(range, options.sample) : nullptr),
        jit(options.cache, {.checks = options.checks != 0, .counts = options.count},
            options.matrix_sums, options.tricks),
        faults(options.catch_faults ? std::make_unique<FaultHandler>() : nullptr),
        engine(threads, sanitizer.get(), scheduler.get(), counter.get(),
               options.tricks.direct_launches) {}

  /// Ranks load the same text, so it is parsed once while any of them holds it.
  std::shared_ptr<const Program> parse(const std::string& text) {
    const std::lock_guard lock(mutex);
    std::weak_ptr<const Program>& known = programs[text].program;
    std::shared_ptr<const Program> program = known.lock();
    if (program == nullptr) known = program = std::make_shared<const Program>(text);
    return program;
  }

  /// Ranks share code too, unless variables of its own distinguish them: so a kernel of a process
  /// with many ranks takes few mappings.
  std::shared_ptr<Variants> variants(const Program& program) {
    const std::size_t entries = program.entries().size();
    if (program.globals_bytes() != 0) return std::make_shared<Variants>(entries);
    const std::lock_guard lock(mutex);
    std::weak_ptr<Variants>& known = programs[program.text()].variants;
    std::shared_ptr<Variants> variants = known.lock();
    if (variants == nullptr) known = variants = std::make_shared<Variants>(entries);
    return variants;
  }

  [[nodiscard]] bool watches() const { return sanitizer != nullptr || counter != nullptr; }

  int world;
  std::unique_ptr<Sanitizer> sanitizer;  ///< null if nothing is checked
  std::unique_ptr<Scheduler> scheduler;  ///< null: round robin
  std::unique_ptr<Counter> counter;      ///< null if nothing is counted
  Jit jit;
  AddressRange range;
  MulticastTable multicasts;
  std::unique_ptr<FaultHandler> faults;  ///< null if the host handles faults itself
  Engine engine;
  std::mutex mutex;
  struct Known {
    std::weak_ptr<const Program> program;
    std::weak_ptr<Variants> variants;
  };
  std::unordered_map<std::string, Known> programs;  ///< by text
  /// By address, since ranks share memory within the device.
  std::map<std::uint64_t, std::weak_ptr<Allocation>> allocations;
};

/// An allocation, freed when the last rank that holds it is gone.
struct Allocation : NonCopyable {
  Allocation(std::shared_ptr<Core> core_of_it, int rank_of_it, std::size_t bytes)
      : core(std::move(core_of_it)), rank(rank_of_it), memory(core->range, bytes) {
    if (core->sanitizer != nullptr) {
      core->sanitizer->add_memory(rank, address(), bytes, "memory", false);
    }
    if (core->counter != nullptr) core->counter->memory().add(rank, address(), bytes);
  }
  /// Imports the allocation of another device, possibly in another process.
  Allocation(std::shared_ptr<Core> core_of_it, int rank_of_it, std::size_t bytes, MemoryFile shared)
      : core(std::move(core_of_it)),
        rank(rank_of_it),
        memory(core->range, bytes, shared),
        file(std::move(shared)) {}
  ~Allocation() {
    core->multicasts.unbind(address());
    if (core->sanitizer != nullptr) core->sanitizer->remove_memory(address());
    if (core->counter != nullptr) core->counter->memory().remove(address());
    const std::lock_guard lock(core->mutex);
    core->allocations.erase(address());
  }
  [[nodiscard]] std::uint64_t address() const {
    return reinterpret_cast<std::uint64_t>(memory.data());
  }

  std::shared_ptr<Core> core;
  int rank;  ///< the owner, on this or the other device
  GuardedMemory memory;
  MemoryFile file;  ///< not open until the memory is exported
};

template <class To, class From>
To& ours(From& object) {
  auto* cast = dynamic_cast<To*>(&object);
  if (cast == nullptr) throw_invalid("cpu", "the object belongs to another device");
  return *cast;
}

}  // namespace braid::cpu
