#include "braid/counts.h"

#include <numeric>

namespace braid {

std::string_view instruction_class_name(InstructionClass instruction_class) {
  constexpr std::array<std::string_view, kInstructionClasses> kNames = {
      "integer", "float", "matrix", "convert", "move", "memory", "warp", "sync", "control"};
  return kNames[static_cast<std::size_t>(instruction_class)];
}

Counts& Counts::operator+=(const Counts& other) {
  for (std::size_t i = 0; i < kInstructionClasses; ++i) instructions[i] += other.instructions[i];
  lanes += other.lanes;
  global_requests += other.global_requests;
  global_sectors += other.global_sectors;
  global_bytes += other.global_bytes;
  peer_bytes += other.peer_bytes;
  global_wavefronts += other.global_wavefronts;
  shared_requests += other.shared_requests;
  shared_wavefronts += other.shared_wavefronts;
  bank_conflicts += other.bank_conflicts;
  issued_shared_requests += other.issued_shared_requests;
  issued_shared_wavefronts += other.issued_shared_wavefronts;
  atomics += other.atomics;
  branches += other.branches;
  divergent_branches += other.divergent_branches;
  barriers += other.barriers;
  mma_flops += other.mma_flops;
  return *this;
}

std::uint64_t Counts::total_instructions() const {
  return std::accumulate(instructions.begin(), instructions.end(), std::uint64_t{0});
}

}  // namespace braid
