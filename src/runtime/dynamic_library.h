#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace braid {

/// A shared library opened at run time. It stays mapped until the process ends, since objects that
/// it made may outlive this handle.
class DynamicLibrary {
 public:
  DynamicLibrary() = default;
  /// Tries the candidates (paths or plain names, as for dlopen) in order and keeps the first that
  /// loads. Does not throw; see `loaded` and `failure`.
  explicit DynamicLibrary(const std::vector<std::string>& candidates);
  DynamicLibrary(DynamicLibrary&& other) noexcept;
  DynamicLibrary& operator=(DynamicLibrary&& other) noexcept;
  ~DynamicLibrary();

  [[nodiscard]] bool loaded() const { return handle_ != nullptr; }
  /// The path it was loaded from; empty when not loaded.
  [[nodiscard]] const std::string& path() const { return path_; }
  /// The loader's messages for all failed candidates, on one line.
  [[nodiscard]] const std::string& failure() const { return failure_; }
  /// The address of a symbol, or null.
  [[nodiscard]] void* symbol(const char* name) const;
  /// The linker's build id in hexadecimal, else the file's size; it distinguishes builds of one
  /// version.
  [[nodiscard]] std::string identity() const;

 private:
  void* handle_ = nullptr;
  std::string path_;
  std::string failure_;
};

/// A function of type `F` in a shared library, and its name there; null until it is bound.
template <class F>
struct LibraryFunction {
  using Type = F;
  const char* name;
  F* address = nullptr;
  operator F*() const { return address; }
};

/// Fills a table of function pointers: looks up `name` and stores it in `function`. A missing name
/// is appended to `missing`.
template <class Function>
void bind_symbol(const DynamicLibrary& library, const char* name, Function*& function,
                 std::string& missing) {
  function = reinterpret_cast<Function*>(library.symbol(name));
  if (function == nullptr)
    missing += missing.empty() ? std::string(name) : ", " + std::string(name);
}

/// The value of an environment variable; empty when it is not set.
[[nodiscard]] std::string environment(const char* name);

/// The folder of braid's own library, with links resolved; empty when unknown.
[[nodiscard]] std::filesystem::path library_folder();

/// The files of each directory that have one of the names ("libnvrtc.so.13", "libnvrtc.so"), in
/// that order. Of one that has none, the first name, so that the loader's message says that it was
/// looked in.
[[nodiscard]] std::vector<std::string> library_files(
    const std::vector<std::filesystem::path>& directories, const std::vector<std::string>& names);

}  // namespace braid
