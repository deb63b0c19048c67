#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace braid {

/// A shared library opened at run time. Its code stays mapped until the process ends (objects it
/// made may outlive this handle).
class DynamicLibrary {
 public:
  DynamicLibrary() = default;
  /// Tries the candidates (paths or plain names, as for dlopen) in order and keeps the first that
  /// loads. Does not throw: see `loaded` and `failure`.
  explicit DynamicLibrary(const std::vector<std::string>& candidates);
  DynamicLibrary(DynamicLibrary&& other) noexcept;
  DynamicLibrary& operator=(DynamicLibrary&& other) noexcept;
  ~DynamicLibrary();

  [[nodiscard]] bool loaded() const { return handle_ != nullptr; }
  /// The file it was loaded from; empty when not loaded.
  [[nodiscard]] const std::string& path() const { return path_; }
  /// What the loader said of each candidate that was tried before one loaded, on one line.
  [[nodiscard]] const std::string& failure() const { return failure_; }
  /// Null when there is no such symbol.
  [[nodiscard]] void* symbol(const char* name) const;
  /// The linker's build id in hexadecimal, else the size of the file: what tells two builds of one
  /// version apart.
  [[nodiscard]] std::string identity() const;

 private:
  void* handle_ = nullptr;
  std::string path_;
  std::string failure_;
};

/// Fills a table of function pointers: looks up `name` and stores it in `function`. When it is
/// missing, its name is appended to `missing`.
template <class Function>
void bind_symbol(const DynamicLibrary& library, const char* name, Function*& function,
                 std::string& missing) {
  function = reinterpret_cast<Function*>(library.symbol(name));
  if (function == nullptr)
    missing += missing.empty() ? std::string(name) : ", " + std::string(name);
}

/// The environment variable's value; empty when it is not set.
[[nodiscard]] std::string environment(const char* name);

/// The folder that braid's own library was loaded from, without links; empty when it is unknown.
[[nodiscard]] std::filesystem::path library_folder();

/// The files in `directory` that are `stem` ("libnvrtc.so") with one of the version suffixes
/// ("13", "12"), in that order, then `stem` itself. When there is none: the first name, so that the
/// loader's message names the directory that was looked in.
[[nodiscard]] std::vector<std::string> library_files(const std::string& directory,
                                                     std::string_view stem,
                                                     const std::vector<std::string>& versions);

}  // namespace braid
