#include "runtime/cpu/run/fiber.h"

#include <sys/mman.h>
#include <ucontext.h>

#include <cerrno>
#include <cstdlib>
#include <new>

#include "braid/error.h"
#include "runtime/cpu/run/guarded_memory.h"
#include "runtime/cpu/run/memory_file.h"

namespace braid::cpu {
namespace {

/// Stack space for calls from a frame.
constexpr std::size_t kCallsBytes = 128 * 1024;
constexpr std::size_t kGuardBytes = 4096;

namespace ctx = boost::context::detail;

/// For the signal handler, so without anything that is made at the first access.
__attribute__((tls_model("initial-exec"))) thread_local Fiber* running_fiber = nullptr;

}  // namespace

Fiber::~Fiber() { unmap_stack(); }

void Fiber::map_stack(std::size_t bytes) {
  void* const mapping = mmap(nullptr, bytes + kGuardBytes, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping == MAP_FAILED || mprotect(mapping, kGuardBytes, PROT_NONE) != 0) {
    const int error = errno;
    if (mapping != MAP_FAILED) munmap(mapping, bytes + kGuardBytes);
    throw_environment("cpu", "cannot map the stack of a warp: " + mapping_error(error));
  }
  unmap_stack();
  stack_ = mapping;
  stack_bytes_ = bytes;
  reset();
}

void Fiber::unmap_stack() {
  if (stack_ == nullptr) return;
  sanitizer_.forget(static_cast<std::uint8_t*>(stack_) + kGuardBytes, stack_bytes_);
  munmap(stack_, stack_bytes_ + kGuardBytes);
}

void Fiber::start(Entry entry, void* argument, std::size_t frame_bytes) {
  if (frame_bytes + kCallsBytes > stack_bytes_) {
    map_stack((frame_bytes + kCallsBytes + kPage - 1) / kPage * kPage);
  }
  entry_ = entry;
  argument_ = argument;
}

void Fiber::reset() {
  if (stack_ == nullptr) return;
  fault_.reset();
  sanitizer_.forget(static_cast<std::uint8_t*>(stack_) + kGuardBytes, stack_bytes_);
  auto* top = static_cast<std::uint8_t*>(stack_) + stack_bytes_ + kGuardBytes;
  self_ = ctx::make_fcontext(top, stack_bytes_, &Fiber::main);
}

void Fiber::main(ctx::transfer_t from) {
  auto* fiber = static_cast<Fiber*>(from.data);
  fiber->sanitizer_.after_suspend();
  fiber->caller_ = from.fctx;
  for (;;) {
    fiber->entry_(fiber->argument_);
    fiber->returned_ = true;
    fiber->suspend();
  }
}

bool Fiber::resume() {
  returned_ = false;
  sanitizer_.before_resume(static_cast<std::uint8_t*>(stack_) + kGuardBytes, stack_bytes_);
  running_fiber = this;
  const ctx::transfer_t back = ctx::jump_fcontext(self_, this);
  running_fiber = nullptr;
  sanitizer_.after_resume();
  self_ = back.fctx;
  return returned_;
}

void Fiber::suspend() {
  sanitizer_.before_suspend();
  const ctx::transfer_t again = ctx::jump_fcontext(caller_, nullptr);
  sanitizer_.after_suspend();
  caller_ = again.fctx;
}

Fiber* Fiber::running() { return running_fiber; }

void Fiber::leave_for_good(Fiber* fiber) {
  for (;;) fiber->suspend();
}

bool Fiber::leave_at(const Fault& fault, long long* registers) {
  constexpr std::uint64_t kRedZone = 128;
  constexpr std::uint64_t kEnough = 8192;
  const auto stack = reinterpret_cast<std::uint64_t>(stack_) + kGuardBytes;
  const auto top = static_cast<std::uint64_t>(registers[REG_RSP]) - kRedZone;
  if (top - stack >= stack_bytes_ || top - stack < kEnough) return false;
  running_fiber = nullptr;
  fault_ = fault;
  // Aligned as after a call.
  registers[REG_RSP] = static_cast<long long>((top & ~63ULL) - 8);
  registers[REG_RDI] = reinterpret_cast<long long>(this);
  registers[REG_RIP] = reinterpret_cast<long long>(&Fiber::leave_for_good);
  return true;
}

void Fiber::Free::operator()(std::uint8_t* memory) const { std::free(memory); }

std::uint8_t* Fiber::registers(std::size_t bytes) {
  if (bytes > register_bytes_) {
    const std::size_t rounded = (bytes + 4095) / 4096 * 4096;
    registers_.reset(static_cast<std::uint8_t*>(std::aligned_alloc(64, rounded)));
    register_bytes_ = registers_ == nullptr ? 0 : rounded;
    if (registers_ == nullptr) throw std::bad_alloc();
  }
  return registers_.get();
}

}  // namespace braid::cpu
