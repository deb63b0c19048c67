#include "runtime/cpu/run/fault.h"

#include <ucontext.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <mutex>
#include <new>

#include "runtime/cpu/run/fiber.h"

namespace braid::cpu {
namespace {

/// Actions are those of the process, and so is this.
struct Actions {
  static constexpr int kSignals[] = {SIGSEGV, SIGBUS};
  std::mutex mutex;
  int users = 0;
  bool installed = false;
  struct sigaction before[2];
};

Actions& actions() {
  static Actions actions;
  return actions;
}

/// Does what would have happened without us.
void chain(int signal, siginfo_t* info, void* context) {
  const struct sigaction& before = actions().before[signal == SIGSEGV ? 0 : 1];
  if ((before.sa_flags & SA_SIGINFO) != 0) {
    before.sa_sigaction(signal, info, context);
  } else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) {
    before.sa_handler(signal);
  } else {
    // An access is tried again after this, and then ends the process; what was sent is sent again.
    const bool sent = info->si_code <= 0;
    if (sent && before.sa_handler == SIG_IGN) return;
    std::signal(signal, SIG_DFL);
    if (sent) raise(signal);
  }
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

}  // namespace

FaultHandler::FaultHandler() {
  Actions& all = actions();
  const std::lock_guard lock(all.mutex);
  if (all.users++ != 0 || all.installed) return;
  struct sigaction action {};
  action.sa_sigaction = &handle;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  for (int s = 0; s < 2; ++s) sigaction(Actions::kSignals[s], &action, &all.before[s]);
  all.installed = true;
}

FaultHandler::~FaultHandler() {
  Actions& all = actions();
  const std::lock_guard lock(all.mutex);
  if (--all.users != 0) return;
  // Whoever came after us may call us: then we stay, and hand everything on.
  struct sigaction now[2];
  for (int s = 0; s < 2; ++s) {
    sigaction(Actions::kSignals[s], nullptr, &now[s]);
    if ((now[s].sa_flags & SA_SIGINFO) == 0 || now[s].sa_sigaction != &handle) return;
  }
  for (int s = 0; s < 2; ++s) sigaction(Actions::kSignals[s], &all.before[s], nullptr);
  all.installed = false;
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
