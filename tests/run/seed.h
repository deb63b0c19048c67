#pragma once

#include <cstdint>
#include <cstdlib>
#include <random>
#include <string_view>

namespace braid::testing {

/// `make test` always runs the same graphs; `make soak` sets BRAID_SEED=fresh.
inline std::uint64_t base_seed() {
  const char* given = std::getenv("BRAID_SEED");
  if (given == nullptr) return 1;
  if (std::string_view(given) == "fresh") return std::random_device{}();
  return std::strtoull(given, nullptr, 10);
}

}  // namespace braid::testing
