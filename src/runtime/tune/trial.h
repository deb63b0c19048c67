#pragma once

#include <optional>
#include <string>

#include "braid/graph.h"
#include "codegen/target.h"

namespace braid {

/// The result of trying one configuration of a kernel.
struct Trial {
  std::optional<double> ns;  ///< of one launch; nothing if it does not run
  std::string note;          ///< what limits it, or why it does not run
};

/// A kernel to try.
struct TrialRequest {
  Graph graph;  ///< a lone kernel in one configuration
  Target target;
  Bindings bindings;
  std::string cache_dir;  ///< compile cache; "" means the default one
  bool count = true;      ///< false: only compile
};

/// Compiles the kernel, counts some of its blocks on the cpu device, and estimates its time on the
/// target's device. A kernel that waits for peers runs on all ranks of its group, with all blocks,
/// and its time is that of an average rank plus its barriers. A kernel that spills registers is not
/// run. Errors are returned in the note.
[[nodiscard]] Trial attempt(const TrialRequest& request);

/// Serialization for other processes. Throws kInvalidArgument for malformed bytes.
[[nodiscard]] std::string to_bytes(const TrialRequest& request);
[[nodiscard]] TrialRequest request_from(std::string_view bytes);
[[nodiscard]] std::string to_bytes(const Trial& trial);
[[nodiscard]] Trial trial_from(std::string_view bytes);

}  // namespace braid
