#include "runtime/safetensors.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

#include "braid/safetensors.h"
#include "ir/fail.h"
#include "ir/json_value.h"
#include "ir/text.h"
#include "runtime/element_type.h"

namespace braid {

namespace {

using nlohmann::json;

constexpr std::uint64_t kMaxHeader = 100'000'000;  // the limit of the reference implementation
constexpr std::size_t kMaxRank = 64;
constexpr std::uint64_t kPiece = 1 << 20;
constexpr std::string_view kChanged = "changed while it was read";
// More than any file has, and small enough that sums do not overflow.
constexpr std::uint64_t kUnknownSize = INT64_MAX;

const ElementType* find_dtype(std::string_view name) {
  return find_type(&ElementType::file_name, name);
}

// A kernel may take any other byte for true, and copy it.
void check_bools(const std::vector<std::byte>& data, const std::string& place) {
  const auto wrong =
      std::ranges::find_if(data, [](std::byte value) { return value > std::byte{1}; });
  if (wrong == data.end()) return;
  throw_invalid(place, "element {} is {}; expected 0 or 1 of a bool", wrong - data.begin(),
                static_cast<int>(*wrong));
}

File open_file(const std::filesystem::path& path, struct stat* info) {
  File file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.is_open() && errno == ENOENT) throw_invalid(path.string(), "no such file");
  if (!file.is_open() || ::fstat(file.get(), info) != 0) {
    throw_environment(path.string(), "cannot be read: {}", std::strerror(errno));
  }
  return file;
}

// Reads the header while it is parsed: its form is fixed and flat, so no document is built, names
// that occur twice are seen, and deep nesting ends at its third level.
class HeaderReader : public nlohmann::json_sax<json> {
 public:
  using Entry = SafetensorsFile::Entry;

  explicit HeaderReader(std::map<std::string, Entry, std::less<>>* entries) : entries_(*entries) {}

  [[nodiscard]] const std::string& error() const { return error_; }

  bool start_object(std::size_t) override {
    if (depth_ == 0 || (depth_ == 1 && !tensor_.empty())) {
      ++depth_;
      field_.clear();
      fields_ = 0;
      return true;
    }
    return fail("an object where none is expected");
  }

  bool end_object() override {
    if (--depth_ == 1 && !in_metadata_ && fields_ != 7) {
      return fail("needs dtype, shape and data_offsets");
    }
    return true;
  }

  bool key(string_t& name) override {
    if (depth_ == 1) {
      tensor_ = name;
      field_.clear();
      in_metadata_ = name == "__metadata__";
      if (name.empty()) return fail("a tensor without a name");
      if (!in_metadata_ && !entries_.emplace(name, Entry{}).second) return fail("named twice");
      return true;
    }
    field_ = name;
    if (in_metadata_) return true;
    const unsigned bit = name == "dtype" ? 1 : name == "shape" ? 2 : name == "data_offsets" ? 4 : 0;
    if (bit == 0) return fail(fmt::format("unknown key '{}'", printable(name)));
    if ((fields_ & bit) != 0) return fail(fmt::format("'{}' stands twice", name));
    fields_ |= bit;
    return true;
  }

  bool start_array(std::size_t) override {
    if (depth_ != 2 || in_metadata_ || in_array_ || field_ == "dtype" || field_.empty()) {
      return fail("a list where none is expected");
    }
    in_array_ = true;
    numbers_.clear();
    return true;
  }

  bool end_array() override {
    in_array_ = false;
    Entry& entry = entries_.find(tensor_)->second;
    if (field_ == "shape") {
      entry.shape = numbers_;
      return true;
    }
    if (numbers_.size() != 2) return fail("data_offsets needs two numbers");
    entry.begin = static_cast<std::uint64_t>(numbers_[0]);
    entry.end = static_cast<std::uint64_t>(numbers_[1]);
    return true;
  }

