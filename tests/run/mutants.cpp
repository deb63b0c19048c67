#include "run/mutants.h"

#include <algorithm>
#include <map>
#include <regex>
#include <sstream>

namespace braid::testing {
namespace {

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  std::istringstream in{std::string(text)};
  for (std::string line; std::getline(in, line);) lines.push_back(std::move(line));
  return lines;
}

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

class Mutator {
 public:
  Mutator(std::string_view ptx, std::string_view cuda)
      : ptx_(lines_of(ptx)), cuda_(lines_of(cuda)) {}

  std::vector<Mutant> run() {
    for (std::size_t i = 0; i < ptx_.size(); ++i) {
      std::smatch label;
      if (std::regex_search(ptx_[i], label, std::regex(R"(^(\$L__BB\w+):)"))) {
        labels_[label[1]] = i;
      }
    }
    for (at_ = 0; at_ < ptx_.size(); ++at_) {
      std::smatch location;
      if (std::regex_search(ptx_[at_], location, std::regex(R"(^\s*\.loc\s+\d+\s+(\d+))"))) {
        source_ = static_cast<std::size_t>(std::stoul(location[1]));
        // For an inlined helper, the line that calls it.
        if (std::regex_search(ptx_[at_], location, std::regex(R"(inlined_at\s+\d+\s+(\d+))"))) {
          source_ = static_cast<std::size_t>(std::stoul(location[1]));
        }
        continue;
      }
      mutate();
    }
    return std::move(mutants_);
  }

 private:
  void mutate() {
    const std::string& line = ptx_[at_];
    const auto has = [&](std::string_view what) { return line.find(what) != std::string::npos; };
    std::smatch m;
    if (has("bar.sync")) remove("bar.sync");
    if (std::regex_search(line, m, std::regex(R"(bar\.red\.\w+\.pred\s+(%\w+), 0, (%\w+);)"))) {
      change("bar.red without the barrier", "\tmov.pred " + m[1].str() + ", " + m[2].str() + ";");
    }
    if (has("st.relaxed.")) {
      remove("st.relaxed");
      replace("st.relaxed.sys", "st.weak");
      narrow();
    }
    if (has("ld.relaxed.")) narrow();
    if (has("fence.")) {
      remove("a fence");
      narrow();
    }
    if (has("cp.async.commit_group") && is_waited_for()) remove("commit_group");
    if (std::regex_search(line, m, std::regex(R"(cp\.async\.wait_group\s+(\d+);)"))) {
      remove("wait_group");
      change("wait_group of one group less",
             "\tcp.async.wait_group " + std::to_string(std::stoi(m[1]) + 1) + ";");
    }
    if (std::regex_search(line, m, std::regex(R"(@!?%\w+ bra\s+(\$\w+);)")) && polls(m[1])) {
      remove("the loop of a wait");
    }
    if (has("st.global") && function() == "close_comm") remove("the advance of the epoch");
    if (std::regex_search(line, m, std::regex(R"(setp\.(lt|le|gt|ge)\.[su](32|64))"))) {
      const std::map<std::string, std::string> other{
          {"lt", "le"}, {"le", "lt"}, {"gt", "ge"}, {"ge", "gt"}};
      replace("setp." + m[1].str(), "setp." + other.at(m[1]));
    }
  }

  /// Whether a wait for copies comes after this: the last turns of an unrolled loop have none.
  bool is_waited_for() const {
    static const std::regex kBranch(R"(bra(?:\.uni)?\s+(\$\w+);)");
    for (std::size_t i = at_ + 1; i < ptx_.size(); ++i) {
      if (ptx_[i].find("cp.async.wait") != std::string::npos) return true;
      std::smatch m;
      if (!std::regex_search(ptx_[i], m, kBranch)) continue;
      const auto found = labels_.find(m[1]);
      if (found != labels_.end() && found->second < at_) return true;
    }
    return false;
  }

  /// Whether a branch from here to the label closes a loop that polls.
  bool polls(const std::string& label) const {
    const auto found = labels_.find(label);
    if (found == labels_.end() || found->second > at_) return false;
    // The way out may stand in front.
    for (std::size_t i = found->second + 1; i < at_; ++i) {
      if (ptx_[i].find(';') == std::string::npos) continue;
      if (ptx_[i].find("ret;") != std::string::npos) return false;
      break;
    }
    for (std::size_t i = found->second; i < at_; ++i) {
      if (ptx_[i].find("ld.relaxed") != std::string::npos) return true;
    }
    return false;
  }

  std::string function() const {
    static const std::regex kHead(R"((?:__forceinline__|__global__).*?(\w+)\()");
    for (std::size_t i = std::min(source_, cuda_.size()); i-- > 0;) {
      std::smatch m;
      if (std::regex_search(cuda_[i], m, kHead)) {
        // "__launch_bounds__(...)" stands before a kernel's name.
        return m[1] == "__launch_bounds__" ? "the kernel" : m[1].str();
      }
    }
    return "";
  }

  void narrow() {
    replace(".sys", ".gpu");
    replace(".sys", ".cta");
  }
  void remove(const std::string& what) { change("remove " + what, ""); }
  void replace(const std::string& from, const std::string& to) {
    std::string line = ptx_[at_];
    const std::size_t where = line.find(from);
    if (where == std::string::npos) return;
    line.replace(where, from.size(), to);
    change(from + " -> " + to, line);
  }
  void change(const std::string& what, const std::string& line) {
    std::vector<std::string> text = ptx_;
    text[at_] = line;
    mutants_.push_back(
        {static_cast<std::uint32_t>(at_ + 1), what, function(), source(), joined(text)});
  }

  std::string source() const {
    if (source_ == 0 || source_ > cuda_.size()) return "no line";
    const std::string& line = cuda_[source_ - 1];
    // One barrier is like another: the line before tells which it is.
    const bool bare = line.find_first_not_of(' ') == line.find("__syncthreads();");
    return bare && source_ > 1 ? cuda_[source_ - 2] + line : line;
  }

  std::vector<std::string> ptx_, cuda_;
  std::map<std::string, std::size_t> labels_;
  std::size_t at_ = 0;
  std::size_t source_ = 0;
  std::vector<Mutant> mutants_;
};

}  // namespace

std::vector<Mutant> mutants_of(std::string_view ptx, std::string_view cuda) {
  return Mutator(ptx, cuda).run();
}

}  // namespace braid::testing
