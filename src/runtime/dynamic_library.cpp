#include "runtime/dynamic_library.h"

#include <dlfcn.h>
#include <elf.h>
#include <fmt/format.h>
#include <link.h>

#include <cstdlib>
#include <cstring>
#include <utility>

namespace braid {
namespace {

struct BuildIdQuery {
  ElfW(Addr) base;
  std::string build_id;
};

// Callback for each loaded object: reads the GNU build id of the one at `base` from its notes.
int find_build_id(dl_phdr_info* info, std::size_t, void* data) {
  auto& query = *static_cast<BuildIdQuery*>(data);
  if (info->dlpi_addr != query.base) return 0;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = info->dlpi_phdr[i];
    if (segment.p_type != PT_NOTE) continue;
    const auto* at = reinterpret_cast<const unsigned char*>(info->dlpi_addr + segment.p_vaddr);
    const auto* end = at + segment.p_memsz;
    while (static_cast<std::size_t>(end - at) >= sizeof(ElfW(Nhdr))) {
      ElfW(Nhdr) note;
      std::memcpy(&note, at, sizeof note);
      const std::size_t name_bytes = (std::size_t{note.n_namesz} + 3) & ~std::size_t{3};
      const std::size_t data_bytes = (std::size_t{note.n_descsz} + 3) & ~std::size_t{3};
      at += sizeof note;
      if (static_cast<std::size_t>(end - at) < name_bytes + data_bytes) break;
      if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && std::memcmp(at, "GNU", 4) == 0) {
        for (std::size_t k = 0; k < note.n_descsz; ++k) {
          query.build_id += fmt::format("{:02x}", at[name_bytes + k]);
        }
        return 1;
      }
      at += name_bytes + data_bytes;
    }
  }
  return 1;
}

}  // namespace

DynamicLibrary::DynamicLibrary(const std::vector<std::string>& candidates) {
  for (const std::string& candidate : candidates) {
    handle_ = dlopen(candidate.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (handle_ != nullptr) {
      link_map* map = nullptr;
      if (dlinfo(handle_, RTLD_DI_LINKMAP, static_cast<void*>(&map)) == 0) path_ = map->l_name;
      return;
    }
    // The loader's message usually, but not always, starts with the name.
    const char* reason = dlerror();
    std::string line = reason == nullptr ? "unknown reason" : reason;
    if (line.find(candidate) == std::string::npos) line = fmt::format("{}: {}", candidate, line);
    if (!failure_.empty()) failure_ += "; ";
    failure_ += line;
  }
}

DynamicLibrary::DynamicLibrary(DynamicLibrary&& other) noexcept
    : handle_(std::exchange(other.handle_, nullptr)),
      path_(std::move(other.path_)),
      failure_(std::move(other.failure_)) {}

DynamicLibrary& DynamicLibrary::operator=(DynamicLibrary&& other) noexcept {
  std::swap(handle_, other.handle_);
  std::swap(path_, other.path_);
  std::swap(failure_, other.failure_);
  return *this;
}

DynamicLibrary::~DynamicLibrary() {
  if (handle_ != nullptr) dlclose(handle_);
}

void* DynamicLibrary::symbol(const char* name) const {
  return handle_ == nullptr ? nullptr : dlsym(handle_, name);
}

std::string DynamicLibrary::identity() const {
  link_map* map = nullptr;
  if (handle_ == nullptr || dlinfo(handle_, RTLD_DI_LINKMAP, static_cast<void*>(&map)) != 0) {
    return {};
  }
  BuildIdQuery query{map->l_addr, {}};
  dl_iterate_phdr(find_build_id, &query);
  if (!query.build_id.empty()) return query.build_id;
  std::error_code error;
  const auto size = std::filesystem::file_size(path_, error);
  return error ? "unknown" : fmt::format("{} bytes", size);
}

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

std::filesystem::path library_folder() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&library_folder), &info) == 0 ||
      info.dli_fname == nullptr) {
    return {};
  }
  std::error_code error;
  const std::filesystem::path file = std::filesystem::canonical(info.dli_fname, error);
  return error ? std::filesystem::path() : file.parent_path();
}

std::vector<std::string> library_files(const std::vector<std::filesystem::path>& directories,
                                       const std::vector<std::string>& names) {
  std::vector<std::string> found;
  for (const std::filesystem::path& directory : directories) {
    const std::size_t before = found.size();
    std::error_code error;
    for (const std::string& name : names) {
      if (std::filesystem::exists(directory / name, error)) found.push_back(directory / name);
    }
    if (found.size() == before) found.push_back(directory / names.front());
  }
  return found;
}

}  // namespace braid