  bool number_unsigned(number_unsigned_t value) override {
    if (!in_array_) return unexpected_value();
    if (value > static_cast<std::uint64_t>(INT64_MAX)) return fail("a number too large");
    if (numbers_.size() == kMaxRank) return fail(fmt::format("more than {} numbers", kMaxRank));
    numbers_.push_back(static_cast<std::int64_t>(value));
    return true;
  }

  bool string(string_t& value) override {
    if (in_metadata_ && depth_ == 2) return true;
    if (depth_ != 2 || in_array_ || field_ != "dtype") return unexpected_value();
    entries_.find(tensor_)->second.dtype = value;
    return true;
  }

  bool null() override { return unexpected_value(); }
  bool boolean(bool) override { return unexpected_value(); }
  bool number_integer(number_integer_t) override { return unexpected_value(); }
  bool number_float(number_float_t, const string_t&) override { return unexpected_value(); }
  bool binary(binary_t&) override { return unexpected_value(); }
  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception&) override {
    error_ = fmt::format("the header is not JSON (byte {})", position);
    return false;
  }

 private:
  bool unexpected_value() {
    return fail(field_.empty() ? "a value of the wrong type"
                               : fmt::format("'{}' is of the wrong type", field_));
  }
  bool fail(std::string_view message) {
    error_ = tensor_.empty() ? fmt::format("the header is malformed: {}", message)
                             : fmt::format("tensor '{}': {}", printable(tensor_), message);
    return false;
  }

  std::map<std::string, Entry, std::less<>>& entries_;
  std::string tensor_, field_, error_;
  std::vector<std::int64_t> numbers_;
  int depth_ = 0;
  unsigned fields_ = 0;  // bits of the keys seen: dtype 1, shape 2, data_offsets 4
  bool in_metadata_ = false;
  bool in_array_ = false;
};

// The bytes of each tensor must follow from its dtype and shape, and all tensors together must
// cover the data without overlap or gap. Returns how many bytes of data that makes.
std::uint64_t check_layout(
    const std::filesystem::path& path,
    const std::map<std::string, SafetensorsFile::Entry, std::less<>>& entries,
    std::uint64_t data_bytes) {
  std::vector<std::pair<const SafetensorsFile::Entry*, const std::string*>> by_offset;
  for (const auto& [name, entry] : entries) {
    const ElementType* dtype = find_dtype(entry.dtype);
    if (dtype == nullptr) {
      throw_invalid(tensor_place(path, name), "unknown dtype '{}'", printable(entry.dtype));
    }
    std::uint64_t bytes = dtype->bytes;
    for (std::int64_t extent : entry.shape) {
      if (__builtin_mul_overflow(bytes, static_cast<std::uint64_t>(extent), &bytes)) {
        throw_invalid(tensor_place(path, name), "the shape is too large");
      }
    }
    if (entry.begin > entry.end || entry.end > data_bytes) {
      throw_invalid(
          tensor_place(path, name),
          "data_offsets [{}, {}] lie outside the {} bytes of data; is the file truncated?",
          entry.begin, entry.end, data_bytes);
    }
    if (entry.end - entry.begin != bytes) {
      throw_invalid(tensor_place(path, name), "{} [{}] needs {} bytes, data_offsets give {}",
                    entry.dtype, fmt::join(entry.shape, ", "), bytes, entry.end - entry.begin);
    }
    by_offset.emplace_back(&entry, &name);
  }
  std::ranges::sort(by_offset, [](const auto& a, const auto& b) {
    return std::pair(a.first->begin, a.first->end) < std::pair(b.first->begin, b.first->end);
  });
  std::uint64_t covered = 0;
  for (const auto& [entry, name] : by_offset) {
    if (entry->begin != covered) {
      throw_invalid(tensor_place(path, *name),
                    "data_offsets begin at {}, expected {} (no overlap, no gap)", entry->begin,
                    covered);
    }
    covered = entry->end;
  }
  return covered;
}

}  // namespace

std::string tensor_place(const std::filesystem::path& path, std::string_view tensor) {
  return fmt::format("{}: tensor '{}'", path.string(), printable(tensor));
}

