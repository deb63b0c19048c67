#include "cli/schedule_report.h"

#include <fmt/format.h>

#include "cli/common.h"
#include "lowering/schedule/memory_timeline.h"
#include "lowering/schedule/order.h"
#include "lowering/schedule/overlap_timeline.h"

namespace braid::cli {
namespace {

struct Sums {
  std::int64_t peak_bytes;
  double total_ns;
};

Sums sums_of(const Graph& graph, const Target& target) {
  return {.peak_bytes = peak_memory(MemoryUse(graph), given_order(graph)),
          .total_ns = overlap_timeline(graph, estimate_nodes(graph, target)).total_ns};
}

std::string whole(double number) { return fmt::format("{:.0f}", number); }

}  // namespace

std::string describe_schedule(const Pass& pass, const Graph& before, const Graph& after,
                              const Target& target, const std::vector<MoveRecord>& records,
                              std::span<const Remark> remarks) {
  double improvement = 0;
  int moves = 0;
  std::vector<std::vector<std::string>> rows = {{"node", "comm ns", "comp ns", "initial exposed",
                                                 "final exposed", "improvement", "limiting factor",
                                                 "moves", "grouped", "moved past", "overlap"}};
  for (const MoveRecord& record : records) {
    improvement += record.improvement_ns();
    moves += record.moves;
    rows.push_back(row(one_line(record.node), whole(record.comm_ns), whole(record.comp_ns),
                       whole(record.initial_exposed_ns), whole(record.final_exposed_ns),
                       whole(record.improvement_ns()),
                       record.limiting_factor ? one_line(record.limiting_factor.text()) : "None",
                       record.moves, record.grouped, one_line(record.moved_past),
                       one_line(record.overlap)));
  }
  const Sums was = sums_of(before, target);
  const Sums now = sums_of(after, target);
  std::string text = fmt::format("{}: ", pass.name);
  if (!records.empty()) {
    text += fmt::format("improved overlap by {:.0f} ns after {} moves; ", improvement, moves);
  }
  text += fmt::format("peak memory {} bytes, {} before; about {:.1f} us, {:.1f} before\n",
                      now.peak_bytes, was.peak_bytes, now.total_ns / 1e3, was.total_ns / 1e3);
  for (const Remark& remark : remarks) {
    if (remark.node == before.name()) text += one_line(remark.reason.text()) + "\n";
  }
  return records.empty() ? text : text + format_table(rows);
}

}  // namespace braid::cli
