#include "runtime/cpu/run/fault.h"

#include <ucontext.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <mutex>
#include <new>
#include <utility>

#include "runtime/cpu/run/fiber.h"

namespace braid::cpu {
namespace {

/// Actions are those of the process, and so is this.
struct Actions {
  static constexpr int kSignals[] = {SIGSEGV, SIGBUS};
  std::mutex mutex;
  int users = 0;
  bool known[2] = {};  ///< somebody may call us for this signal
  /// The actions before ours was installed: at last, and first. They differ if the host meanwhile
  /// installed another action, which may call ours.
  struct sigaction before[2], first[2];
};

Actions& actions() {
  static Actions actions;
  return actions;
}

/// The call of chain() that this thread is in, or was in when a handler jumped out of it.
struct Chaining {
  const void* context;
  const void* frame;
};
__attribute__((tls_model("initial-exec"))) thread_local Chaining chaining{};

/// Does what would have happened without us.
void chain(int signal, siginfo_t* info, void* context) {
  const int s = signal == SIGSEGV ? 0 : 1;
  // The same signal deeper on the stack: a handler that we called has called us.
  const void* const frame = __builtin_frame_address(0);
  const bool again = context == chaining.context && frame < chaining.frame;
  if (!again) chaining = {context, frame};
  const struct sigaction& before = again ? actions().first[s] : actions().before[s];
  if (before.sa_handler == SIG_DFL || before.sa_handler == SIG_IGN) {  // whatever the flags say
    // An access is tried again after this, and then ends the process; what was sent is sent again.
    const bool sent = info->si_code <= 0;
    if (sent && before.sa_handler == SIG_IGN) return;
    std::signal(signal, SIG_DFL);
    if (sent) raise(signal);
  } else if ((before.sa_flags & SA_SIGINFO) != 0) {
    before.sa_sigaction(signal, info, context);
  } else {
    before.sa_handler(signal);
  }
  if (!again) chaining = {};
}

void handle(int signal, siginfo_t* info, void* context) {
  const int error = errno;
  if (Fiber* fiber = Fiber::running(); fiber != nullptr && info->si_code > 0) {
    // For #GP, which has no address, the kernel says SI_KERNEL.
    const bool has_address = info->si_code != SI_KERNEL;
    const Fault fault{has_address ? reinterpret_cast<std::uint64_t>(info->si_addr) : 0,
                      has_address};
    if (fiber->leave_at(fault, static_cast<ucontext_t*>(context)->uc_mcontext.gregs)) {
      errno = error;
      return;
    }
  }
  chain(signal, info, context);
}

bool is_ours(const struct sigaction& action) {
  return (action.sa_flags & SA_SIGINFO) != 0 && action.sa_sigaction == &handle;
}

}  // namespace

FaultHandler::FaultHandler() {
  Actions& all = actions();
  const std::lock_guard lock(all.mutex);
  ++all.users;
  for (int s = 0; s < 2; ++s) {
    struct sigaction now {};
    sigaction(Actions::kSignals[s], nullptr, &now);
    if (is_ours(now)) continue;
    if (!all.known[s]) all.first[s] = now;
    all.before[s] = now;
    all.known[s] = true;
    struct sigaction action {};
    action.sa_sigaction = &handle;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigemptyset(&action.sa_mask);
    sigaction(Actions::kSignals[s], &action, nullptr);
  }
}

FaultHandler::~FaultHandler() {
  Actions& all = actions();
  const std::lock_guard lock(all.mutex);
  if (--all.users != 0) return;
  for (int s = 0; s < 2; ++s) {
    struct sigaction now {};
    sigaction(Actions::kSignals[s], nullptr, &now);
    // A later handler may call ours, so ours stays installed and forwards everything.
    if (!is_ours(now)) continue;
    const struct sigaction last = std::exchange(all.before[s], all.first[s]);
    sigaction(Actions::kSignals[s], &last, nullptr);
    // The one that goes back may be one that calls us.
    all.known[s] = last.sa_sigaction != all.first[s].sa_sigaction;
  }
}

SignalStack::SignalStack() {
  stack_t now{};
  if (sigaltstack(nullptr, &now) != 0 || (now.ss_flags & SS_DISABLE) == 0) return;
  const auto bytes = static_cast<std::size_t>(sysconf(_SC_MINSIGSTKSZ)) + (32U << 10);
  try {
    memory_ = std::make_unique<std::uint8_t[]>(bytes);
  } catch (const std::bad_alloc&) {
    return;  // then a fault ends the process
  }
  stack_t own{};
  own.ss_sp = memory_.get();
  own.ss_size = bytes;
  if (sigaltstack(&own, nullptr) != 0) memory_.reset();
}

SignalStack::~SignalStack() {
  if (memory_ == nullptr) return;
  stack_t none{};
  none.ss_flags = SS_DISABLE;
  sigaltstack(&none, nullptr);
}

}  // namespace braid::cpu
