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

/// Options of tune() (docs/tuning.md).
struct TuneOptions {
  PassConfig passes;
  /// cuda: time kernels on a GPU. cpu: count what they do on this machine and estimate their times
  /// on the device of `target`.
  DeviceKind device = DeviceKind::kAny;
  std::string target;    ///< as WorldOptions::target
  std::string database;  ///< path of a file, created where missing
  /// Do not repeat trials that the database holds.
  bool resume = false;
  /// Try every candidate, instead of the most promising tenth.
  bool exhaustive = false;
  double budget_s = 60;   ///< seconds after which no new trial begins
  Bindings bindings;      ///< symbol values; other symbols take their maximum
  std::string cache_dir;  ///< "" means the default one
  /// Command that starts a process to compile and count: the path of `braid-worker`. One process
  /// per core runs, eight at most. Empty: everything is done in this process.
  std::vector<std::string> worker;
  /// Called for each kernel and each trial. An exception from it leaves tune().
  std::function<void(std::size_t kernel, std::size_t kernels, std::string_view what)> progress;
};

/// A configuration of a kernel and its measured or estimated time.
struct TunedConfig {
  std::map<std::string, std::int64_t> config;
  double ns = 0;        ///< of one launch
  std::string limiter;  ///< for an estimate: what limits the time, as in KernelEstimate
};

struct TunedKernel {
  std::string name;  ///< the entry's name
  std::string template_name;
  std::string ops;      ///< "mm+silu"
  int launches = 0;     ///< launches per run
  std::string symbols;  ///< symbol values of the trials, "T=128"
  std::string serves;   ///< symbol values at which plans use the result, "T from 17 to 256 by 8"
  /// Why the kernel was not tuned ("it waits for peers, ..."); else empty.
  std::string remark;
  std::size_t candidates = 0;
  std::size_t tried = 0;          ///< including those from the database
  std::size_t from_database = 0;  ///< those of `tried` taken from the database
  std::size_t failed = 0;         ///< those of `tried` that failed, for example because registers
                                  ///< spill
  /// Set where the kernel was tried and runs.
  std::optional<TunedConfig> by_default, best;
};

/// One way in which a plan can compute something. Its kernels are each tried alone, in their
/// default configuration.
struct TunedOption {
  std::string name;          ///< "two_shot", "4 parts"
  std::optional<double> ns;  ///< sum over its kernels; nothing where one was not tried or cannot
                             ///< run
  std::string limiter;       ///< of its slowest kernel, as TunedConfig::limiter
};

/// A decision that trials make for the whole graph before the kernels are tuned: the algorithm of
/// an all-reduce or, where PassConfig::batch_invariant is off, the number of parts of a matmul.
struct TunedChoice {
  std::string op;        ///< "all_reduce", "mm"
  std::string operands;  ///< their types, such as "bf16[T, 2048]"
  std::int64_t ranks = 1;
  std::string symbols;  ///< as TunedKernel::symbols
  std::string serves;   ///< as TunedKernel::serves
  std::vector<TunedOption> options;
  std::size_t tried = 0;          ///< kernels of the options, including those from the database
  std::size_t from_database = 0;  ///< those of `tried` taken from the database
  std::string by_model;           ///< the option that a plan takes without a database
  std::string taken;              ///< the option that a plan takes with this one
};

struct TuneResult {
  std::string target;           ///< "A100", "sm_90a"
  std::string device;           ///< name of the device that the times are for
  std::string toolchain;        ///< "NVRTC 13.0"
  bool measured = false;        ///< false: times are estimated
  bool complete = false;        ///< all trials fit the budget
  bool batch_invariant = true;  ///< PassConfig::batch_invariant
  /// Empty for kernels that wait for peers when times are measured.
  std::vector<TunedChoice> choices;
  std::vector<TunedKernel> kernels;  ///< kernels of the plan with the options taken
};

/// Finds the fastest option of each choice in the graph's plan, then a faster configuration of each
/// kernel. Every trial is written to the database as soon as it is over; plans use the best result
/// so far (WorldOptions::tune_db). The choice never changes a result's bits, unless
/// PassConfig::batch_invariant is off, which permits another order of summation. Throws
/// kInvalidArgument for bad options, kEnvironment where something is missing on this machine or the
/// database cannot be written.
[[nodiscard]] BRAID_API TuneResult tune(const Graph& graph, const TuneOptions& options);

}  // namespace braid
