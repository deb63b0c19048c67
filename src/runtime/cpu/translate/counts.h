#pragma once

#include <vector>

#include "runtime/cpu/translate/addresses.h"

// What counted kernels add to tallies.

namespace braid::cpu {

void count_block(Emitter& e, int block);
/// Called at the end of a block, if `lanes` go another way than the others.
void count_parting(Emitter& e, int block, Value* lanes);
std::uint32_t count_place(Emitter& e);
void count_barrier(Emitter& e);
/// Counts an access by `lanes`.
void count_access(Emitter& e, Address& address, AccessCode code, Value* lanes);
/// By instruction: loads of shared memory that ptxas joins: neighbouring words of one address
/// register, in one block, with nothing between them that writes the register or waits or stores.
/// Those of 16 bytes from a multiple of 16 on, as offsets go; whether the register is one, too, is
/// known when it runs.
std::vector<JoinedLoad> find_joined_loads(const ptx::Function& function, const ControlFlow& flow);

}  // namespace braid::cpu