SafetensorsFile::SafetensorsFile(std::filesystem::path path) : path_(std::move(path)) {
  File file = open_file(path_, &info_);
  if (S_ISDIR(info_.st_mode)) throw_invalid(path_.string(), "is a directory; expected a file");
  ordinary_ = S_ISREG(info_.st_mode);
  const std::uint64_t size = ordinary_ ? static_cast<std::uint64_t>(info_.st_size) : kUnknownSize;

  std::array<unsigned char, 8> prefix{};
  read_exactly(file, prefix.data(), prefix.size(), "not a safetensors file: shorter than 8 bytes");
  std::uint64_t header_bytes = 0;
  for (std::size_t i = 0; i < prefix.size(); ++i) {
    header_bytes |= static_cast<std::uint64_t>(prefix[i]) << (8 * i);
  }
  if (header_bytes > kMaxHeader) {
    throw_invalid(path_.string(),
                  "not a safetensors file: a header of {} bytes, at most {} are allowed",
                  header_bytes, kMaxHeader);
  }
  const std::string truncated = fmt::format("truncated: a header of {} bytes", header_bytes);
  if (size < prefix.size() || header_bytes > size - prefix.size()) {
    throw_invalid(path_.string(), "{} in a file of {}", truncated, size);
  }
  std::string header(header_bytes, '\0');
  read_exactly(file, header.data(), header.size(), truncated + " is not all there");
  if (header.empty() || header.front() != '{') {
    throw_invalid(path_.string(), "not a safetensors file: the header does not begin with '{'");
  }
  // The JSON library takes such a byte for the end of the text.
  if (const std::size_t zero = header.find('\0'); zero != header.npos) {
    throw_invalid(path_.string(), "the header is not JSON (byte {} is 0)", zero);
  }
  HeaderReader reader(&entries_);
  if (!json::sax_parse(header, &reader)) throw_invalid(path_.string(), reader.error());
  data_start_ = prefix.size() + header_bytes;
  const std::uint64_t rest = size - data_start_;
  data_bytes_ = check_layout(path_, entries_, rest);
  if (ordinary_ && data_bytes_ != rest) {
    throw_invalid(path_.string(), "{} bytes of data belong to no tensor", rest - data_bytes_);
  }
  if (!ordinary_) pipe_ = std::move(file);
}

void SafetensorsFile::read_exactly(const File& file, void* data, std::uint64_t bytes,
                                   std::string_view what) const {
  const std::optional<std::size_t> done = read_up_to(file, data, bytes);
  if (!done) throw_environment(path_.string(), "cannot be read: {}", std::strerror(errno));
  if (*done != bytes) throw_invalid(path_.string(), std::string(what));
}

void SafetensorsFile::drain() const {
  if (ordinary_ || drained_) return;
  // In pieces: memory is taken for what comes, not for what the header promises.
  std::string data;
  while (data.size() < data_bytes_) {
    const std::size_t begin = data.size();
    data.resize(std::min<std::uint64_t>(data_bytes_, begin + kPiece));
    read_exactly(pipe_, data.data() + begin, data.size() - begin,
                 fmt::format("truncated: it ends before its {} bytes of data do", data_bytes_));
  }
  char next = 0;
  if (read_up_to(pipe_, &next, 1) == 1U) {
    throw_invalid(path_.string(),
                  "goes on after its {} bytes of data, which are all that its header names",
                  data_bytes_);
  }
  drained_ = std::move(data);
  pipe_ = File();
}

std::optional<DType> SafetensorsFile::dtype_of(const Entry& entry) {
  return parse_dtype(find_dtype(entry.dtype)->name);
}

HostTensor SafetensorsFile::read(std::string_view name) const {
  const auto it = entries_.find(name);
  if (it != entries_.end() && !dtype_of(it->second)) {
    throw_invalid(tensor_place(path_, name), "braid has no dtype {}", it->second.dtype);
  }
  FileTensor tensor = read_as_is(name);
  return {*parse_dtype(find_dtype(tensor.dtype)->name), std::move(tensor.shape),
          std::move(tensor.data)};
}

