#include "runtime/cpu/run/memory_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "ir/fail.h"

namespace braid::cpu {
namespace {

constexpr const char* kPlace = "memory";
// Truncation by another process would cause a signal in those that map the file.
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

}  // namespace

MemoryFile::MemoryFile(std::size_t bytes) : bytes_(bytes) {
  file_ = File(::memfd_create("braid", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file_.is_open() || ::ftruncate(file_.get(), static_cast<off_t>(bytes)) != 0 ||
      ::fcntl(file_.get(), F_ADD_SEALS, kSeals) != 0) {
    throw_environment(kPlace, "{} bytes cannot be shared with other processes: {}", bytes,
                      std::strerror(errno));
  }
}

std::string MemoryFile::handle() {
  if (!offer_.is_open()) offer_ = OfferedFile(file_.get());
  return offer_.handle();
}

MemoryFile MemoryFile::open(std::string_view handle) {
  MemoryFile result;
  result.file_ = take_file(handle);
  struct stat status {};
  const int seals = ::fcntl(result.file_.get(), F_GET_SEALS);
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0 || ::fstat(result.file_.get(), &status) != 0) {
    throw_invalid(kPlace, "the handle is one of another file; expected one of shared memory");
  }
  result.bytes_ = static_cast<std::size_t>(status.st_size);
  return result;
}

}  // namespace braid::cpu
