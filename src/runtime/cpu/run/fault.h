#pragma once

#include <cstdint>
#include <memory>

#include "ir/non_copyable.h"

namespace braid::cpu {

/// An access of a kernel that the host's processor refused.
struct Fault {
  std::uint64_t address = 0;
  bool has_address = false;  ///< otherwise the address is impossible for the host, or misaligned
};

/// While one exists, a SIGSEGV or SIGBUS of a thread that runs a kernel ends that kernel's fiber
/// (Fiber::fault). All other signals go to the handlers installed before. A handler installed later
/// is called before ours, until another FaultHandler is made, which is then called first.
class FaultHandler : NonCopyable {
 public:
  FaultHandler();
  ~FaultHandler();
};

/// Gives the calling thread a signal stack if it has none, since a fiber's stack is too small. It
/// belongs to the thread.
class SignalStack : NonCopyable {
 public:
  SignalStack();
  ~SignalStack();

 private:
  std::unique_ptr<std::uint8_t[]> memory_;
};

}  // namespace braid::cpu
