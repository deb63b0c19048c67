#include "codegen/tile/op_info.h"

#include <fmt/format.h>

#include "braid/error.h"

namespace braid::tile {
namespace {

constexpr OpInfo kOps[] = {
    {Op::kParam, "param", 0, 0, true, false, true},
    {Op::kConstant, "constant", 0, 0, true, false, false},
    {Op::kProgramId, "program_id", 0, 0, true, false, false},
    {Op::kNumPrograms, "num_programs", 0, 0, true, false, false},
    {Op::kEpoch, "epoch", 0, 0, true, false, false},
    {Op::kRange, "range", 0, 0, true, false, true},
    {Op::kMap, "map", 1, 3, true, false, false},
    {Op::kPtrAdd, "ptr_add", 2, 2, true, false, false},
    {Op::kMulticast, "multicast", 1, 1, true, false, false},
    {Op::kPeer, "peer", 2, 2, true, false, false},
    {Op::kLoad, "load", 2, 3, true, true, false},
    {Op::kStore, "store", 3, 4, false, true, false},
    {Op::kLoadTile, "load_tile", 6, 6, true, true, false},
    {Op::kStoreTile, "store_tile", 7, 7, false, true, false},
    {Op::kCheckIndex, "check_index", 2, 3, false, false, true},
    {Op::kReduce, "reduce", 1, 1, true, false, false},
    {Op::kDot, "dot", 3, 5, true, true, false},
    {Op::kFor, "for", 3, -1, false, false, false},
    {Op::kForArg, "for_arg", 0, 1, true, false, true},
    {Op::kForResult, "result", 1, 1, true, false, true},
    {Op::kAllocShared, "alloc_shared", 0, 0, true, true, false},
    {Op::kCopyToShared, "copy_to_shared", 6, 6, false, true, false},
    {Op::kStoreShared, "store_shared", 3, 3, false, true, false},
    {Op::kCommitGroup, "commit_group", 0, 0, false, false, false},
    {Op::kWaitGroup, "wait_group", 0, 0, false, false, true},
    {Op::kConvertLayout, "convert_layout", 1, 1, true, false, false},
    {Op::kSignal, "signal", 3, 3, false, false, false},
    {Op::kWait, "wait", 3, 4, false, false, false},
    {Op::kLlStore, "ll_store", 3, 4, false, true, false},
    {Op::kLlLoad, "ll_load", 3, 4, true, true, false},
    {Op::kMark, "mark", 2, 2, false, false, true},
    {Op::kMultimemReduce, "multimem_reduce", 2, 3, true, true, false},
    {Op::kMultimemStore, "multimem_store", 3, 4, false, true, false},
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
    {Fn::kMin, "min", 2},
    {Fn::kMax, "max", 2},
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
    {Fn::kSaturate, "saturate", 1},
    {Fn::kRound, "round", 1},
};

struct KindName {
  Kind kind;
  std::string_view name;
};
constexpr KindName kKinds[] = {{Kind::kF32, "f32"}, {Kind::kI32, "i32"},
                               {Kind::kI64, "i64"}, {Kind::kPred, "pred"},
                               {Kind::kPtr, "ptr"}, {Kind::kShared, "shared"}};

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

const OpInfo& op_info(Op op) {
  return known(find(kOps, [&](const OpInfo& x) { return x.op == op; }));
}
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
