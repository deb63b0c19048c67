#include "cli/run_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <string_view>

#include "cli/common.h"
#include "cli/count_report.h"
#include "cli/kernel_report.h"
#include "ir/json_value.h"
#include "runtime/inspection_json.h"

namespace braid::cli {

namespace {

std::string bindings_text(const Bindings& bindings) {
  std::string text;
  for (const auto& [name, value] : bindings) text += fmt::format("{}={}, ", name, value);
  return text;
}

}  // namespace

OutputCards compare(const RankTensors& outputs, const std::vector<int>& ranks,
                    const RankTensors& reference) {
  OutputCards cards(outputs.size());
  for (std::size_t local = 0; local < outputs.size(); ++local) {
    const auto& expected = reference[ranks[local]];
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const auto& data = outputs[local][i].data;
      const std::string_view bits(reinterpret_cast<const char*>(data.data()), data.size());
      cards[local].push_back(
          {relative_error(outputs[local][i], expected[i]), std::hash<std::string_view>()(bits)});
    }
  }
  return cards;
}

void judge(const OutputCards& cards, const RankTensors& reference,
           std::vector<OutputReport>* reports) {
  for (std::size_t i = 0; i < reports->size(); ++i) {
    OutputReport& report = (*reports)[i];
    report.equal_in_reference = report.equal = true;
    for (std::size_t rank = 0; rank < cards.size(); ++rank) {
      const OutputCard& card = cards[rank][i];
      report.relative_error = std::max(report.relative_error, card.relative_error);
      report.equal = report.equal && card.bits == cards[0][i].bits;
      report.equal_in_reference =
          report.equal_in_reference && reference[rank][i].data == reference[0][i].data;
    }
    report.good =
        report.relative_error <= report.tolerance && (report.equal || !report.equal_in_reference);
  }
}

void print_text(const Graph& graph, const RunOptions& options, const Bindings& bindings,
                const RunReport& report, const Executable& executable) {
  fmt::print("{}: {} ranks, {}seed {}, {}\n\n", one_line(graph.name()), report.world,
             bindings_text(bindings), options.checks.seed, report.device);
  fmt::print("{}\n", kernel_table(executable.kernels()));
  std::vector<std::vector<std::string>> rows = {{"arena", "bytes per rank"}};
  for (const ArenaReport& arena : executable.arenas()) {
    rows.push_back({one_line(arena.name), std::to_string(arena.bytes)});
  }
  fmt::print("{}\n", format_table(rows));
  if (options.check) {
    rows = {{"output", "type", "relative error", "allowed", "ranks", "check"}};
    for (const OutputReport& o : report.outputs) {
      rows.push_back({one_line(o.name),
                      fmt::format("{}[{}]", dtype_name(o.dtype), fmt::join(o.shape, ", ")),
                      fmt::format("{:.2e}", o.relative_error), fmt::format("{:.0e}", o.tolerance),
                      o.equal                ? "bitwise equal"
                      : o.equal_in_reference ? "DIFFER"
                                             : "differ",
                      o.good ? "ok" : "FAILED"});
    }
    fmt::print("{}\n", format_table(rows));
  }
  fmt::print("  {} launches per rank; compile {:.0f} ms, run {:.1f} ms\n", executable.launches(),
             report.compile_ms, report.run_ms);
  fmt::print("{}", batch_invariance_line(executable.batch_invariant()));
  if (!options.outputs.empty()) fmt::print("  outputs in {}\n", options.outputs);
  if (!options.trace.empty()) fmt::print("  trace in {}\n", options.trace);
  fmt::print("{}", sample_line(report.counts, options.checks.sample));
  if (report.count_on != nullptr) {
    fmt::print("\n{}\n", count_tables(report.counts, *report.count_on));
  }
  if (options.checks.schedule == "all") {
    fmt::print("  {} interleavings, {} with other bits in an output\n", report.interleavings,
               report.differing);
  }
  if (!options.checks.sanitize.empty()) print_findings(report.findings, report.notes);
  if (report.count_on != nullptr) {
    fmt::print("{}", first_to_look_at(report.counts, *report.count_on));
  }
}

void print_json(const Graph& graph, const RunOptions& options, const Bindings& bindings,
                const RunReport& report, const Executable& executable, bool good) {
  Json arenas = Json::array(), buffers = arenas, outputs = arenas;
  for (const ArenaReport& arena : executable.arenas()) {
    arenas.push_back(Json::object({{"name", arena.name}, {"bytes", arena.bytes}}));
  }
  for (const BufferReport& buffer : executable.buffers()) {
    buffers.push_back(Json::object({{"name", buffer.name},
                                    {"arena", buffer.arena},
                                    {"offset", buffer.offset},
                                    {"bytes", buffer.bytes}}));
  }
  for (const OutputReport& o : report.outputs) {
    Json entry =
        Json::object({{"name", o.name}, {"dtype", dtype_name(o.dtype)}, {"shape", o.shape}});
    if (options.check) {
      // JSON has no infinity: an error that is not finite prints as null.
      entry.set("relative_error", o.relative_error);
      entry.set("tolerance", o.tolerance);
      entry.set("equal_across_ranks", o.equal);
      entry.set("ok", o.good);
    }
    outputs.push_back(std::move(entry));
  }
  Json values = Json::object();
  for (const auto& [name, value] : bindings) values.set(name, value);
  Json document = Json::object({{"graph", graph.name()},
                                {"world", report.world},
                                {"device", report.device},
                                {"seed", options.checks.seed},
                                {"bindings", values},
                                {"inputs_from_files", report.from_files},
                                {"checked", options.check},
                                {"ok", good},
                                {"batch_invariant", executable.batch_invariant()},
                                {"launches", executable.launches()},
                                {"program_hash", executable.program_hash()},
                                {"compile_ms", report.compile_ms},
                                {"run_ms", report.run_ms},
                                {"kernels", kernels_json(executable.kernels())},
                                {"arenas", arenas},
                                {"buffers", buffers},
                                {"outputs", outputs}});
  if (options.checks.sample) document.set("sampled", true);
  if (report.count_on != nullptr) {
    document.set("counts", counts_json(report.counts, *report.count_on));
  }
  if (options.checks.schedule == "all") {
    document.set("interleavings", report.interleavings);
    document.set("interleavings_differing", report.differing);
  }
  if (!options.checks.sanitize.empty()) {
    document.set("findings", findings_json(report.findings));
    document.set("notes", findings_json(report.notes));
  }
  fmt::print("{}\n", document.indented());
}

/// Prints the rest of the report of a run that its findings stopped.
void print_stopped(const Graph& graph, const RunOptions& options, const RunReport& report) {
  if (!options.json) return print_findings(report.findings, report.notes);
  const Json document = Json::object(
      {{"graph", graph.name()}, {"ok", false}, {"findings", findings_json(report.findings)}});
  fmt::print("{}\n", document.indented());
}

}  // namespace braid::cli
