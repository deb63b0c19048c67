#pragma once

namespace braid {

/// Base of classes that are neither copied nor moved, because others have their address or because
/// their destructor releases something.
class NonCopyable {
 public:
  NonCopyable(const NonCopyable&) = delete;
  NonCopyable& operator=(const NonCopyable&) = delete;

 protected:
  NonCopyable() = default;
  ~NonCopyable() = default;
};

}  // namespace braid
