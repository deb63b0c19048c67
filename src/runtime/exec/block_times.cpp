#include "runtime/exec/block_times.h"

#include <algorithm>
#include <iterator>
#include <limits>

namespace braid {
namespace {

using protocol::Mark;

const char* what_of(const Mark& mark) {
  constexpr const char* kNames[] = {"", "meet", "copy", "wait", "multiply"};  // by Mark::What
  return mark.what < std::size(kNames) ? kNames[mark.what] : "";
}

}  // namespace

std::vector<StepTime> block_times(const StepTime& step, std::span<const Mark> marks) {
  std::uint64_t first = std::numeric_limits<std::uint64_t>::max();
  for (const Mark& mark : marks) {
    if (mark.ns != 0) first = std::min(first, mark.ns);
  }
  const auto time = [&](const Mark& mark) {
    return step.begin_us + static_cast<double>(mark.ns - first) / 1e3;
  };
  std::vector<StepTime> result;
  for (std::size_t i = 0; i + 1 < marks.size(); ++i) {
    const Mark &mark = marks[i], &next = marks[i + 1];
    const bool last = (i + 1) % protocol::kMarksOfBlock == 0;
    if (mark.ns == 0 || mark.what == Mark::kEnd || last || next.ns == 0) continue;
    StepTime part = step;
    part.what = what_of(mark);
    part.block = static_cast<int>(i / protocol::kMarksOfBlock);
    part.of_rank = mark.rank;
    part.panel = static_cast<int>(mark.number);
    part.begin_us = time(mark);
    part.end_us = time(next);
    result.push_back(std::move(part));
  }
  return result;
}

}  // namespace braid
