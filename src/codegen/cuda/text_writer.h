#pragma once

#include <string>
#include <string_view>

namespace braid {

/// Collects lines of C++ text, indented by the number of open braces.
class TextWriter {
 public:
  void line(std::string_view text) {
    if (text.starts_with('}')) --depth_;
    if (!text.empty() && !text.starts_with('#'))
      out_.append(static_cast<std::size_t>(depth_) * 2, ' ');
    out_.append(text).push_back('\n');
    if (text.ends_with('{')) ++depth_;
  }
  /// Indents the following text, which stands inside braces opened elsewhere.
  void indent() { ++depth_; }
  void raw(std::string_view text) { out_.append(text); }
  [[nodiscard]] std::string take() { return std::move(out_); }

 private:
  std::string out_;
  int depth_ = 0;
};

}  // namespace braid
