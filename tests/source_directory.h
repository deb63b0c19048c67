#pragma once

#include <string>

#include "runtime/dynamic_library.h"

namespace braid::testing {

/// The root of the repository, whose files tests read: $BRAID_SOURCE_DIR, where a test runs
/// elsewhere than it was built.
inline std::string source_directory() {
  const std::string elsewhere = environment("BRAID_SOURCE_DIR");
  return elsewhere.empty() ? BRAID_SOURCE_DIR : elsewhere;
}

}  // namespace braid::testing
