#include "codegen/tile/op_info.h"

#include <fmt/format.h>

#include "braid/error.h"

namespace braid::tile {
namespace {

constexpr OpInfo kOps[] = {
#define BRAID_TILE_OP(Name, text, least, most, ...) \
  {.op = Op::k##Name, .name = #text, .min_args = least, .max_args = most, __VA_ARGS__},
#include "codegen/tile/ops.inc"
#undef BRAID_TILE_OP
};

struct FnInfo {
  Fn fn;
  std::string_view name;
  int operands;
};
constexpr FnInfo kFns[] = {
    {Fn::kAdd, "add", 2},
    {Fn::kSub, "sub", 2},
    {Fn::kMul, "mul", 2},
    {Fn::kDiv, "div", 2},
    {Fn::kRem, "rem", 2},
    {Fn::kNeg, "neg", 1},
    {Fn::kAbs, "abs", 1},
    {Fn::kWrapAdd, "wrap_add", 2},
    {Fn::kWrapSub, "wrap_sub", 2},
    {Fn::kWrapMul, "wrap_mul", 2},
    {Fn::kWrapNeg, "wrap_neg", 1},
    {Fn::kBitAnd, "bit_and", 2},
    {Fn::kBitOr, "bit_or", 2},
    {Fn::kBitXor, "bit_xor", 2},
    {Fn::kShiftLeft, "shift_left", 2},
    {Fn::kShiftRight, "shift_right", 2},
    {Fn::kMin, "min", 2},
    {Fn::kMax, "max", 2},
    {Fn::kExp2, "exp2", 1},
    {Fn::kFma, "fma", 3},
#define BRAID_UNARY(Name, name, value, cuda) {Fn::k##Name, #name, 1},
#define BRAID_BINARY(Name, name, value, cuda) {Fn::k##Name, #name, 2},
    BRAID_SCALAR_FUNCTIONS(BRAID_UNARY, BRAID_BINARY)
#undef BRAID_UNARY
#undef BRAID_BINARY
        {Fn::kLt, "lt", 2},
    {Fn::kEq, "eq", 2},
    {Fn::kAnd, "and", 2},
    {Fn::kNot, "not", 1},
    {Fn::kSelect, "select", 3},
    {Fn::kToI32, "to_i32", 1},
    {Fn::kToI64, "to_i64", 1},
    {Fn::kToF32, "to_f32", 1},
    {Fn::kAsF32, "as_f32", 1},
    {Fn::kSaturate, "saturate", 1},
    {Fn::kRound, "round", 1},
};

struct KindName {
  Kind kind;
  std::string_view name;
};
constexpr KindName kKinds[] = {
    {Kind::kF32, "f32"}, {Kind::kI32, "i32"},       {Kind::kI64, "i64"},   {Kind::kPred, "pred"},
    {Kind::kPtr, "ptr"}, {Kind::kShared, "shared"}, {Kind::kRing, "ring"}, {Kind::kSums, "sums"}};

struct ChangeName {
  LayoutChange change;
  std::string_view name;
};
constexpr ChangeName kChanges[] = {{LayoutChange::kNone, "none"},
                                   {LayoutChange::kRegisters, "registers"},
                                   {LayoutChange::kShuffle, "shuffle"},
                                   {LayoutChange::kShared, "shared"}};

template <class Table, class Test>
const auto* find(const Table& table, const Test& test) {
  for (const auto& entry : table) {
    if (test(entry)) return &entry;
  }
  return static_cast<decltype(&table[0])>(nullptr);
}

template <class Entry>
const Entry& known(const Entry* entry) {
  if (entry == nullptr) throw_internal("tile", "a name is missing from the table");
  return *entry;
}

}  // namespace

const OpInfo& op_info(Op op) { return kOps[static_cast<std::size_t>(op)]; }
std::span<const OpInfo> op_infos() { return kOps; }
std::optional<Op> op_named(std::string_view name) {
  const auto* x = find(kOps, [&](const OpInfo& y) { return y.name == name; });
  return x == nullptr ? std::nullopt : std::optional(x->op);
}

std::string_view fn_name(Fn fn) {
  return known(find(kFns, [&](const FnInfo& x) { return x.fn == fn; })).name;
}
int fn_operands(Fn fn) {
  return known(find(kFns, [&](const FnInfo& x) { return x.fn == fn; })).operands;
}
std::optional<Fn> fn_named(std::string_view name) {
  const auto* x = find(kFns, [&](const FnInfo& y) { return y.name == name; });
  return x == nullptr ? std::nullopt : std::optional(x->fn);
}

std::string_view kind_name(Kind kind) {
  return known(find(kKinds, [&](const KindName& x) { return x.kind == kind; })).name;
}
std::string type_text(const Type& type) {
  std::string text(kind_name(type.kind));
  if (!type.is_scalar()) text += fmt::format("[{}, {}]", type.rows, type.cols);
  return text;
}
std::optional<Kind> kind_named(std::string_view name) {
  const auto* x = find(kKinds, [&](const KindName& y) { return y.name == name; });
  return x == nullptr ? std::nullopt : std::optional(x->kind);
}

std::string_view change_name(LayoutChange change) {
  return known(find(kChanges, [&](const ChangeName& x) { return x.change == change; })).name;
}
std::optional<LayoutChange> change_named(std::string_view name) {
  const auto* x = find(kChanges, [&](const ChangeName& y) { return y.name == name; });
  return x == nullptr ? std::nullopt : std::optional(x->change);
}

}  // namespace braid::tile
