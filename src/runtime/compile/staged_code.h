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

#include "ir/non_copyable.h"
#include "lowering/plan/program.h"
#include "lowering/plan/variants.h"
#include "runtime/compile/compile_program.h"
#include "runtime/worker_processes.h"

namespace braid {

/// The code of a program whose variants a thread compiles one after the other. Thread safe.
class StagedCode : NonCopyable {
 public:
  /// What the variants are compiled with; the thread uses it too.
  struct Tools {
    CompileTools compile;                                            ///< without workers and stop
    std::function<std::unique_ptr<WorkerProcesses>()> make_workers;  ///< for one variant
    std::function<void(const CompiledKernel& kernel)> told;          ///< called once for each
                                                                     ///< kernel
  };

  /// For a program that is compiled already.
  StagedCode(const Program& program, ProgramCode code);
  /// For one that is printed: compiles the first variant, then starts the thread for the others.
  StagedCode(const Program& program, ProgramCode code, Tools tools);
  /// Stops the thread, once the kernel that this process compiles is done.
  ~StagedCode() = default;

  /// Whether wait() would return or throw immediately.
  [[nodiscard]] bool is_done(std::size_t variant) const;
  /// Moves this variant to the front and waits for it. The result then has its kernels, which do
  /// not change any more. Throws if one does not compile.
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
  std::vector<bool> there_;   ///< for each source; used by the thread alone
  std::size_t done_ = 0;      ///< number of these; likewise
  std::exception_ptr ended_;  ///< exception of `progress`; likewise
  mutable std::mutex mutex_;  ///< guards the following members
  mutable std::condition_variable changed_;
  mutable std::optional<std::size_t> wanted_;
  std::vector<State> states_;                 ///< for each variant
  std::vector<std::exception_ptr> failures_;  ///< likewise
  std::jthread thread_;                       ///< destroyed first
};

}  // namespace braid
