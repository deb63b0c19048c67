#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace braid {

/// Keeps compiled code between processes: all that a device asks of the disk cache. Thread safe.
class ObjectCache {
 public:
  virtual ~ObjectCache() = default;
  /// What is stored under `key`, or what `make` returns, stored. Throws what `make` throws.
  [[nodiscard]] virtual std::string get_or_make(std::string_view key,
                                                const std::function<std::string()>& make) const = 0;

 protected:
  ObjectCache() = default;
  ObjectCache(const ObjectCache&) = default;
  ObjectCache& operator=(const ObjectCache&) = default;
};

}  // namespace braid
