#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace braid::testing {

/// One way in which a kernel's protocol or bounds are broken.
struct Mutant {
  std::uint32_t line = 0;  ///< of the PTX
  std::string change;      ///< "remove bar.sync", "st.release.sys -> st.relaxed.sys"
  std::string function;    ///< the function of the CUDA text that the line comes from
  std::string source;      ///< that line of the CUDA text
  std::string ptx;         ///< the broken text
};

/// Every mutant of a kernel: at each signal, wait, barrier, asynchronous copy's wait, store of an
/// epoch and integer bound, by removing it, weakening its order, narrowing its scope, or moving the
/// bound by one. `ptx` carries line information of `cuda`.
std::vector<Mutant> mutants_of(std::string_view ptx, std::string_view cuda);

}  // namespace braid::testing
