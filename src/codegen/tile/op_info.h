#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "codegen/tile/tile.h"

namespace braid::tile {

/// What is known of an operation: its entry in tile/ops.inc.
struct OpInfo {
  Op op;
  std::string_view name;  ///< a kMap goes by that of its function
  int min_args;
  int max_args;             ///< -1: any number
  bool has_result = false;  ///< it names a value
  bool has_dtype = false;   ///< written behind the name: load.bf16
  bool has_index = false;   ///< written before the operands: range 1
  bool has_body = false;    ///< instructions of its own

  bool pure = false;             ///< its result follows from its operands: equal ones may be one
  bool repeatable = false;       ///< not pure, but may as well be made for a later iteration
  bool reads = false;            ///< memory that all blocks see
  bool writes = false;           ///< such memory
  bool fills_shared = false;     ///< writes tiles in shared memory
  bool signals = false;          ///< peers by flags
  bool waits = false;            ///< for what peers send
  bool needs_all_warps = false;  ///< it has, or may have, a block barrier
  bool communicates = false;     ///< it exists in kernels of a group alone
  bool packets = false;          ///< it moves packets
  bool multimem = false;         ///< it accesses all ranks at once
  bool leads_to_arena = false;   ///< its result is an address in the arena of a rank, or of all
  bool inlines = false;          ///< a map that it alone uses may stand in its text
  bool stays = false;            ///< nobody changes its result's registers while it is used

  unsigned may_be_none = 0;  ///< operands, a bit each
  int condition = -1;        ///< the operand without which it always happens
  int pointer = -1;          ///< the operand that says where in memory
  int elements = -1;         ///< the first operand that meets its elements; scalars may follow
  int value = -1;            ///< the operand that it stores, from registers

  bool in_role = false;  ///< it exists in roles alone
};

const OpInfo& op_info(Op op);
/// All, in the order of the enumerators.
std::span<const OpInfo> op_infos();
/// Whether it is needed though nobody uses its result. A wait is, for packets too: what comes after
/// it may overwrite what the peer read before it sent them.
inline bool has_effect(Op op) { return !op_info(op).has_result || op_info(op).waits; }
std::optional<Op> op_named(std::string_view name);

std::string_view fn_name(Fn fn);
std::optional<Fn> fn_named(std::string_view name);
/// The number of its operands.
int fn_operands(Fn fn);
/// Whether it rounds to a dtype, written behind the name: round.bf16.
inline bool fn_has_dtype(Fn fn) { return fn == Fn::kSaturate || fn == Fn::kRound; }

std::string_view kind_name(Kind kind);
/// "f32[16, 64]", "i64".
std::string type_text(const Type& type);
std::optional<Kind> kind_named(std::string_view name);
inline bool is_integer(Kind kind) { return kind == Kind::kI32 || kind == Kind::kI64; }

std::string_view change_name(LayoutChange change);
std::optional<LayoutChange> change_named(std::string_view name);

}  // namespace braid::tile
