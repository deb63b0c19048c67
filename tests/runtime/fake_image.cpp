#include "runtime/fake_image.h"

#include <elf.h>

#include <cstring>
#include <string_view>

#include "runtime/fake_result.h"

namespace braid::fake {
namespace {

// The newest PTX that each CUDA reads (PTX ISA, release notes).
int newest_ptx(int driver) {
  static constexpr struct {
    int cuda, ptx;
  } kTable[] = {{13020, 92}, {13010, 91}, {13000, 90}, {12090, 88}, {12080, 87}, {12070, 86},
                {12050, 85}, {12040, 84}, {12030, 83}, {12020, 82}, {12010, 81}, {12000, 80},
                {11080, 78}, {11070, 77}, {11060, 76}, {11050, 75}, {11040, 74}, {11030, 73},
                {11020, 72}, {11010, 71}, {11000, 70}};
  for (const auto& row : kTable) {
    if (driver >= row.cuda) return row.ptx;
  }
  return 0;
}

int number_at(std::string_view text, std::size_t at) {
  int value = 0;
  for (; at < text.size() && text[at] >= '0' && text[at] <= '9'; ++at) {
    value = value * 10 + (text[at] - '0');
  }
  return value;
}

// Bytes of a declaration such as ".param .align 8 .b8 name[32]" or ".shared .u32 name".
int bytes_of(std::string_view declaration) {
  int width = 0;
  for (const char* type : {".b", ".u", ".s", ".f"}) {
    for (std::size_t at = declaration.find(type); at != std::string_view::npos && width == 0;
         at = declaration.find(type, at + 1)) {
      width = number_at(declaration, at + 2) / 8;
    }
  }
  const std::size_t bracket = declaration.find('[');
  return bracket == std::string_view::npos ? width : width * number_at(declaration, bracket + 1);
}

Entry read_entry(std::string_view text) {
  Entry entry;
  const std::size_t open = text.find('(');
  const std::size_t body = text.find('{');
  const std::size_t close = text.substr(0, body).find(')');
  if (open < body) {
    for (std::size_t at = text.find(".param", open); at < close; at = text.find(".param", at + 1)) {
      const std::size_t end = text.find_first_of(",)", at);
      entry.parameters.push_back(
          static_cast<std::size_t>(bytes_of(text.substr(at + 6, end - at - 6))));
    }
  }
  constexpr std::string_view kShared = ".shared .";  // instructions have no space there
  for (std::size_t at = text.find(kShared, body); at != std::string_view::npos;
       at = text.find(kShared, at + 1)) {
    entry.static_shared += bytes_of(text.substr(at + 8, text.find(';', at) - at - 8));
  }
  return entry;
}

Image read_ptx(std::string_view text) {
  Image image;
  image.kind = Image::Kind::kPtx;
  const std::size_t version = text.find(".version ") + 9;
  const int major = number_at(text, version);
  image.version = 10 * major + number_at(text, text.find('.', version) + 1);
  const std::size_t target = text.find(".target sm_");
  if (target != std::string_view::npos) {
    image.sm = number_at(text, target + 11);
    image.exact = text[text.find_first_not_of("0123456789", target + 11)] == 'a';
  }
  constexpr std::string_view kMark = ".entry ";
  for (std::size_t at = text.find(kMark); at != std::string_view::npos;) {
    at += kMark.size();
    const std::size_t next = text.find(kMark, at);
    const std::string_view all = text.substr(at, next == std::string_view::npos ? next : next - at);
    image.entries[std::string(all.substr(0, all.find_first_of("( \t\r\n{")))] = read_entry(all);
    at = next;
  }
  return image;
}

// The ELF header tells the CUDA by the version of its ABI, and the architecture by its flags.
Image read_cubin(const void* data) {
  Image image;
  image.kind = Image::Kind::kCubin;
  Elf64_Ehdr header;
  std::memcpy(&header, data, sizeof header);
  const bool since_13 = header.e_ident[EI_ABIVERSION] >= 8;
  image.version = since_13 ? 13 : 12;
  image.sm = static_cast<int>((since_13 ? header.e_flags >> 8 : header.e_flags) & 0xff);
  return image;
}

}  // namespace

Image read_image(const void* data) {
  const auto* text = static_cast<const char*>(data);
  if (std::memcmp(text, "\177ELF", 4) == 0) {
    return read_cubin(data);
  }
  return std::strstr(text, ".version ") != nullptr ? read_ptx(text) : Image{};
}

int check_image(const Image& image, int driver, int capability) {
  switch (image.kind) {
    case Image::Kind::kPtx:
      if (image.version > newest_ptx(driver)) return kUnsupportedPtxVersion;
      return image.exact ? (image.sm == capability ? 0 : kInvalidPtx)
                         : (image.sm <= capability ? 0 : kInvalidPtx);
    case Image::Kind::kCubin:
      // Within one major version of CUDA, old drivers run what new compilers made.
      if (image.version > driver / 1000) return kInvalidImage;
      return image.sm / 10 == capability / 10 && image.sm <= capability ? 0 : kNoBinaryForGpu;
    case Image::Kind::kOther:
      return 0;
  }
  return 0;
}

int max_shared_opt_in(int capability) {
  switch (capability) {
    case 80:
    case 87:
      return 163 << 10;
    case 90:
    case 100:
    case 103:
      return 227 << 10;
    default:
      return 99 << 10;  // 8.6, 8.9, 12.x
  }
}

}  // namespace braid::fake
