#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "braid/executable.h"
#include "braid/reference.h"
#include "cli/commands.h"
#include "codegen/device_model.h"

// The report of `braid run`.

namespace braid::cli {

struct OutputReport {
  std::string name;
  DType dtype;
  std::vector<std::int64_t> shape;
  // Only with --check:
  double relative_error = 0;  // the worst of all ranks
  double tolerance = 0;
  bool equal_in_reference = false, equal = false;
  bool good = true;
};

/// A rank's result for one of its outputs.
struct OutputCard {
  double relative_error = 0;
  std::uint64_t bits = 0;  ///< a hash of them
};

struct RunReport {
  std::int64_t world;
  std::string device;
  std::vector<OutputReport> outputs;
  double compile_ms, run_ms;
  std::vector<std::string> from_files;
  std::vector<Finding> findings, notes;
  const DeviceModel* count_on = nullptr;  ///< null when nothing is counted
  std::vector<KernelCounts> counts;
  std::vector<StepTime> steps;  ///< where they are timed
  std::uint64_t interleavings = 0;
  std::uint64_t differing = 0;  ///< of those, with other output bits than the first
};

/// By rank, then by output.
using OutputCards = std::vector<std::vector<OutputCard>>;
/// The cards of those ranks whose outputs these are; the reference has those of all.
[[nodiscard]] OutputCards compare(const RankTensors& outputs, const std::vector<int>& ranks,
                                  const RankTensors& reference);
/// Judges the cards of all ranks.
void judge(const OutputCards& cards, const RankTensors& reference,
           std::vector<OutputReport>* reports);

void print_text(const Graph& graph, const RunOptions& options, const Bindings& bindings,
                const RunReport& report, const Executable& executable);
void print_json(const Graph& graph, const RunOptions& options, const Bindings& bindings,
                const RunReport& report, const Executable& executable, bool good);
/// Prints the rest of the report of a run that its findings stopped.
void print_stopped(const Graph& graph, const RunOptions& options, const RunReport& report);

}  // namespace braid::cli
