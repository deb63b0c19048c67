#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace braid {

/// The interface through which a device uses the disk cache for compiled code. Thread safe.
class ObjectCache {
 public:
  virtual ~ObjectCache() = default;
  /// The stored object of `key`, or the result of `make`, which is then stored. Throws what `make`
  /// throws.
  [[nodiscard]] virtual std::string get_or_make(std::string_view key,
                                                const std::function<std::string()>& make) const = 0;

 protected:
  ObjectCache() = default;
  ObjectCache(const ObjectCache&) = default;
  ObjectCache& operator=(const ObjectCache&) = default;
};

}  // namespace braid
