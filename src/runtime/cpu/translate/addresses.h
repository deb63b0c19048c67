#pragma once

#include <vector>

#include "runtime/cpu/run/warp_context.h"
#include "runtime/cpu/translate/emitter.h"

// Addresses of memory operands, and what the sanitizer and the counter hear of accesses.

namespace braid::cpu {

/// Where the lanes of a warp access memory.
struct Address {
  ptx::Space space = ptx::Space::kGeneric;
  bool table = false;
  Value* base = nullptr;     ///< i64, with `table` or `offsets`
  Shape shape;               ///< with `table`
  Value* offsets = nullptr;  ///< <32 x i32>: the lanes' offsets from `base` in shared memory
  Value* lanes = nullptr;    ///< <32 x i64>, made when needed
};

/// What a load or store does there.
struct MemoryAccess {
  ptx::Space space = ptx::Space::kGeneric;
  ptx::Type type;
  unsigned count = 1;
  bool strong = false;
  std::uint8_t scope = 0;  ///< as AccessCode::scope
  llvm::AtomicOrdering ordering = llvm::AtomicOrdering::Monotonic;
};

/// The values of a store, as Sanitizer::Values, where they are known.
struct Stored {
  Value* start = nullptr;
  unsigned bytes = 0, count = 0;
};

/// The host addresses of a memory operand.
Address address(Emitter& e, const Instruction& i, const Operand& operand, ptx::Space space);
/// The whole of an address in local memory or in the parameters, by its low 32 bits.
Value* whole_address(Emitter& e, Value* low, ptx::Space space);
Value* address_lanes(Emitter& e, Address& address);
/// Puts the addresses of the lanes in scratch memory for a helper that takes its time with each:
/// those that are known but for their base by a call, which is less code than vectors of them.
Value* address_pointer(Emitter& e, Address& address);
/// The place of 32 words with the lanes' offsets from the base of a shared-memory address.
Value* address_offsets(Emitter& e, Address& address, unsigned scratch_index);
/// The encoding of AccessCode::scope; a strong access without a scope has system scope.
std::uint8_t scope_of(const Choices& mods);
/// Tells the sanitizer and the counter what the active lanes, or `lanes`, are about to do.
/// `values`: what the sanitizer hears of those of a store.
void check(Emitter& e, Address& address, AccessCode code, Value* lanes = nullptr,
           const Stored& values = {});
/// The sanitizer's part of check().
void judge(Emitter& e, Address& address, AccessCode code, Value* lanes, const Stored& values = {});
/// As check() for a store, with its values.
void check_store(Emitter& e, Address& address, const MemoryAccess& access,
                 llvm::ArrayRef<Operand> sources);
MemoryAccess parse_access(const Instruction& i);
bool is_consecutive(const Shape& shape, unsigned bytes);
/// The elements of a vector operand. Braces are optional for a single element.
std::vector<ptx::Operand> elements_of(const Instruction& i, const Operand& operand,
                                      std::size_t count);
/// Fills a wider register from a loaded value by the sign of the loaded type.
Value* extended(Emitter& e, const Operand& result, Value* value, ptx::Type type);
Value* call_first_active(Emitter& e, Value* lanes);
/// The address of an mbarrier, in the space that the modifiers name.
Address barrier_address(Emitter& e, const Instruction& i, const Operand& operand);
/// cvta of pointers that may be to the shared memory of other blocks, from generic addresses to
/// those of shared memory or back.
Value* cluster_pointer(Emitter& e, Value* lanes, bool to_shared);
/// The host address that lane `lane` gives.
Value* row_pointer(Emitter& e, Address& address, unsigned lane);
/// As check() for a load, except of parameters.
void check_load(Emitter& e, Address& address, const MemoryAccess& access,
                llvm::ArrayRef<Operand> results);
void write_loaded(Emitter& e, const Operand& result, Value* value, ptx::Type type);

}  // namespace braid::cpu
