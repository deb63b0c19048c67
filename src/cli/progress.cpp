#include "cli/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

#include "cli/common.h"

namespace braid::cli {

namespace {

constexpr std::size_t kBarWidth = 24;
constexpr std::string_view kClearLine = "\r\033[K";

}  // namespace

ProgressBar::ProgressBar() : terminal_(::isatty(STDERR_FILENO) != 0) {}

ProgressBar::~ProgressBar() {
  if (terminal_) fmt::print(stderr, "{}", kClearLine);
}

void ProgressBar::phase(std::string_view what) const {
  if (terminal_) {
    fmt::print(stderr, "{}{} ...", kClearLine, what);
    std::fflush(stderr);
  } else {
    fmt::print(stderr, "braid: {}\n", what);
  }
}

void ProgressBar::warn(std::string_view what) const {
  fmt::print(stderr, "{}braid: warning: {}\n", terminal_ ? kClearLine : "", one_line(what));
}

void ProgressBar::update(std::size_t done, std::size_t total, std::string_view what) const {
  if (done >= total) return;
  if (terminal_) {
    const std::size_t filled = kBarWidth * done / total;
    fmt::print(stderr, "{}[{:#<{}}{:.<{}}] {}/{} {}", kClearLine, "", filled, "",
               kBarWidth - filled, done + 1, total, what);
    std::fflush(stderr);
  } else {
    fmt::print(stderr, "braid: kernel {}/{} {}\n", done + 1, total, what);
  }
}

}  // namespace braid::cli
