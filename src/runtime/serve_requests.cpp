#include "runtime/serve_requests.h"

#include <exception>

#include "braid/error.h"
#include "runtime/compile/compile_request.h"
#include "runtime/tune/trial.h"
#include "runtime/worker_processes.h"

namespace braid {
namespace {

constexpr char kCompile = 'c', kTry = 't';

std::string answer(std::string_view request) {
  const char kind = request.empty() ? '\0' : request.front();
  if (kind == kCompile) return answer_to(compile_request_from(request.substr(1)));
  if (kind == kTry) return to_bytes(attempt(request_from(request.substr(1))));
  throw_invalid("request", "is of no kind that this version knows");
}

}  // namespace

std::string for_worker(const CompileRequest& request) { return kCompile + to_bytes(request); }
std::string for_worker(const TrialRequest& request) { return kTry + to_bytes(request); }

}  // namespace braid

int braid_serve_requests(int socket) {
  try {
    braid::answer_requests(socket, braid::answer);
    return 0;
  } catch (const std::exception&) {
    return 1;  // the requesting process notices that this one is gone
  }
}