FileTensor SafetensorsFile::read_as_is(std::string_view name) const {
  auto it = entries_.find(name);
  if (it == entries_.end()) throw_invalid(path_.string(), "no tensor '{}'", printable(name));
  const Entry& entry = it->second;
  FileTensor tensor{entry.dtype, entry.shape, std::vector<std::byte>(entry.end - entry.begin)};
  if (ordinary_) {
    struct stat info {};
    const File file = open_file(path_, &info);
    if (info.st_dev != info_.st_dev || info.st_ino != info_.st_ino) {
      throw_invalid(path_.string(), std::string(kChanged));
    }
    if (::lseek(file.get(), static_cast<off_t>(data_start_ + entry.begin), SEEK_SET) < 0) {
      throw_environment(tensor_place(path_, name), std::strerror(errno));
    }
    read_exactly(file, tensor.data.data(), tensor.data.size(), kChanged);
  } else {
    drain();
    std::copy_n(drained_->data() + entry.begin, tensor.data.size(),
                reinterpret_cast<char*>(tensor.data.data()));
  }
  if (dtype_of(entry) == DType::kBool) check_bools(tensor.data, tensor_place(path_, name));
  return tensor;
}

namespace {

/// A tensor to write.
struct Part {
  std::string_view name, dtype;
  const std::vector<std::int64_t>* shape;
  const std::vector<std::byte>* data;
};

void stage(const std::filesystem::path& path, std::vector<Part> order,
           std::deque<OutputFile>* files) {
  // Wide element types first, so that every tensor is aligned to its element.
  std::ranges::stable_sort(order, [](const Part& a, const Part& b) {
    return find_dtype(a.dtype)->bytes > find_dtype(b.dtype)->bytes;
  });
  Json header = Json::object();
  std::uint64_t offset = 0;
  for (const Part& part : order) {
    const std::uint64_t end = offset + part.data->size();
    header.set(std::string(part.name),
               Json::object({{"dtype", part.dtype},
                             {"shape", *part.shape},
                             {"data_offsets", Json::array({offset, end})}}));
    offset = end;
  }
  std::string head = header.line();
  head.resize((head.size() + 7) / 8 * 8, ' ');
  std::string prefix(8, '\0');
  for (std::size_t i = 0; i < prefix.size(); ++i) {
    prefix[i] = static_cast<char>(head.size() >> (8 * i) & 0xff);
  }

  std::vector<std::string_view> parts = {prefix, head};
  for (const Part& part : order) {
    parts.emplace_back(reinterpret_cast<const char*>(part.data->data()), part.data->size());
  }
  files->emplace_back(path, parts);
}

}  // namespace

void stage_safetensors(const std::filesystem::path& path,
                       const std::map<std::string, HostTensor, std::less<>>& tensors,
                       std::deque<OutputFile>* files) {
  std::vector<Part> parts;
  parts.reserve(tensors.size());
  for (const auto& [name, tensor] : tensors) {
    parts.push_back({name, find_type(&ElementType::name, dtype_name(tensor.dtype))->file_name,
                     &tensor.shape, &tensor.data});
  }
  stage(path, std::move(parts), files);
}

void write_safetensors(const std::filesystem::path& path,
                       const std::map<std::string, HostTensor, std::less<>>& tensors) {
  std::deque<OutputFile> files;
  stage_safetensors(path, tensors, &files);
  files.front().publish();
}

void write_safetensors(const std::filesystem::path& path,
                       const std::map<std::string, FileTensor, std::less<>>& tensors) {
  std::vector<Part> parts;
  parts.reserve(tensors.size());
  for (const auto& [name, tensor] : tensors) {
    parts.push_back({name, tensor.dtype, &tensor.shape, &tensor.data});
  }
  std::deque<OutputFile> files;
  stage(path, std::move(parts), &files);
  files.front().publish();
}

void read_safetensors(
    const std::string& path,
    const std::function<void(std::string_view name, const HostTensor& tensor)>& use) {
  const SafetensorsFile file(path);
  for (const auto& [name, entry] : file.entries()) use(name, file.read(name));
}

}  // namespace braid
