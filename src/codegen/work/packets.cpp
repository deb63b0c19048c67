// The operand of a collective as packets: every rank sends its operand into the scratch of all
// ranks, and sums what arrived in its own. Data and flag are one access, so no barrier is needed.
//
// Two halves of slots, used by alternating epochs, are enough. A rank that sends in epoch e + 2 has
// finished its run of epoch e + 1, so it has received packets of e + 1 from every peer (at least
// one each: no dim is 0). A peer sends those only after its run of e, and so after all its reads of
// the half that e + 2 overwrites. A place has the current epoch exactly where a packet of this run
// has arrived; the only exception is a place that was last written 2^32 runs ago, which requires
// smaller batches ever since.

#include <algorithm>

#include "codegen/cuda/preamble.h"
#include "codegen/kernel/phases.h"

namespace braid {

using tile::Fn;
using tile::Id;

PacketSlots packet_slots(const KernelSpec& spec, const BodyInfo& info, const PieceWork& work) {
  const SymbolTable& symbols = spec.body->symbols();
  const DType dtype = spec.body->type(info.collective->inputs[0]).dtype;
  const std::int64_t elements = tile::packet_elements(dtype, work.cols);
  const bool has_rows = info.rows != Rows::kNone;
  const std::int64_t width = max_numel(has_rows ? info.reduced_dims() : info.space, symbols);
  const std::int64_t rows = has_rows ? max_numel(info.kept_dims(), symbols) : 1;
  PacketSlots slots;
  slots.pitch = (width + elements - 1) / elements * elements;
  slots.slot_bytes = rows * slots.pitch / elements * tile::kPacketBytes;
  // A quarter of a thread's registers, and no more than memory serves at a time.
  constexpr std::int64_t kMostPackets = 32;
  const std::int64_t threads = 32 * spec.config.at("num_warps");
  const int registers = tile::registers_of_thread(static_cast<int>(spec.config.at("num_warps")));
  const std::int64_t most = std::min<std::int64_t>(kMostPackets, registers / 4 / 2);
  const std::int64_t packets =
      std::max<std::int64_t>(1, work.rows * work.cols / threads / elements);
  slots.together = static_cast<int>(std::max<std::int64_t>(1, most / packets));
  return slots;
}

/// The address, on rank `at`, of this epoch's slot for packets from rank `from`.
Id BodyEmitter::packet_slot(Id from, Id at) {
  const std::string& group = *info_.collective->attr<std::string>("group");
  const std::int64_t world = body_.groups().at(group).size;
  const Id scratch =
      b_.param({.kind = KernelParam::Kind::kScratch, .index = 0, .expr = 0, .group = group}, 256);
  const Id half = b_.map(Fn::kRem, {b_.epoch(), b_.integer(2)});
  const Id slot = b_.map(Fn::kAdd, {b_.map(Fn::kMul, {half, b_.integer(world)}), from});
  const Id offset = b_.map(Fn::kMul, {slot, b_.integer(slots_.slot_bytes)});
  return b_.peer(b_.map(Fn::kAdd, {scratch, offset}), at);
}

void BodyEmitter::send(const Coords& at, const Mask& mask) {
  const Node& collective = *info_.collective;
  const TensorType& type = body_.type(collective.inputs[0]);
  const std::string& group = *collective.attr<std::string>("group");
  const Id place = place_();
  const Id x = spread_like(value(collective.inputs[0], coords_.reshape(at, type.shape), mask),
                           place, /*is_stored=*/true);
  const Id ok = conjunction(mask, b_.type(place).cols);
  const Id rank = own_rank(b_, group);
  const Id world = b_.integer(body_.groups().at(group).size);
  // Each rank begins with the next one, so that not all send to the same rank.
  const Id loop = b_.begin_for(b_.integer(1), world, b_.integer(1), {});
  const Id peer = b_.map(Fn::kRem, {b_.map(Fn::kAdd, {rank, b_.induction(loop)}), world});
  b_.ll_store(packet_slot(rank, peer), place, x, ok, type.dtype);
  b_.end_for(loop, {});
  b_.ll_store(packet_slot(rank, rank), place, x, ok, type.dtype);
}

Id BodyEmitter::received(const Node& node, const Collective& form, const Mask& mask) {
  const DType dtype = body_.type(node.outputs[0]).dtype;
  const std::string& group = *node.attr<std::string>("group");
  const Id rank = own_rank(b_, group);
  const Id place = place_();
  const Id ok = conjunction(mask, b_.type(place).cols);
  // Addresses come first: consecutive loads wait together.
  for (std::int64_t from = 0; from < std::min<std::int64_t>(form.ranks, tile::kUnrolledRanks);
       ++from) {
    packet_slot(b_.integer(from), rank);
  }
  const auto part = [&](Id from) {
    return b_.ll_load(packet_slot(from, rank), place, from, ok, dtype);
  };
  const Id sum = sum_of(form, dtype, part, slots_.together);
  // Neighbouring threads have neighbouring packets; the row is summed in the order of its own
  // layout.
  return info_.rows == Rows::kNone ? sum : b_.convert_layout(sum);
}

}  // namespace braid
