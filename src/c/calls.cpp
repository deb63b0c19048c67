#include "c/calls.h"

#include <cstddef>

namespace braid::c {

Tables& tables() {
  static Tables all;
  return all;
}

std::string& last_error() {
  // The buffer never moves on errors: callers print it in one argument list with the failing call.
  constexpr std::size_t kRoom = 4096;
  thread_local std::string text;
  if (text.capacity() < kRoom) text.reserve(kRoom);
  return text;
}

braid_status status_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument:
      return BRAID_INVALID_ARGUMENT;
    case ErrorCode::kEnvironment:
      return BRAID_ENVIRONMENT;
    case ErrorCode::kTimeout:
      return BRAID_TIMEOUT;
    case ErrorCode::kCancelled:
      return BRAID_CANCELLED;
    case ErrorCode::kInternal:
      break;
  }
  return BRAID_INTERNAL;
}

braid_status fail(braid_status status, const char* why) noexcept {
  try {
    last_error() = why;
  } catch (const std::exception&) {
    last_error().clear();
  }
  return status;
}

void check_same_world(const World& a, const World& b, const char* what) {
  if (&a.device() != &b.device()) throw_invalid(what, "is of another world than the stream");
}

}  // namespace braid::c
