#include "runtime/nccl/nccl_api.h"

#include <fmt/format.h>

#include "braid/error.h"
#include "ir/fail.h"
#include "runtime/compile/python_packages.h"

namespace braid::nccl {
namespace {

constexpr int kOldest = 21800;

std::vector<std::string> candidates() {
  if (std::string path = environment("BRAID_LIBNCCL"); !path.empty()) return {path};
  std::vector<std::filesystem::path> directories;
  for (const std::filesystem::path& wheels : cuda_wheels()) {
    directories.push_back(wheels / "nccl/lib");
  }
  for (const std::filesystem::path& home : cuda_toolkits()) {
    directories.push_back(home / "lib64");
    directories.push_back(home / "lib");
  }
  std::vector<std::string> result = library_files(directories, {"libnccl.so.2", "libnccl.so"});
  result.emplace_back("libnccl.so.2");
  return result;
}

std::string version_text(int number) {
  return fmt::format("{}.{}.{}", number / 10000, number / 100 % 100, number % 100);
}

}  // namespace

const char* Api::how_to_get() {
  return "install libnccl2 or `pip install nvidia-nccl-cu13`, or set BRAID_LIBNCCL to the full "
         "path "
         "of a libnccl.so.2 (only groups with \"symmetric\": false need it, on several GPUs)";
}

Api Api::load() {
  Api api;
  api.library = DynamicLibrary(candidates());
  if (!api.library.loaded()) {
    throw_environment("NCCL", "not found; {}. Tried: {}", how_to_get(), api.library.failure());
  }
  std::string missing;
#define BRAID_BIND(name, result, parameters) \
  bind_symbol(api.library, #name, api.name.address, missing);
  BRAID_NCCL_FUNCTIONS(BRAID_BIND)
#undef BRAID_BIND
  const bool known = api.ncclGetVersion != nullptr && api.ncclGetVersion(&api.number) == kSuccess;
  if (known) api.version = version_text(api.number);
  if (known && (api.number < kOldest || api.number >= 30000)) {
    throw_environment("NCCL", "{} is version {}; expected {} or newer, of version 2; {}",
                      api.library.path(), api.version, version_text(kOldest), how_to_get());
  }
  if (!missing.empty() || !known) {
    throw_environment("NCCL", "{} {}; {}", api.library.path(),
                      missing.empty() ? "does not say its version" : "lacks " + missing,
                      how_to_get());
  }
  return api;
}

const Api& Api::get() {
  static const Api kApi = load();
  return kApi;
}

void Api::check(Result result, const char* call, Comm comm, const std::string& where) const {
  if (result == kSuccess || result == kInProgress) return;
  std::string message = fmt::format("{}: {} ({})", call, ncclGetErrorString(result), result);
  const char* last = ncclGetLastError(comm);
  if (last != nullptr && *last != '\0') {
    std::string said = last;
    for (char& c : said) c = c == '\n' ? ' ' : c;
    message += "; " + said;
  }
  const bool environment = result == kUnhandledCudaError || result == kSystemError ||
                           result == kInvalidUsage || result == kRemoteError;
  throw Error(environment ? ErrorCode::kEnvironment : ErrorCode::kInternal, where, message);
}

}  // namespace braid::nccl
