#pragma once

#include <optional>
#include <string>

#include "runtime/compile/compiler.h"

namespace braid {

/// The resources that ptxas reports for one entry of a PTX text on sm_`sm`, or on the architecture
/// that the text names, if that is newer or exclusive (sm_90a). Nothing if ptxas is not found or
/// rejects the text. It is searched for in `$BRAID_PTXAS` (a full path; if set, the only one), in
/// CUDA toolkits (cuda_toolkits()) and in wheels (cuda_wheels()), Triton's included.
[[nodiscard]] std::optional<KernelResources> assembled(const std::string& ptx,
                                                       const std::string& entry, int sm);

}  // namespace braid
