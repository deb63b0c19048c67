#pragma once

#include <boost/context/detail/fcontext.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "runtime/cpu/run/fault.h"
#include "runtime/cpu/run/fiber_sanitizer.h"

namespace braid::cpu {

/// A stack that runs one function at a time and can be left in the middle of it. A fiber may be
/// resumed by another thread than the one that left it, but by one at a time.
///
/// Rule: generated code has no unwind tables, so a fiber is never unwound; `reset` forgets a
/// suspended call, which may hold nothing that needs a destructor.
class Fiber {
 public:
  using Entry = void (*)(void* argument);

  Fiber() = default;
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  /// Sets what the next `resume` runs, whose own frame takes so much of the stack. What ran before
  /// is over. Throws kEnvironment when there is no memory for its stack.
  void start(Entry entry, void* argument, std::size_t frame_bytes);
  /// Runs until the function suspends, faults or returns; true when it returned.
  bool resume();
  /// Called on the fiber: goes back to the caller of `resume`.
  void suspend();
  void reset();

  /// The access that it cannot go on from, until it is reset.
  [[nodiscard]] const std::optional<Fault>& fault() const { return fault_; }
  /// The one that the calling thread is on, or null.
  static Fiber* running();
  /// Called by a signal handler with what the thread is to go on with behind it (a gregset_t): that
  /// is to leave the fiber for good. False when it has no stack left to do so.
  bool leave_at(const Fault& fault, long long* registers);

  /// 64-byte aligned memory for the register file, at least `bytes` long.
  std::uint8_t* registers(std::size_t bytes);

 private:
  static void main(boost::context::detail::transfer_t from);
  static void leave_for_good(Fiber* fiber);

  struct Free {
    void operator()(std::uint8_t* memory) const;
  };

  void map_stack(std::size_t bytes);
  void unmap_stack();

  void* stack_ = nullptr;  ///< mapping, guard page first; null before the first start()
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
