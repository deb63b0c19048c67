#pragma once

#include <cstddef>

#if defined(__has_feature)
#define BRAID_HAS_FEATURE(name) __has_feature(name)
#else
#define BRAID_HAS_FEATURE(name) 0
#endif

#if defined(__SANITIZE_ADDRESS__) || BRAID_HAS_FEATURE(address_sanitizer)
#define BRAID_FIBER_ASAN 1
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(__SANITIZE_THREAD__) || BRAID_HAS_FEATURE(thread_sanitizer)
#define BRAID_FIBER_TSAN 1
#include <sanitizer/tsan_interface.h>

#include "ir/non_copyable.h"
#endif

#undef BRAID_HAS_FEATURE

namespace braid::cpu {

/// Tells AddressSanitizer and ThreadSanitizer, where one is built in, on which stack a thread runs.
/// Without them every call is empty.
#if defined(BRAID_FIBER_ASAN)

class FiberSanitizer {
 public:
  /// On the caller, around the jump to the fiber.
  void before_resume(const void* stack, std::size_t bytes) {
    __sanitizer_start_switch_fiber(&caller_frames_, stack, bytes);
  }
  void after_resume() { __sanitizer_finish_switch_fiber(caller_frames_, nullptr, nullptr); }

  /// On the fiber, around the jump to the caller; the first entry is only the second half.
  void before_suspend() {
    __sanitizer_start_switch_fiber(&own_frames_, caller_stack_, caller_bytes_);
  }
  void after_suspend() {
    __sanitizer_finish_switch_fiber(own_frames_, &caller_stack_, &caller_bytes_);
  }

  /// The frames on the stack are gone and never return.
  void forget(void* stack, std::size_t bytes) {
    own_frames_ = nullptr;
    __asan_unpoison_memory_region(stack, bytes);
  }

 private:
  void* caller_frames_ = nullptr;
  void* own_frames_ = nullptr;
  const void* caller_stack_ = nullptr;
  std::size_t caller_bytes_ = 0;
};

#elif defined(BRAID_FIBER_TSAN)

class FiberSanitizer : NonCopyable {
 public:
  FiberSanitizer() : own_(__tsan_create_fiber(0)) {}
  ~FiberSanitizer() { __tsan_destroy_fiber(own_); }

  // ThreadSanitizer notes on the current fiber that a function is entered, and that it is left:
  // these two must not be functions.
  [[gnu::always_inline]] void before_resume(const void* /*stack*/, std::size_t /*bytes*/) {
    caller_ = __tsan_get_current_fiber();
    __tsan_switch_to_fiber(own_, 0);
  }
  void after_resume() {}
  [[gnu::always_inline]] void before_suspend() { __tsan_switch_to_fiber(caller_, 0); }
  void after_suspend() {}
  void forget(void* /*stack*/, std::size_t /*bytes*/) {
    __tsan_destroy_fiber(own_);
    own_ = __tsan_create_fiber(0);
  }

 private:
  void* own_;
  void* caller_ = nullptr;
};

#else

class FiberSanitizer {
 public:
  void before_resume(const void* /*stack*/, std::size_t /*bytes*/) {}
  void after_resume() {}
  void before_suspend() {}
  void after_suspend() {}
  void forget(void* /*stack*/, std::size_t /*bytes*/) {}
};

#endif

}  // namespace braid::cpu
