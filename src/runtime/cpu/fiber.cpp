#include "runtime/cpu/fiber.h"

#include <sys/mman.h>

#include <cstdlib>
#include <new>

namespace braid::cpu {
namespace {

constexpr std::size_t kStackBytes = 128 * 1024;
constexpr std::size_t kGuardBytes = 4096;

namespace ctx = boost::context::detail;

}  // namespace

Fiber::Fiber()
    : stack_(mmap(nullptr, kStackBytes + kGuardBytes, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)) {
  if (stack_ == MAP_FAILED || mprotect(stack_, kGuardBytes, PROT_NONE) != 0) throw std::bad_alloc();
  reset();
}

Fiber::~Fiber() {
  sanitizer_.forget(static_cast<std::uint8_t*>(stack_) + kGuardBytes, kStackBytes);
  munmap(stack_, kStackBytes + kGuardBytes);
}

void Fiber::reset() {
  sanitizer_.forget(static_cast<std::uint8_t*>(stack_) + kGuardBytes, kStackBytes);
  auto* top = static_cast<std::uint8_t*>(stack_) + kStackBytes + kGuardBytes;
  self_ = ctx::make_fcontext(top, kStackBytes, &Fiber::main);
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
  sanitizer_.before_resume(static_cast<std::uint8_t*>(stack_) + kGuardBytes, kStackBytes);
  const ctx::transfer_t back = ctx::jump_fcontext(self_, this);
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

void Fiber::Free::operator()(std::uint8_t* memory) const { std::free(memory); }

std::uint8_t* Fiber::Buffer::at_least(std::size_t bytes) {
  if (bytes > size) {
    const std::size_t rounded = (bytes + 4095) / 4096 * 4096;
    memory.reset(static_cast<std::uint8_t*>(std::aligned_alloc(64, rounded)));
    if (memory == nullptr) throw std::bad_alloc();
    size = rounded;
  }
  return memory.get();
}

std::uint8_t* Fiber::registers(std::size_t bytes) { return registers_.at_least(bytes); }
std::uint8_t* Fiber::local(std::size_t bytes) { return local_.at_least(bytes); }

}  // namespace braid::cpu
