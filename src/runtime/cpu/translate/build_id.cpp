#include "runtime/cpu/translate/build_id.h"

#include <elf.h>
#include <link.h>

#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

namespace braid::cpu {
namespace {

std::string hex(std::span<const std::uint8_t> bytes) {
  constexpr const char* kDigits = "0123456789abcdef";
  std::string text;
  for (const std::uint8_t byte : bytes) {
    text += kDigits[byte >> 4U];
    text += kDigits[byte & 15U];
  }
  return text;
}

/// The build id among the notes of a segment: each is a header, a name and a description, all
/// aligned.
std::string find_id(std::span<const std::uint8_t> notes, std::size_t align) {
  const auto padded = [&](std::size_t size) { return (size + align - 1) / align * align; };
  ElfW(Nhdr) note{};
  while (notes.size() >= sizeof(note)) {
    std::memcpy(&note, notes.data(), sizeof(note));
    const std::size_t start = sizeof(note) + padded(note.n_namesz);
    const std::size_t end = start + padded(note.n_descsz);
    if (end > notes.size()) break;
    const std::string_view name(reinterpret_cast<const char*>(notes.data()) + sizeof(note),
                                note.n_namesz);
    if (note.n_type == NT_GNU_BUILD_ID && name == std::string_view("GNU\0", 4)) {
      return hex(notes.subspan(start, note.n_descsz));
    }
    notes = notes.subspan(end);
  }
  return "";
}

struct Search {
  std::uintptr_t inside;  ///< an address of ours
  std::string id;
};

bool holds(const dl_phdr_info& object, std::uintptr_t address) {
  for (const ElfW(Phdr) & part : std::span(object.dlpi_phdr, object.dlpi_phnum)) {
    if (part.p_type == PT_LOAD && address - (object.dlpi_addr + part.p_vaddr) < part.p_memsz) {
      return true;
    }
  }
  return false;
}

int visit(dl_phdr_info* object, std::size_t /*size*/, void* data) {
  auto& search = *static_cast<Search*>(data);
  if (!holds(*object, search.inside)) return 0;
  for (const ElfW(Phdr) & part : std::span(object->dlpi_phdr, object->dlpi_phnum)) {
    if (part.p_type != PT_NOTE || !search.id.empty()) continue;
    const auto* start = reinterpret_cast<const std::uint8_t*>(object->dlpi_addr + part.p_vaddr);
    search.id = find_id({start, part.p_memsz}, part.p_align == 8 ? 8 : 4);
  }
  return 1;
}

}  // namespace

std::string build_id() {
  Search search{reinterpret_cast<std::uintptr_t>(&build_id), ""};
  dl_iterate_phdr(&visit, &search);
  return search.id;
}

}  // namespace braid::cpu
