#pragma once

#include <string>

#include "braid/export.h"

namespace braid {

// Requests that workers (worker_processes.h) answer: kernels to compile, and kernels to try.

/// Serializes a request with its kind.
struct CompileRequest;
struct TrialRequest;
[[nodiscard]] std::string for_worker(const CompileRequest& request);
[[nodiscard]] std::string for_worker(const TrialRequest& request);

}  // namespace braid

extern "C" {
/// The main function of a worker: answers requests on a socket until its other end is closed.
/// Returns the exit code.
BRAID_API int braid_serve_requests(int socket);
}
