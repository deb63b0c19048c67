#include "ir/text_file.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "ir/fail.h"

namespace braid {
namespace {

[[noreturn]] void fail_to_open(const std::string& where, int code) {
  switch (code) {
    case ENOENT:
      throw_invalid(where, "no such file");
    case EISDIR:
      throw_invalid(where, "is a directory; expected a file");
    case ENOTDIR:
    case ENAMETOOLONG:
    case ELOOP:
      throw_invalid(where, "no such file: {}", std::strerror(code));
    default:
      throw_environment(where, "cannot be read: {}", std::strerror(code));
  }
}

}  // namespace

std::string read_text(const std::string& path, std::size_t limit) {
  constexpr std::size_t kPiece = std::size_t{1} << 20U;
  if (path.empty()) throw_invalid("path", "is empty; expected that of a file");
  const bool standard = path == "-";
  const std::string where = standard ? "stdin" : path;
  const auto close = [](std::FILE* file) { return file == stdin ? 0 : std::fclose(file); };
  const std::unique_ptr<std::FILE, decltype(close)> file(
      standard ? stdin : std::fopen(path.c_str(), "rbe"), close);
  if (file == nullptr) fail_to_open(where, errno);
  std::string text;
  while (text.size() <= limit && std::feof(file.get()) == 0) {
    const std::size_t size = text.size();
    text.resize(size + kPiece);
    errno = 0;
    const std::size_t bytes = std::fread(text.data() + size, 1, kPiece, file.get());
    if (std::ferror(file.get()) != 0) fail_to_open(where, errno);
    text.resize(size + bytes);
  }
  if (text.size() > limit) throw_invalid(where, "more than {0} bytes; expected at most {0}", limit);
  return text;
}

}  // namespace braid
