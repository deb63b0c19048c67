#include "runtime/cpu_tricks.h"

#include <sstream>
#include <string>

#include "ir/fail.h"
#include "ir/text.h"
#include "runtime/dynamic_library.h"

namespace braid {

CpuTricks cpu_tricks_from_environment() {
  constexpr const char* kName = "BRAID_CPU_WITHOUT";
  CpuTricks tricks;
  std::istringstream without(environment(kName));
  for (std::string name; std::getline(without, name, ',');) {
    bool known = name == "all";
    std::string names = "all";
#define BRAID_CPU_TRICK(trick)           \
  names += ", " #trick;                  \
  if (name == #trick || name == "all") { \
    tricks.trick = false;                \
    known = true;                        \
  }
    BRAID_CPU_TRICKS(BRAID_CPU_TRICK)
#undef BRAID_CPU_TRICK
    if (!known) throw_invalid(kName, "found {}; expected some of {}", quote(name), names);
  }
  return tricks;
}

}  // namespace braid
