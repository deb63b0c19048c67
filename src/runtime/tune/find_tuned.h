#pragma once

#include <string>

#include "codegen/target.h"
#include "lowering/tuned.h"

namespace braid {

/// The device whose times a plan uses.
struct TunedFor {
  Target target;
  std::string gpu;  ///< the GPU's own name; "" if a plan is made without one
};

/// Answers from the database at `path`, for plans for this device and this machine's NVRTC: the
/// quickest configuration that was measured on the GPU, else estimated for the target's device, at
/// the symbols' largest values, else at those tuned last. Where there is no GPU, what was measured
/// on one whose name has the target's device in it counts. Only candidates of today's kernels are
/// taken, and only where the kernel's text is still what was tried. Throws as TuneDatabase does.
[[nodiscard]] FindTuned find_tuned(const std::string& path, const TunedFor& wanted);

}  // namespace braid
