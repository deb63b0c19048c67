#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace braid::test {

struct ProcessResult {
  int exit_code = -1;  ///< 128 + signal when it was killed
  std::string out, err;
};

/// Runs the built `braid` with these arguments, stdin from `input`, and variables added to this
/// process's environment.
ProcessResult run_braid(const std::vector<std::string>& args, const std::string& input = "",
                        const std::map<std::string, std::string>& environment = {});

/// Runs a line of shell in which $BRAID is the built `braid`.
ProcessResult run_shell(const std::string& line);

struct Interruption {
  int exit_code = -1;  ///< as in ProcessResult
  double seconds = 0;  ///< between the signal and the end
  std::string err;
};

/// Runs `braid` and sends it a signal once stderr holds `after`, or after a second where that is
/// empty. It reads a stdin that says nothing and does not end.
Interruption interrupt_braid(const std::vector<std::string>& args, const std::string& after,
                             int signal);

/// An empty directory that goes away with the object.
class TemporaryDirectory {
 public:
  TemporaryDirectory();
  ~TemporaryDirectory();
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  [[nodiscard]] std::filesystem::path operator/(const std::string& name) const {
    return path_ / name;
  }
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

std::string read_file(const std::filesystem::path& path);
void write_file(const std::filesystem::path& path, const std::string& content);

}  // namespace braid::test
