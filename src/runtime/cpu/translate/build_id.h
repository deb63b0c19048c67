#pragma once

#include <string>

namespace braid::cpu {

/// What tells this build of the translator from any other: the linker's build id of the library or
/// program that it is in, in hex. Empty where that was linked without one.
std::string build_id();

}  // namespace braid::cpu
