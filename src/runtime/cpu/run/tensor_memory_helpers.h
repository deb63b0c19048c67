#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/cpu/run/shared_matrix.h"
#include "runtime/cpu/run/tensor_memory.h"
#include "runtime/cpu/run/warp_helpers.h"

// What the helpers of tcgen05 have in common.

namespace braid::cpu {

/// Ends the kernel with this message; `kind` is a finding's kind.
[[noreturn]] void refuse_tensor(Warp& warp, const char* kind, std::string message,
                                std::uint32_t line);
/// The blocks that an instruction works on: the warp's own or, with cta_group::2, both of its pair.
struct TensorPair {
  std::uint32_t first, blocks;
  TensorPair(Warp& warp, bool both, std::uint32_t line);
};
/// Refuses columns that nobody has allocated. `what`: is there.
void check_columns(Warp& warp, const TensorMemory& memory, std::string_view what,
                   std::uint32_t first, std::uint32_t columns, std::uint32_t line);
/// Tells the sanitizer, behind start_tensor(), of an access to neighbouring lanes of a column.
void check_tensor_lanes(Warp& warp, const TensorMemory& memory, std::uint32_t lane,
                        std::uint32_t column, std::uint32_t lanes, AccessCode::Kind kind,
                        std::uint32_t line);
/// The matrix of a descriptor, of which rows of `parts` 16 bytes are used. Refuses a bad one.
SharedMatrix tensor_matrix(Warp& warp, std::string_view name, std::uint64_t descriptor,
                           bool exchanged, std::uint32_t parts, std::uint32_t line);
/// Refuses an address (MatrixReader::outside) that is not 0.
void check_tensor_inside(Warp& warp, std::string_view name, std::uint32_t outside,
                         std::uint32_t line);

}  // namespace braid::cpu
