#pragma once

#include <boost/context/detail/fcontext.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "runtime/cpu/fiber_sanitizer.h"

namespace braid::cpu {

/// A stack that runs one function at a time and can be left in the middle of it. A fiber may be
/// resumed by another thread than the one that left it, but by one at a time.
///
/// Rule: generated code has no unwind tables, so a fiber is never unwound; `reset` forgets a
/// suspended call, which may hold nothing that needs a destructor.
class Fiber {
 public:
  using Entry = void (*)(void* argument);

  Fiber();
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  /// Sets what the next `resume` runs.
  void start(Entry entry, void* argument) {
    entry_ = entry;
    argument_ = argument;
  }
  /// Runs until the function suspends or returns; true when it returned.
  bool resume();
  /// Called on the fiber: goes back to the caller of `resume`.
  void suspend();
  void reset();

  /// 64-byte aligned memory for the register file, at least `bytes` long.
  std::uint8_t* registers(std::size_t bytes);
  /// The same for the local memory of a warp.
  std::uint8_t* local(std::size_t bytes);

 private:
  static void main(boost::context::detail::transfer_t from);

  struct Free {
    void operator()(std::uint8_t* memory) const;
  };
  struct Buffer {
    std::unique_ptr<std::uint8_t, Free> memory;
    std::size_t size = 0;
    std::uint8_t* at_least(std::size_t bytes);
  };

  void* stack_ = nullptr;  ///< mapping, guard page first
  boost::context::detail::fcontext_t self_ = nullptr;
  boost::context::detail::fcontext_t caller_ = nullptr;
  Entry entry_ = nullptr;
  void* argument_ = nullptr;
  bool returned_ = false;
  FiberSanitizer sanitizer_;
  Buffer registers_;
  Buffer local_;
};

}  // namespace braid::cpu
