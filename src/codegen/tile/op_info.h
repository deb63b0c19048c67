#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "codegen/tile/tile.h"

namespace braid::tile {

/// What the text form and the verifier need to know of an operation; a table, one entry each.
struct OpInfo {
  Op op;
  std::string_view name;
  int min_args;
  int max_args;     ///< -1: any number
  bool has_result;  ///< it names a value
  bool has_dtype;   ///< written behind the name: load.bf16
  bool has_index;   ///< written before the operands: range 1
};

/// Of a kMap, what holds for the operation; the name is that of its function.
const OpInfo& op_info(Op op);
/// Whether it is needed though nobody uses its result. A wait is, for packets too: what comes after
/// it may overwrite what the peer read before it sent them.
inline bool has_effect(Op op) { return !op_info(op).has_result || op == Op::kLlLoad; }
/// Whether it stores its operand 2, a value in registers.
inline bool stores_value(Op op) {
  return op == Op::kStore || op == Op::kLlStore || op == Op::kMultimemStore ||
         op == Op::kStoreShared;
}
/// Whether it accesses all ranks at once.
inline bool is_multimem(Op op) { return op == Op::kMultimemReduce || op == Op::kMultimemStore; }
/// Whether it exists in kernels of a group alone.
inline bool communicates(Op op) {
  return op == Op::kSignal || op == Op::kWait || op == Op::kEpoch || op == Op::kLlStore ||
         op == Op::kLlLoad || is_multimem(op);
}
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
