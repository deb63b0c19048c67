#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "codegen/tile/tile.h"

namespace braid::tile {

/// The properties of an operation, from tile/ops.inc.
struct OpInfo {
  Op op;
  std::string_view name;  ///< a kMap uses its function's name
  int min_args;
  int max_args;             ///< -1: any number
  bool has_result = false;  ///< it names a value
  bool has_dtype = false;   ///< written behind the name: load.bf16
  bool has_index = false;   ///< written before the operands: range 1
  bool has_body = false;    ///< instructions of its own

  bool pure = false;             ///< its result depends only on its operands, so equal ones can be
                                 ///< merged
  bool repeatable = false;       ///< not pure, but may be executed for a later iteration
  bool reads = false;            ///< it reads memory that all blocks see
  bool writes = false;           ///< it writes such memory
  bool fills_shared = false;     ///< writes tiles in shared memory
  bool signals = false;          ///< signals peers by flags, or other blocks
  bool waits = false;            ///< waits for data or flags from peers, or for other blocks
  bool needs_all_warps = false;  ///< contains, or may contain, a block barrier
  bool communicates = false;     ///< exists only in kernels of a group
  bool multiplies = false;       ///< it is a product of tiles args[0] and args[1]
  bool packets = false;          ///< it moves packets
  bool multimem = false;         ///< accesses all ranks at once
  bool leads_to_arena = false;   ///< its result is an address in the arena of a rank, or of all
  bool inlines = false;          ///< a map used only by it may be inlined into its text
  bool stays = false;            ///< nobody changes its result's registers while it is live

  unsigned may_be_none = 0;  ///< operands, a bit each
  int condition = -1;        ///< the operand without which it always happens
  int pointer = -1;          ///< the operand that says where in memory
  int elements = -1;         ///< the first operand that meets its elements; scalars may follow
  int value = -1;            ///< the operand that it stores, from registers

  bool in_role = false;  ///< it exists in roles alone
};

const OpInfo& op_info(Op op);
/// All operations, in the order of the enumerators.
std::span<const OpInfo> op_infos();
/// Whether the operation is live even if its result is unused. A wait is, also for packets: later
/// instructions may overwrite what the peer read before it sent them.
inline bool has_effect(Op op) { return !op_info(op).has_result || op_info(op).waits; }
std::optional<Op> op_named(std::string_view name);

std::string_view fn_name(Fn fn);
std::optional<Fn> fn_named(std::string_view name);
int fn_operands(Fn fn);
/// Whether it rounds to a dtype, written behind the name: round.bf16.
inline bool fn_has_dtype(Fn fn) { return fn == Fn::kSaturate || fn == Fn::kRound; }

std::string_view kind_name(Kind kind);
/// The text of a type: "f32[16, 64]", "i64".
std::string type_text(const Type& type);
std::optional<Kind> kind_named(std::string_view name);
inline bool is_integer(Kind kind) { return kind == Kind::kI32 || kind == Kind::kI64; }

std::string_view change_name(LayoutChange change);
std::optional<LayoutChange> change_named(std::string_view name);

}  // namespace braid::tile
