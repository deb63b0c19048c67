#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "braid/export.h"
#include "braid/graph.h"
#include "braid/pass_config.h"
#include "braid/world.h"

namespace braid {

/// What tune() is asked (docs/tuning.md).
struct TuneOptions {
  PassConfig passes;
  /// cuda: kernels are timed on a GPU. cpu: their times on `target`'s device are estimated from
  /// what they do on this machine.
  DeviceKind device = DeviceKind::kAny;
  std::string target;    ///< as WorldOptions::target
  std::string database;  ///< a file, made where it is not there
  /// What stands in the database is not tried again.
  bool resume = false;
  /// Tries every candidate, not the most promising tenth.
  bool exhaustive = false;
  double budget_s = 60;   ///< no new trial begins after so many seconds
  Bindings bindings;      ///< of symbols; the others are at their maximum
  std::string cache_dir;  ///< "" = the default one
  /// How to start a process that compiles and counts: the path of `braid-worker`. As many run as
  /// there are cores, eight at most. Empty: all is done in this process.
  std::vector<std::string> worker;
  /// Told of each kernel and of each trial. What it throws leaves tune().
  std::function<void(std::size_t kernel, std::size_t kernels, std::string_view what)> progress;
};

/// A configuration and what came of it.
struct TunedConfig {
  std::map<std::string, std::int64_t> config;
  double ns = 0;        ///< of one launch
  std::string limiter;  ///< of an estimate: what limits it, as in KernelEstimate
};

/// One kernel of a graph.
struct TunedKernel {
  std::string name;  ///< of the entry
  std::string template_name;
  std::string ops;      ///< "mm+silu"
  int launches = 0;     ///< of one run
  std::string symbols;  ///< at which it was tried, "T=128"
  /// Why it was not tuned, "it waits for peers, ..."; else empty.
  std::string remark;
  std::size_t candidates = 0;
  std::size_t tried = 0;          ///< those from the database included
  std::size_t from_database = 0;  ///< of these
  std::size_t failed = 0;         ///< of these: they spill registers, say
  /// There where the kernel was tried and runs.
  std::optional<TunedConfig> by_default, best;
};

/// An all-reduce of a graph, whichever kernels it is in, and what each algorithm takes that can run
/// it: alone, in its default configuration.
struct TunedCollective {
  std::string type;  ///< of the operand, "bf16[T, 2048]"
  std::int64_t ranks = 1;
  std::string symbols;  ///< as TunedKernel::symbols
  /// By the algorithm's name; nothing where it was not tried, or does not run.
  std::map<std::string, std::optional<TunedConfig>> algorithms;
  std::size_t tried = 0;          ///< of these, those from the database included
  std::size_t from_database = 0;  ///< of those that were tried
  std::string by_model;  ///< what a plan has without a database; several where other nodes bar one
  std::string taken;     ///< what it has with this one
};

struct TuneResult {
  std::string target;     ///< "A100", "sm_90a"
  std::string device;     ///< whose times these are: a model's or a GPU's name
  std::string toolchain;  ///< "NVRTC 13.0"
  bool measured = false;  ///< else estimated
  bool complete = false;  ///< the budget sufficed
  /// None where times are measured, or an option names the algorithm.
  std::vector<TunedCollective> collectives;
  std::vector<TunedKernel> kernels;  ///< of the plan with the algorithms that were taken
};

/// Looks for the quickest algorithm of each all-reduce of the graph, and for a quicker
/// configuration of each kernel. Every trial is in the database as soon as it is over, and what is
/// best by then serves (WorldOptions::tune_db). What is chosen does not change a result's bits,
/// unless PassConfig::batch_invariant is off, which lets an all-reduce add up in any order. Throws
/// kInvalidArgument for options, kEnvironment where something is missing on this machine or the
/// database cannot be written.
[[nodiscard]] BRAID_API TuneResult tune(const Graph& graph, const TuneOptions& options);

}  // namespace braid
