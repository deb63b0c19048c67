#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace braid::cpu {

/// An access of a kernel that the host's processor refused.
struct Fault {
  std::uint64_t address = 0;
  bool has_address = false;  ///< else it is one that no host address can be, or it is not aligned
};

/// While one lives, a SIGSEGV or SIGBUS of a thread that runs a kernel ends that kernel's fiber
/// (Fiber::fault). All others go to the handlers that were there before. A handler that comes later
/// is asked before ours, until another of these is made, whose handler is the one that is asked
/// first.
class FaultHandler {
 public:
  FaultHandler();
  ~FaultHandler();
  FaultHandler(const FaultHandler&) = delete;
  FaultHandler& operator=(const FaultHandler&) = delete;
};

/// Gives the calling thread a stack for signals, where it has none: that of a fiber is too small.
/// Lives on the thread.
class SignalStack {
 public:
  SignalStack();
  ~SignalStack();
  SignalStack(const SignalStack&) = delete;
  SignalStack& operator=(const SignalStack&) = delete;

 private:
  std::unique_ptr<std::uint8_t[]> memory_;
};

}  // namespace braid::cpu
