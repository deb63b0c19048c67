#pragma once

#include <boost/context/detail/fcontext.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "ir/non_copyable.h"
#include "runtime/cpu/run/fault.h"
#include "runtime/cpu/run/fiber_sanitizer.h"

namespace braid::cpu {

/// A stack that runs one function at a time, which can be suspended. Another thread may resume it,
/// but only one at a time.
///
/// Rule: generated code has no unwind tables, so a fiber is never unwound. `reset` drops a
/// suspended call, which must hold nothing that needs a destructor.
class Fiber : NonCopyable {
 public:
  using Entry = void (*)(void* argument);

  ~Fiber();

  /// Sets what the next `resume` runs; its own frame takes `frame_bytes` of the stack. The previous
  /// call is over. Throws kEnvironment if there is no memory for its stack.
  void start(Entry entry, void* argument, std::size_t frame_bytes);
  /// Runs until the function suspends, faults or returns; true if it returned.
  bool resume();
  /// Called on the fiber: returns to the caller of `resume`.
  void suspend();
  void reset();

  /// The access with which it failed, until reset.
  [[nodiscard]] const std::optional<Fault>& fault() const { return fault_; }
  /// The fiber that the calling thread is on, or null.
  static Fiber* running();
  /// Called by a signal handler: changes the registers (a gregset_t) with which the thread
  /// continues, so that it leaves the fiber for good. False if the stack has no room for that.
  bool leave_at(const Fault& fault, long long* registers);

  /// Memory for the register file, 64-byte aligned and of at least `bytes` bytes.
  std::uint8_t* registers(std::size_t bytes);

 private:
  static void main(boost::context::detail::transfer_t from);
  static void leave_for_good(Fiber* fiber);

  struct Free {
    void operator()(std::uint8_t* memory) const;
  };

  void map_stack(std::size_t bytes);
  void unmap_stack();

  void* stack_ = nullptr;  ///< mapping with its guard page first; null before the first start()
  std::size_t stack_bytes_ = 0;
  boost::context::detail::fcontext_t self_ = nullptr;
  boost::context::detail::fcontext_t caller_ = nullptr;
  Entry entry_ = nullptr;
  void* argument_ = nullptr;
  bool returned_ = false;
  std::optional<Fault> fault_;
  FiberSanitizer sanitizer_;
  std::unique_ptr<std::uint8_t, Free> registers_;
  std::size_t register_bytes_ = 0;
};

}  // namespace braid::cpu
