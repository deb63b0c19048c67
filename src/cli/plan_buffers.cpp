#include <fmt/format.h>

#include <charconv>
#include <chrono>
#include <limits>
#include <optional>
#include <set>

#include "braid/error.h"
#include "cli/commands.h"
#include "cli/common.h"
#include "ir/text.h"
#include "ir/text_file.h"
#include "pack/pack.h"

namespace braid::cli {
namespace {

/// Without --time-limit: some seconds for hundreds of buffers.
constexpr std::int64_t kNodes = 100'000;
constexpr std::size_t kMaxCsvBytes = std::size_t{1} << 28U;
/// Limit for the total of sizes and alignments, and for times: sums of a few stay within 64 bits.
constexpr std::int64_t kMost = std::int64_t{1} << 61U;

enum Column : std::size_t { kId, kLower, kUpper, kSize, kAlignment, kColumns };
constexpr std::string_view kNames[kColumns] = {"id", "lower", "upper", "size", "alignment"};

struct Table {
  std::string header;
  std::vector<std::string> lines;  ///< of each buffer, as they were
  std::vector<Interval> intervals;
};

std::vector<std::string_view> fields_of(std::string_view line) {
  std::vector<std::string_view> fields;
  for (;;) {
    const std::size_t comma = line.find(',');
    std::string_view field = line.substr(0, comma);
    while (!field.empty() && field.front() == ' ') field.remove_prefix(1);
    while (!field.empty() && field.back() == ' ') field.remove_suffix(1);
    fields.push_back(field);
    if (comma == line.npos) return fields;
    line.remove_prefix(comma + 1);
  }
}

class Reader {
 public:
  Reader(std::string_view text, std::string name) : rest_(text), name_(std::move(name)) {}

  Table read() {
    Table table;
    std::optional<std::string_view> line = next_line();
    if (!line) refuse("found nothing; expected a header");
    table.header = *line;
    read_header(fields_of(*line));
    while ((line = next_line())) {
      table.lines.emplace_back(*line);
      table.intervals.push_back(read_buffer(fields_of(*line)));
    }
    return table;
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const {
    throw_invalid(fmt::format("{}:{}", name_, line_), what);
  }

  /// Without its end; empty ones are passed over.
  std::optional<std::string_view> next_line() {
    while (!rest_.empty()) {
      const std::size_t end = rest_.find('\n');
      std::string_view line = rest_.substr(0, end);
      rest_.remove_prefix(end == rest_.npos ? rest_.size() : end + 1);
      if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
      ++line_;
      if (!line.empty()) return line;
    }
    return std::nullopt;
  }

  void read_header(const std::vector<std::string_view>& names) {
    for (const std::string_view name : names) {
      std::size_t column = 0;
      while (column < kColumns && kNames[column] != name) ++column;
      if (column == kColumns) {
        refuse(fmt::format("found column {}; expected id, lower, upper, size, alignment",
                           quote(name)));
      }
      if (place_[column]) refuse(fmt::format("column {} stands there twice", quote(name)));
      place_[column] = columns_++;
    }
    for (std::size_t column = kId; column <= kSize; ++column) {
      if (!place_[column]) refuse(fmt::format("found no column {}", quote(kNames[column])));
    }
  }

  Interval read_buffer(const std::vector<std::string_view>& fields) {
    if (fields.size() != columns_) {
      refuse(fmt::format("found {} fields; expected {}", fields.size(), columns_));
    }
    const std::string_view id = fields[*place_[kId]];
    if (id.empty()) refuse("found no id");
    if (!ids_.insert(id).second) refuse(fmt::format("id {} stands there twice", quote(id)));
    Interval interval{number(fields, kLower, -kMost, kMost), number(fields, kUpper, -kMost, kMost),
                      number(fields, kSize, 0, kMost), 1};
    if (interval.lower >= interval.upper) {
      refuse(fmt::format("found lower {}, upper {}; expected lower < upper", interval.lower,
                         interval.upper));
    }
    if (place_[kAlignment]) interval.alignment = number(fields, kAlignment, 1, kMost);
    if (interval.size > kMost - bytes_ || interval.alignment > kMost - bytes_ - interval.size) {
      refuse(fmt::format("sizes and alignments so far are more than {} bytes", kMost));
    }
    bytes_ += interval.size + interval.alignment;
    return interval;
  }

  std::int64_t number(const std::vector<std::string_view>& fields, Column column,
                      std::int64_t least, std::int64_t most) const {
    const std::string_view text = fields[*place_[column]];
    std::int64_t value = 0;
    if (parse_number(text, &value) && value >= least && value <= most) return value;
    refuse(fmt::format("{}: found {}; expected an integer from {} to {}", kNames[column],
                       quote(text), least, most));
  }

  std::string_view rest_;
  std::string name_;
  int line_ = 0;
  std::optional<std::size_t> place_[kColumns];
  std::size_t columns_ = 0;
  std::set<std::string_view> ids_;
  std::int64_t bytes_ = 0;
};

std::string csv_of(const Table& table, const Packing& packing) {
  std::string text = table.header + ",offset\n";
  for (std::size_t i = 0; i < table.lines.size(); ++i) {
    text += fmt::format("{},{}\n", table.lines[i], packing.offsets[i]);
  }
  return text;
}

std::string report_of(const PackResult& result, std::size_t buffers, std::int64_t capacity) {
  const std::int64_t total = result.packing.total;
  std::string text = fmt::format("{} buffers in {} bytes", buffers, total);
  if (total == result.bound) {
    text += ", the most that live at one time";
  } else {
    const double ratio = static_cast<double>(total) / static_cast<double>(result.bound);
    text += fmt::format(", {:.2f} % above the {} that live at one time", 100 * (ratio - 1),
                        result.bound);
  }
  text += fmt::format("; {} nodes searched\n", result.nodes);
  if (total > capacity) {
    text += fmt::format("more than the capacity of {} bytes: {}\n", capacity,
                        result.impossible ? "nothing fits in that" : "no better one was found");
  }
  return text;
}

}  // namespace

int plan_buffers(const PlanBuffersOptions& options) {
  prepare_output_file(options.output, "--output");
  const std::string text = read_text(options.path, kMaxCsvBytes);
  const Table table = Reader(text, input_name(options.path)).read();
  PackOptions pack_options{.capacity = options.capacity, .nodes = kNodes};
  if (options.time_limit_s) {
    using Clock = std::chrono::steady_clock;
    const std::chrono::duration<double> limit(*options.time_limit_s);
    pack_options.nodes = std::numeric_limits<std::int64_t>::max();
    pack_options.stop = [start = Clock::now(), limit] { return Clock::now() - start >= limit; };
  }
  const PackResult result = pack(table.intervals, pack_options);
  write_text(options.output, csv_of(table, result.packing));
  note(report_of(result, table.intervals.size(), options.capacity));
  return result.packing.total <= options.capacity ? kGood : kFailed;
}

}  // namespace braid::cli
