#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

#include "braid/device.h"
#include "ir/non_copyable.h"
#include "runtime/compile/staged_code.h"

namespace braid {

/// A program and its code, loaded on the ranks of this process. Executables in several threads
/// share it.
class LoadedProgram : NonCopyable {
 public:
  LoadedProgram(Device& device, std::vector<int> ranks, Program program, ProgramCode code);
  /// Compiles printed variants one after the other in a thread, and loads each when it is asked
  /// for: not in that thread, where a driver may refuse it during a capture.
  LoadedProgram(Device& device, std::vector<int> ranks, Program program, ProgramCode code,
                StagedCode::Tools tools);

  [[nodiscard]] const Program& program() const { return program_; }
  /// Waits for all code.
  [[nodiscard]] const ProgramCode& code() const { return code_.all(); }
  /// Whether load() returns without waiting for a compile.
  [[nodiscard]] bool is_compiled(std::size_t variant) const { return code_.is_done(variant); }
  /// Waits for the code of a variant, and loads the kernels not yet loaded.
  void load(std::size_t variant) const;
  /// For each kernel of the program, on ranks[local]; null if its variant is not loaded.
  [[nodiscard]] std::vector<Function*> functions(std::size_t local) const;

 private:
  void make_room();

  Device& device_;
  std::vector<int> ranks_;
  Program program_;
  StagedCode code_;
  std::vector<IndexRange> kernels_;                                    ///< for each variant
  mutable std::mutex mutex_;                                           ///< guards the following
                                                                       ///< members
  mutable std::vector<bool> loaded_;                                   ///< for each variant
  mutable std::vector<std::vector<std::unique_ptr<Module>>> modules_;  ///< by rank and source
  mutable std::vector<std::vector<Function*>> functions_;              ///< by rank
};

}  // namespace braid
