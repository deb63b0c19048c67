#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "braid/error.h"

namespace braid::c {

/// The things of one kind that callers from C hold. A handle is a number that is never used again,
/// for another kind neither, so that one of something destroyed or else is noticed. Any thread may
/// use it.
template <class T>
class Handles {
 public:
  /// `last`: the handle that was given out last, of things of all kinds.
  Handles(const char* what, std::atomic<std::uintptr_t>& last) : what_(what), last_(last) {}

  template <class Handle>
  void add(std::shared_ptr<T> object, Handle* handle) {
    const std::lock_guard lock(mutex_);
    const std::uintptr_t number = ++last_;
    objects_.emplace(number, std::move(object));
    *handle = reinterpret_cast<Handle>(number);  // NOLINT(performance-no-int-to-ptr)
  }
  /// Keeps the object there as long as the caller has what is returned. Throws in a fork of the
  /// process that opened its world.
  template <class Handle>
  [[nodiscard]] std::shared_ptr<T> get(Handle handle) const {
    std::shared_ptr<T> object = find(handle);
    if constexpr (requires { object->world.device(); }) (void)object->world.device();
    return object;
  }
  /// Removes it.
  template <class Handle>
  [[nodiscard]] std::shared_ptr<T> take(Handle handle) {
    const std::lock_guard lock(mutex_);
    const auto found = objects_.find(reinterpret_cast<std::uintptr_t>(handle));
    if (found == objects_.end()) refuse(handle == nullptr);
    std::shared_ptr<T> object = std::move(found->second);
    objects_.erase(found);
    return object;
  }

 private:
  template <class Handle>
  [[nodiscard]] std::shared_ptr<T> find(Handle handle) const {
    const std::lock_guard lock(mutex_);
    const auto found = objects_.find(reinterpret_cast<std::uintptr_t>(handle));
    if (found == objects_.end()) refuse(handle == nullptr);
    return found->second;
  }
  [[noreturn]] void refuse(bool null) const {
    throw_invalid(what_, null ? "the handle is null" : "the handle is of nothing that is there");
  }

  const char* what_;
  std::atomic<std::uintptr_t>& last_;
  mutable std::mutex mutex_;
  std::map<std::uintptr_t, std::shared_ptr<T>> objects_;
};

}  // namespace braid::c
