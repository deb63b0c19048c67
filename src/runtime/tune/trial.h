#pragma once

#include <optional>
#include <string>

#include "braid/graph.h"
#include "codegen/target.h"

namespace braid {

/// What came of one configuration of a kernel.
struct Trial {
  std::optional<double> ns;  ///< of one launch; nothing where it does not run
  std::string note;          ///< what limits it, or why it does not run
};

/// A kernel to try.
struct TrialRequest {
  Graph graph;  ///< a lone kernel, in one configuration
  Target target;
  Bindings bindings;
  std::string cache_dir;  ///< of the compile cache; "": the default one
  bool count = true;      ///< else it is compiled alone
};

/// Compiles the kernel, runs some of its blocks on the cpu device, which counts, and estimates its
/// time on the target's device. One that waits for peers runs on all ranks of its group, with all
/// blocks, and its time is that of an average rank and of its barriers. One that spills registers
/// is not run. What is wrong is the note.
[[nodiscard]] Trial attempt(const TrialRequest& request);

/// As bytes, to and from another process. Throws kInvalidArgument for what is none.
[[nodiscard]] std::string to_bytes(const TrialRequest& request);
[[nodiscard]] TrialRequest request_from(std::string_view bytes);
[[nodiscard]] std::string to_bytes(const Trial& trial);
[[nodiscard]] Trial trial_from(std::string_view bytes);

}  // namespace braid
