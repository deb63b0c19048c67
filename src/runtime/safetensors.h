#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <deque>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "braid/tensor.h"
#include "runtime/file_io.h"
#include "runtime/output_file.h"

namespace braid {

/// A tensor of any element type that the format knows.
struct FileTensor {
  std::string dtype;  ///< as written in the file: "BF16"
  std::vector<std::int64_t> shape;
  std::vector<std::byte> data;
};

/// Reads a .safetensors file: the header once, tensors when asked for, which opens it again: there
/// may be more files than a process may hold open. A pipe, or whatever else is read only once, is
/// read as far as its header says, and must end there. Everything that the file
/// says is checked: kInvalidArgument names the file and the tensor, kEnvironment is an I/O error.
class SafetensorsFile {
 public:
  struct Entry {
    std::string dtype;  ///< as written in the file: "BF16"
    std::vector<std::int64_t> shape;
    std::uint64_t begin = 0, end = 0;  ///< bytes, from the start of the data
  };

  explicit SafetensorsFile(std::filesystem::path path);

  [[nodiscard]] std::string path() const { return path_.string(); }
  /// Sorted by name.
  [[nodiscard]] const std::map<std::string, Entry, std::less<>>& entries() const {
    return entries_;
  }
  /// Nothing if braid has no such element type.
  [[nodiscard]] static std::optional<DType> dtype_of(const Entry& entry);
  /// Takes the data out of a pipe, so that its writer can go on. Does nothing the second time, and
  /// for an ordinary file.
  void drain() const;
  /// Throws when there is no such tensor, when braid has no such dtype, and when a bool is neither
  /// 0 nor 1.
  [[nodiscard]] HostTensor read(std::string_view name) const;
  /// Reads a tensor of any dtype.
  [[nodiscard]] FileTensor read_as_is(std::string_view name) const;

 private:
  /// Throws when fewer bytes come.
  void read_exactly(const File& file, void* data, std::uint64_t bytes, std::string_view what) const;

  std::filesystem::path path_;
  struct stat info_ {};           ///< of the file whose header was read
  bool ordinary_ = true;          ///< has a size, and bytes that can be read again
  mutable File pipe_;             ///< open until it is drained, when it is not an ordinary file
  std::uint64_t data_start_ = 0;  ///< in the file
  std::uint64_t data_bytes_ = 0;
  mutable std::optional<std::string> drained_;  ///< the data, when it is not an ordinary file
  std::map<std::string, Entry, std::less<>> entries_;
};

/// The place of a tensor of a file, for errors.
[[nodiscard]] std::string tensor_place(const std::filesystem::path& path, std::string_view tensor);

/// Writes a file that the Python package reads beside its place and adds it to `files`, which the
/// caller publishes. Throws kEnvironment.
void stage_safetensors(const std::filesystem::path& path,
                       const std::map<std::string, HostTensor, std::less<>>& tensors,
                       std::deque<OutputFile>* files);

/// Writes one file, completely or not at all.
void write_safetensors(const std::filesystem::path& path,
                       const std::map<std::string, HostTensor, std::less<>>& tensors);
void write_safetensors(const std::filesystem::path& path,
                       const std::map<std::string, FileTensor, std::less<>>& tensors);

}  // namespace braid
