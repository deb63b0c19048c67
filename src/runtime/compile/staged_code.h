#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>
#include <vector>

#include "lowering/plan/program.h"
#include "lowering/plan/variants.h"
#include "runtime/compile/compile_program.h"
#include "runtime/worker_processes.h"

namespace braid {

/// The code of a program whose variants a thread compiles one after the other. Any thread may ask
/// for it.
class StagedCode {
 public:
  /// What they are compiled with. All is used in that thread, too.
  struct Tools {
    CompileTools compile;                                            ///< without workers and stop
    std::function<std::unique_ptr<WorkerProcesses>()> make_workers;  ///< for one variant
    std::function<void(const CompiledKernel& kernel)> told;          ///< of each once
  };

  /// Nothing is left to do.
  StagedCode(const Program& program, ProgramCode code);
  /// Compiles the first variant, and then has the thread do the others.
  StagedCode(const Program& program, Tools tools);
  StagedCode(const StagedCode&) = delete;
  StagedCode& operator=(const StagedCode&) = delete;
  /// Ends what is under way, after the kernel that this process compiles.
  ~StagedCode() = default;

  /// Whether wait() would return or throw at once.
  [[nodiscard]] bool is_done(std::size_t variant) const;
  /// Has this variant compiled before others, and waits. Its kernels are in the result then, and
  /// stay as they are. Throws why they are not.
  const ProgramCode& wait(std::size_t variant) const;
  /// Waits for all variants.
  [[nodiscard]] const ProgramCode& all() const;

 private:
  enum class State : std::uint8_t { kPending, kThere, kFailed };

  void work(const std::stop_token& stop);
  [[nodiscard]] std::optional<std::size_t> next() const;
  void compile(std::size_t variant, const std::stop_token& stop);

  const Program& program_;
  std::vector<Variant> variants_;
  Tools tools_;
  ProgramCode code_;
  std::vector<bool> there_;   ///< of each source; the compiling thread's
  std::size_t done_ = 0;      ///< of them; likewise
  std::exception_ptr ended_;  ///< what `progress` threw; likewise
  mutable std::mutex mutex_;  ///< held for what follows
  mutable std::condition_variable changed_;
  mutable std::optional<std::size_t> wanted_;
  std::vector<State> states_;                 ///< of each variant
  std::vector<std::exception_ptr> failures_;  ///< likewise
  std::jthread thread_;                       ///< ends first
};

}  // namespace braid
