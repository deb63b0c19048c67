#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "braid/device.h"
#include "runtime/compile/compile_program.h"

namespace braid {

/// A program and its code, loaded on the ranks that live here. It does not change, and executables
/// share it.
class LoadedProgram {
 public:
  LoadedProgram(Device& device, std::span<const int> ranks, Program program, ProgramCode code);
  LoadedProgram(const LoadedProgram&) = delete;
  LoadedProgram& operator=(const LoadedProgram&) = delete;

  [[nodiscard]] const Program& program() const { return program_; }
  [[nodiscard]] const ProgramCode& code() const { return code_; }
  /// Of each kernel of the program, on ranks[local].
  [[nodiscard]] std::span<Function* const> functions(std::size_t local) const {
    return functions_[local];
  }

 private:
  Program program_;
  ProgramCode code_;
  std::vector<std::unique_ptr<Module>> modules_;   ///< of each source on each rank
  std::vector<std::vector<Function*>> functions_;  ///< by rank
};

}  // namespace braid
