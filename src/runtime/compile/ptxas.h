#pragma once

#include <optional>
#include <string>

#include "runtime/compile/compiler.h"

namespace braid {

/// What ptxas makes of one entry of a PTX text for sm_`sm`; for the architecture that the text
/// names where that is a newer one, or one that no other fits (sm_90a). Nothing where ptxas is not
/// found or does not take the text. It is looked for as `$BRAID_PTXAS` (a full path; when set, the
/// only one), in CUDA toolkits (cuda_toolkits()) and in wheels (cuda_wheels()), Triton's among
/// them.
[[nodiscard]] std::optional<KernelResources> assembled(const std::string& ptx,
                                                       const std::string& entry, int sm);

}  // namespace braid
