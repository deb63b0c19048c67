#include <llvm/IR/Constants.h>

#include <algorithm>
#include <array>

#include "runtime/cpu/run/bulk_copy.h"
#include "runtime/cpu/translate/addresses.h"
#include "runtime/cpu/translate/atomics.h"
#include "runtime/cpu/translate/counts.h"
#include "runtime/cpu/translate/emitter.h"
#include "runtime/cpu/translate/handlers.h"

// Bulk copies and tensor maps.

namespace braid::cpu {
namespace {

using ptx::Space;
using ptx::Type;

/// The place of a copy's operands in scratch memory, in units of 128 bytes.
constexpr unsigned place_of(std::size_t offset) { return static_cast<unsigned>(offset / 128); }
static_assert(sizeof(BulkOperands) % 128 == 0);

/// The space of an operand in the block's own shared memory.
Space own_space(const ptx::Choices& mods) {
  return mods.has("shared::cta") || mods.has("shared") ? Space::kShared : Space::kGeneric;
}

Value* bulk_address(Emitter& e, const Instruction& i, std::size_t operand, Space space) {
  Address where = address(e, i, i.operands[operand], space);
  return address_lanes(e, where);
}

/// Emits the copies of the lanes; the operands behind the addresses are in scratch memory.
void copy_bulk(Emitter& e, const Instruction& i, BulkCode code, Value* to, Value* from) {
  const Choices mods(i);
  const bool loads = code.what != BulkCode::kStore;
  // Behind the size of a stretch, or the coordinates of a tensor.
  const bool answers = code.what == BulkCode::kAnswer;
  const std::size_t barrier = answers ? 1 : code.rank == 0 ? 3 : 2;
  // The offsets of a column stand before what else there is.
  const std::size_t more = loads && code.part == BulkCode::kColumn ? barrier + 2 : barrier + 1;
  if (loads) {
    const Space space = answers                           ? own_space(mods)
                        : mods.of("shared::cluster") == 1 ? Space::kShared
                                                          : Space::kCluster;
    Value* where = bulk_address(e, i, barrier, space);
    code.multicast = mods.has("multicast::cluster") || mods.has("multicast::cluster::all");
    if (answers) {
      Value* size = e.field(offsetof(WarpContext, cluster_size), 32);
      Value* all = e.ir.CreateSub(e.ir.CreateShl(e.ir.getInt32(1), size), e.ir.getInt32(1));
      e.to_scratch(place_of(offsetof(BulkOperands, blocks)), e.splat(all));
    } else if (code.multicast) {
      need(i, more + (mods.has("L2::cache_hint") ? 2 : 1));
      e.to_scratch(
          place_of(offsetof(BulkOperands, blocks)),
          e.ir.CreateAnd(e.read_lanes(i.operands[more], 32), e.splat(e.ir.getInt32(0xffff))));
    }
    e.to_scratch(place_of(offsetof(BulkOperands, barriers)), where);
  }
  code.masked = mods.has("cp_mask");
  if (code.masked) {
    need(i, mods.has("L2::cache_hint") ? 5 : 4);
    e.to_scratch(
        place_of(offsetof(BulkOperands, blocks)),
        e.ir.CreateAnd(e.read_lanes(i.operands.back(), 32), e.splat(e.ir.getInt32(0xffff))));
  }
  e.to_scratch(place_of(offsetof(BulkOperands, to)), to);
  e.to_scratch(place_of(offsetof(BulkOperands, from)), from);
  e.call("copy_bulk", {e.context, e.scratch(0), e.execution_bits(), code, e.line, count_place(e)});
}

void set_reduction(const Instruction& i, BulkCode& code) {
  const Choices mods(i);
  const Type type = mods.type();
  code.reduces = true;
  code.op = static_cast<AtomicOp>(mods.of("add"));
  code.kind = atomic_kind(type);
  code.bits = static_cast<std::uint8_t>(type.bits);
  const bool orders = code.op == AtomicOp::kMin || code.op == AtomicOp::kMax;
  if (!operates_on(code.op, type) || type.bits < 16 || type.lanes != 1 ||
      (type.is_float() && code.op != AtomicOp::kAdd && !(orders && type.bits == 16))) {
    bad_combination(i);
  }
}

}  // namespace

Value* op_copy_bulk(Emitter& e, const Instruction& i) {
  const Choices mods(i);
  BulkCode code;
  code.what = i.is(Op::kCpBulkLoad)    ? BulkCode::kLoad
              : mods.has("bulk_group") ? BulkCode::kStore
                                       : BulkCode::kCluster;
  code.everywhere = i.is(Op::kMultimemBulkStore) || i.is(Op::kMultimemBulkReduce);
  const bool loads = code.what == BulkCode::kLoad;
  const Space cluster = loads && mods.of("shared::cluster") == 1 ? Space::kShared : Space::kCluster;
  Value* to = bulk_address(e, i, 0, code.what == BulkCode::kStore ? Space::kGlobal : cluster);
  Value* from = bulk_address(e, i, 1, loads ? Space::kGlobal : Space::kShared);
  e.to_scratch(place_of(offsetof(BulkOperands, sizes)), e.read_lanes(i.operands[2], 32));
  if (mods.of("add") >= 0) set_reduction(i, code);
  copy_bulk(e, i, code, to, from);
  return nullptr;
}

/// As op_prefetch, of a stretch.
Value* op_prefetch_bulk(Emitter& e, const Instruction& i) {
  if (!e.instrumentation.counts) return nullptr;
  Value* from = bulk_address(e, i, 0, Space::kGlobal);
  Value* sizes = e.read_lanes(i.operands[1], 32);
  e.call("prefetch_bulk", {e.context, e.to_scratch(0, from), e.to_scratch(4, sizes),
                           e.execution_bits(), count_place(e)});
  return nullptr;
}

/// st.bulk: zeros, which is all that the manual lets it store.
Value* op_store_bulk(Emitter& e, const Instruction& i) {
  if (i.operands[2].bits != 0) bad(i, "the value must be 0");
  Value* to = bulk_address(e, i, 0, own_space(Choices(i)));
  Value* sizes = e.read_lanes(i.operands[1], 64);
  e.call("store_bulk", {e.context, e.to_scratch(0, to), e.to_scratch(2, sizes), e.execution_bits(),
                        e.line, count_place(e)});
  return nullptr;
}

/// Asks to cancel the launch of a cluster: the answer is always that none was.
Value* op_try_cancel(Emitter& e, const Instruction& i) {
  Value* to = bulk_address(e, i, 0, own_space(Choices(i)));
  BulkCode code;
  code.what = BulkCode::kAnswer;
  copy_bulk(e, i, code, to, to);
  return nullptr;
}

/// Decodes an answer: its last word says whether a launch was canceled; before it is the block.
Value* op_query_cancel(Emitter& e, const Instruction& i) {
  const std::vector<Operand> answer = elements_of(i, i.operands[1], 2);
  const auto word = [&](std::size_t k) {
    return e.resize(e.ir.CreateLShr(e.read(answer[k / 2], 64), 32 * (k % 2)), 32, false);
  };
  if (i.is(Op::kQueryCanceled)) return e.ir.CreateIsNotNull(word(3));
  if (i.is(Op::kQueryFirst)) return word(static_cast<std::size_t>(Choices(i).name()));
  const std::vector<Operand> results = elements_of(i, i.operands[0], 4);
  std::array<Value*, 4> words{word(0), word(1), word(2), word(3)};
  for (std::size_t k = 0; k < 4; ++k) e.write(results[k], words[k]);
  return nullptr;
}

Value* op_copy_tensor(Emitter& e, const Instruction& i) {
  const Choices mods(i);
  BulkCode code;
  code.what = i.is(Op::kCpTensorLoad) ? BulkCode::kLoad : BulkCode::kStore;
  code.rank = static_cast<std::uint8_t>(mods.name() + 1);
  const bool loads = code.what == BulkCode::kLoad;
  const std::size_t tensor = loads ? 1 : 0;
  const std::vector<Operand>& coordinates = i.operands[tensor].elements[1].elements;
  const int part = std::max(mods.of("tile"), 0);
  code.part = static_cast<BulkCode::Part>(part);
  if ((code.part == BulkCode::kRows && code.rank != 2) ||
      (code.part == BulkCode::kColumn && code.rank < 3)) {
    bad_combination(i);
  }
  const auto expect = [&](const char* what, std::size_t found, std::size_t wanted) {
    if (found == wanted) return;
    bad(i, "expected " + std::to_string(wanted) + what + ", found " + std::to_string(found));
  };
  expect(" coordinates", coordinates.size(), code.part == BulkCode::kRows ? 5 : code.rank);
  code.reduces = i.is(Op::kCpReduceTensor);
  if (code.reduces) {
    code.op = static_cast<AtomicOp>(mods.of("add"));
    if (code.op == AtomicOp::kExch || code.op == AtomicOp::kCas) bad_combination(i);
  }
  const Space space = !loads || mods.of("shared::cluster") == 1 ? Space::kShared : Space::kCluster;
  Value* map = bulk_address(e, i, tensor, Space::kGeneric);
  Value* shared = bulk_address(e, i, 1 - tensor, space);
  for (std::size_t d = 0; d < coordinates.size(); ++d) {
    e.to_scratch(place_of(offsetof(BulkOperands, coordinates)) + static_cast<unsigned>(d),
                 e.read_lanes(coordinates[d], 32));
  }
  if (code.part == BulkCode::kColumn) {
    std::vector<Operand> offsets(TensorMap::kMaxRank - 2);  // of a store they are 0
    if (loads) {
      need(i, std::max<std::size_t>(i.operands.size(), 4));
      const std::vector<Operand>& given = i.operands[3].elements;
      expect(" offsets", given.size(), code.rank - 2U);
      std::ranges::copy(given, offsets.begin());
    }
    for (std::size_t d = 0; d < offsets.size(); ++d) {
      e.to_scratch(place_of(offsetof(BulkOperands, offsets)) + static_cast<unsigned>(d),
                   e.ir.CreateZExt(e.read_lanes(offsets[d], 16), e.integer(32, false)));
    }
  }
  copy_bulk(e, i, code, loads ? shared : map, loads ? map : shared);
  return nullptr;
}

Value* op_replace_tensormap(Emitter& e, const Instruction& i) {
  const Choices mods(i);
  const auto field = static_cast<TensorMapField>(mods.name());
  const bool numbered = field == TensorMapField::kBox || field == TensorMapField::kDim ||
                        field == TensorMapField::kStride || field == TensorMapField::kStep;
  const bool wide = field == TensorMapField::kAddress || field == TensorMapField::kStride;
  need(i, numbered ? 3 : 2);
  if (mods.has("b64") != wide) bad_combination(i);
  std::uint64_t dim = 0;
  if (numbered) {
    dim = i.operands[1].bits;
    const std::uint64_t most = TensorMap::kMaxRank - (field == TensorMapField::kStride ? 2 : 1);
    if (i.operands[1].form != Operand::Form::kInteger || dim > most) {
      bad(i, "expected a dim from 0 to " + std::to_string(most));
    }
  }
  const bool plain = i.operands[1].form == Operand::Form::kInteger && i.operands[1].bits == 0;
  if (field == TensorMapField::kInterleave && !plain) {
    bad(i, "interleaved layouts are not supported");
  }
  if (field == TensorMapField::kAtomicity && !plain) {
    bad(i, "swizzles of other than 16 bytes are not supported");
  }
  const Space space = mods.has("global")                              ? Space::kGlobal
                      : mods.has("shared::cta") || mods.has("shared") ? Space::kShared
                                                                      : Space::kGeneric;
  Address where = address(e, i, i.operands[0], space);
  const AccessCode code{.kind = AccessCode::kAtomic,
                        .order = AccessCode::kRelaxed,
                        .scope = 1,
                        .bytes = static_cast<std::uint8_t>(wide ? 8 : 4)};
  check(e, where, code);
  Value* value = e.resize(e.read_lanes(i.operands.back(), wide ? 64 : 32), 64, false);
  e.call("replace_tensormap", {e.context, e.to_scratch(0, address_lanes(e, where)),
                               e.to_scratch(2, value), e.execution_bits(), field, dim, e.line});
  return nullptr;
}

/// A tensor map that the whole warp copies, for others to copy by.
Value* op_copy_tensormap(Emitter& e, const Instruction& i) {
  if (i.operands[2].bits != TensorMap::kBytes) bad(i, "the size must be 128");
  Value* to = bulk_address(e, i, 0, Space::kGlobal);
  Value* from = bulk_address(e, i, 1, Space::kShared);
  e.call("copy_tensormap", {e.to_scratch(0, to), e.to_scratch(2, from), e.execution_bits()});
  return nullptr;
}

Value* op_bulk_group(Emitter& e, const Instruction& i) {
  if (!e.instrumentation.checks) return nullptr;
  if (i.is(Op::kCpBulkCommit)) {
    e.call("check_bulk_commit", {e.context, e.execution_bits()});
    return nullptr;
  }
  e.call("check_bulk_wait",
         {e.context, e.execution_bits(), e.read_scalar(i.operands[0], 32), Choices(i).has("read")});
  return nullptr;
}

Value* op_fence_async(Emitter& e, const Instruction& /*i*/) {
  if (!e.instrumentation.checks) return nullptr;
  e.call("check_fence_async", {e.context});
  return nullptr;
}

}  // namespace braid::cpu
