#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "braid/pass_config.h"
#include "cli/common.h"

// The commands of `braid`: what each is asked, and the function that does it. They return the exit
// code and throw braid::Error. Their options are described in command_line.cpp.

namespace braid::cli {

struct RunOptions {
  GraphOptions graph;
  PassConfig passes;
  std::string device, target, tune_db;
  std::string inputs, outputs, cache_dir, trace;
  std::vector<std::string> bind;
  CheckOptions checks;
  bool check = false, json = false;
};
[[nodiscard]] int run(const RunOptions& options);

struct LaunchOptions {
  int processes = 0;
  double timeout_s = 30;
  std::vector<std::string> command;
};
[[nodiscard]] int launch(const LaunchOptions& options);

struct CompileOptions {
  GraphOptions graph;
  PassConfig passes;
  std::string target, output, cache_dir, tune_db;
  int jobs = 1;  ///< processes
  bool json = false;
};
[[nodiscard]] int compile(const CompileOptions& options);

/// The name under which the plan is the last of the passes.
inline constexpr std::string_view kBuildProgram = "build_program";

struct OptOptions {
  GraphOptions graph;
  PassConfig config;
  std::vector<std::string> passes;
  std::string output = "-";
  std::string target;
  bool stats = false, visualize_overlap = false;
};
[[nodiscard]] int opt(const OptOptions& options);

struct ExplainOptions {
  GraphOptions graph;
  PassConfig passes;
  std::string target, tune_db;
  bool json = false;
};
[[nodiscard]] int explain(const ExplainOptions& options);

struct TuneCommandOptions {
  GraphOptions graph;
  PassConfig passes;
  std::string device, target, cache_dir, output;
  std::string budget = "60s";
  std::string database = "tune.db";
  std::vector<std::string> bind;
  bool resume = false, exhaustive = false, json = false;
};
[[nodiscard]] int tune(const TuneCommandOptions& options);

struct ReportOptions {
  GraphOptions graph;
  PassConfig passes;
  std::string target, output, cache_dir;
  std::string count;  ///< the device that kernels are counted for; "": none is run
  std::vector<std::string> bind;
};
[[nodiscard]] int report(const ReportOptions& options);

struct PlanBuffersOptions {
  std::string path;
  std::string output = "-";
  std::int64_t capacity = 0;
  std::optional<double> time_limit_s;  ///< else so many nodes
};
[[nodiscard]] int plan_buffers(const PlanBuffersOptions& options);

/// A kernel to compare with; what is not said of its launch is as in the other's.
struct PtxAgainst {
  std::string file, entry, grid, block;
  std::optional<std::uint32_t> shared;
};

struct PtxOptions {
  std::string file, entry, grid = "1", block = "1", cluster = "1", output, cache_dir;
  std::vector<std::string> args;
  std::uint32_t shared = 0;
  std::uint32_t repeat = 1;  ///< launches
  bool time = false;         ///< each of them
  double timeout_s = 0;      ///< until the kernel is given up; 0: never
  std::string target;  ///< of a .cu file; empty: of the device of --count, else the default one
  PtxAgainst against;
  CheckOptions checks;
  bool json = false;
};
[[nodiscard]] int ptx(const PtxOptions& options);

struct CacheOptions {
  std::string cache_dir;
  std::uint64_t max_mib = 0;  ///< what prune leaves
  bool json = false;
};
[[nodiscard]] int cache_ls(const CacheOptions& options);
[[nodiscard]] int cache_verify(const CacheOptions& options);
[[nodiscard]] int cache_prune(const CacheOptions& options);

struct DoctorOptions {
  std::string cache_dir;
  bool json = false;
};
[[nodiscard]] int doctor(const DoctorOptions& options);

}  // namespace braid::cli
