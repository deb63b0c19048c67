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
  std::string serves;   ///< for which values what is found is taken, "T from 17 to 256 by 8"
  /// Why it was not tuned, "it waits for peers, ..."; else empty.
  std::string remark;
  std::size_t candidates = 0;
  std::size_t tried = 0;          ///< those from the database included
  std::size_t from_database = 0;  ///< of these
  std::size_t failed = 0;         ///< of these: they spill registers, say
  /// There where the kernel was tried and runs.
  std::optional<TunedConfig> by_default, best;
};

/// One way in which a plan can compute something, and what its kernels take: each alone, in its
/// default configuration.
struct TunedOption {
  std::string name;          ///< "two_shot", "4 parts"
  std::optional<double> ns;  ///< of all its kernels; nothing where one was not tried, or cannot run
  std::string limiter;       ///< of the one that takes longest, as TunedConfig::limiter
};

/// What trials decide before the kernels are tuned, wherever in the graph it is: the algorithm of
/// an all-reduce; where PassConfig::batch_invariant is off, the parts of a matmul.
struct TunedChoice {
  std::string op;        ///< "all_reduce", "mm"
  std::string operands;  ///< their types, "bf16[T, 2048]"
  std::int64_t ranks = 1;
  std::string symbols;  ///< as TunedKernel::symbols
  std::string serves;   ///< as TunedKernel::serves
  std::vector<TunedOption> options;
  std::size_t tried = 0;          ///< kernels of these, those from the database included
  std::size_t from_database = 0;  ///< of those that were tried
  std::string by_model;           ///< the option that a plan takes without a database
  std::string taken;              ///< that it takes with this one
};

struct TuneResult {
  std::string target;           ///< "A100", "sm_90a"
  std::string device;           ///< whose times these are: a model's or a GPU's name
  std::string toolchain;        ///< "NVRTC 13.0"
  bool measured = false;        ///< else estimated
  bool complete = false;        ///< the budget sufficed
  bool batch_invariant = true;  ///< PassConfig::batch_invariant
  /// None of kernels that wait for peers where times are measured.
  std::vector<TunedChoice> choices;
  std::vector<TunedKernel> kernels;  ///< of the plan with the options that were taken
};

/// Looks for the quickest of each choice of the graph's plan, and for a quicker configuration of
/// each kernel. Every trial is in the database as soon as it is over, and what is
/// best by then serves (WorldOptions::tune_db). What is chosen does not change a result's bits,
/// unless PassConfig::batch_invariant is off, which lets it change the order of a sum. Throws
/// kInvalidArgument for options, kEnvironment where something is missing on this machine or the
/// database cannot be written.
[[nodiscard]] BRAID_API TuneResult tune(const Graph& graph, const TuneOptions& options);

}  // namespace braid
