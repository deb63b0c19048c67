#include "cli/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include "cli/common.h"

namespace braid::cli {

namespace {

constexpr std::size_t kBarWidth = 24;
constexpr std::string_view kClearLine = "\r\033[K";

}  // namespace

ProgressBar::ProgressBar(bool shown)
    : shown_(shown), terminal_(shown && ::isatty(STDERR_FILENO) != 0) {}

ProgressBar::~ProgressBar() {
  if (terminal_) note(kClearLine);
}

void ProgressBar::phase(std::string_view what) const {
  if (!shown_) return;
  if (terminal_) {
    note(fmt::format("{}{} ...", kClearLine, what));
  } else {
    note(fmt::format("braid: {}\n", what));
  }
}

void ProgressBar::detail(std::string_view what) const {
  if (terminal_) phase(what);
}

void ProgressBar::pass(std::string_view name) const { detail(fmt::format("lowering: {}", name)); }

void ProgressBar::warn(std::string_view what) const {
  if (!shown_) return;
  note(fmt::format("{}braid: warning: {}\n", terminal_ ? kClearLine : "", one_line(what)));
}

void ProgressBar::update(std::size_t done, std::size_t total, std::string_view what) const {
  if (done >= total || !shown_) return;
  if (terminal_) {
    draw(done, total, fmt::format("{}/{} {}", done + 1, total, what));
  } else {
    note(fmt::format("braid: kernel {}/{} {}\n", done + 1, total, what));
  }
}

void ProgressBar::part(std::string_view phase, std::size_t done, std::size_t total) {
  constexpr std::chrono::milliseconds kOften(100);
  const auto now = std::chrono::steady_clock::now();
  if (!terminal_ || (phase == drawn_phase_ && now - drawn_ < kOften)) return;
  drawn_ = now;
  drawn_phase_ = phase;
  const double percent = 100 * static_cast<double>(done) / static_cast<double>(total);
  draw(done, total, fmt::format("{:.1f}% {}", percent, phase));
}

void ProgressBar::draw(std::size_t done, std::size_t total, std::string_view text) const {
  const std::size_t filled = kBarWidth * done / total;
  note(fmt::format("{}[{:#<{}}{:.<{}}] {}", kClearLine, "", filled, "", kBarWidth - filled, text));
}

}  // namespace braid::cli
