#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>

#include "ir/non_copyable.h"

namespace braid::cli {

/// Tells on stderr how far long work has come: a bar on a terminal, plain lines elsewhere. The bar
/// goes away with the object.
class ProgressBar : NonCopyable {
 public:
  /// A bar that is not shown prints nothing, because another process does.
  explicit ProgressBar(bool shown = true);
  ~ProgressBar();

  /// Work of unknown length begins.
  void phase(std::string_view what) const;
  /// A part of that, which is too much to tell but on a terminal.
  void detail(std::string_view what) const;
  /// A pass over the graph, likewise.
  void pass(std::string_view name) const;
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
  std::string drawn_phase_;                      ///< a part of which was shown last,
  std::chrono::steady_clock::time_point drawn_;  ///< and when
};

}  // namespace braid::cli
