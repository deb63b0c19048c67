#pragma once

#include <span>
#include <string>
#include <string_view>

#include "braid/export.h"

namespace braid {

// The requests that workers (worker_processes.h) answer: kernels to compile and kernels to try.

/// A request as a worker wants it: which of them it is, and its bytes.
struct CompileRequest;
struct TrialRequest;
[[nodiscard]] std::string for_worker(const CompileRequest& request);
[[nodiscard]] std::string for_worker(const TrialRequest& request);

}  // namespace braid

extern "C" {
/// All that a worker's program does: answers what comes on a socket until its other end is closed.
/// Returns its exit code.
BRAID_API int braid_serve_requests(int socket);
}
