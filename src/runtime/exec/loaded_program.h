#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

#include "braid/device.h"
#include "runtime/compile/staged_code.h"

namespace braid {

/// A program and its code, loaded on the ranks that live here. Executables share it, in several
/// threads.
class LoadedProgram {
 public:
  /// Loads all.
  LoadedProgram(Device& device, std::vector<int> ranks, Program program, ProgramCode code);
  /// Its variants are compiled one after the other, and loaded when they are asked for: not in that
  /// thread, as a driver may refuse it where somebody is capturing.
  LoadedProgram(Device& device, std::vector<int> ranks, Program program, StagedCode::Tools tools);
  LoadedProgram(const LoadedProgram&) = delete;
  LoadedProgram& operator=(const LoadedProgram&) = delete;

  [[nodiscard]] const Program& program() const { return program_; }
  /// All of it, for which it waits.
  [[nodiscard]] const ProgramCode& code() const { return code_.all(); }
  /// Whether load() need not wait for a compile.
  [[nodiscard]] bool is_compiled(std::size_t variant) const { return code_.is_done(variant); }
  /// Waits for the code of a variant, and loads what is not loaded yet.
  void load(std::size_t variant) const;
  /// Of each kernel of the program, on ranks[local]; null where its variant is not loaded.
  [[nodiscard]] std::vector<Function*> functions(std::size_t local) const;

 private:
  void make_room();

  Device& device_;
  std::vector<int> ranks_;
  Program program_;
  StagedCode code_;
  std::vector<IndexRange> kernels_;                                    ///< of each variant
  mutable std::mutex mutex_;                                           ///< held for what follows
  mutable std::vector<bool> loaded_;                                   ///< each variant
  mutable std::vector<std::vector<std::unique_ptr<Module>>> modules_;  ///< by rank and source
  mutable std::vector<std::vector<Function*>> functions_;              ///< by rank
};

}  // namespace braid
