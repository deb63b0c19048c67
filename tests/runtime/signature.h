#pragma once

#include <cstddef>
#include <type_traits>

namespace braid {

/// How a value is passed: pointers are alike, enumerators are integers, and of a structure the size
/// and alignment count.
template <std::size_t kSize, std::size_t kAlignment>
struct Bytes {};
template <class T>
constexpr auto passed() {
  if constexpr (std::is_pointer_v<T>) {
    return static_cast<void*>(nullptr);
  } else if constexpr (std::is_enum_v<T>) {
    return int{};
  } else if constexpr (std::is_class_v<T>) {
    return Bytes<sizeof(T), alignof(T)>{};
  } else {
    return T{};
  }
}
template <class T>
using Passed = decltype(passed<T>());

/// What two declarations of one function have alike.
template <class Function>
struct Signature;
template <class Result, class... Parameters>
struct Signature<Result(Parameters...)> {
  using type = Passed<Result>(Passed<Parameters>...);
};

}  // namespace braid
