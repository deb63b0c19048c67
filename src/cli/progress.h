#pragma once

#include <cstddef>
#include <string_view>

namespace braid::cli {

/// Tells on stderr how far long work has come: a bar on a terminal, plain lines elsewhere. The bar
/// goes away with the object.
class ProgressBar {
 public:
  /// One that is not shown says nothing: another process does.
  explicit ProgressBar(bool shown = true);
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;
  ~ProgressBar();

  /// Work of unknown length begins.
  void phase(std::string_view what) const;
  /// `done` of `total` pieces are done and `what` comes next.
  void update(std::size_t done, std::size_t total, std::string_view what) const;
  /// A line that stays.
  void warn(std::string_view what) const;
  /// `done` of `total` pieces of a phase are done; too much to tell but on a terminal.
  void part(std::string_view phase, std::size_t done, std::size_t total);

 private:
  void draw(std::size_t done, std::size_t total, std::string_view text) const;

  bool shown_;
  bool terminal_;
  std::size_t percent_ = 0;  ///< of the part shown last
};

}  // namespace braid::cli
