// The operand of a collective as packets: every rank sends its operand into the scratch of all
// ranks, and sums what arrived in its own. Data and flag are one access, so no barrier is needed.
//
// Two halves of slots, used by alternating epochs, are enough. A rank that sends in epoch e + 2 has
// finished its run of epoch e + 1, so it has received packets of e + 1 from every peer (at least
// one each: cannot_send_packets). A peer sends those only after its run of e, and so after all its
// reads of the half that e + 2 overwrites. A place has the current epoch exactly where a packet of
// this run has arrived; the only exception is a place that was last written 2^32 runs ago, which
// requires smaller batches ever since.

#include <algorithm>

#include "codegen/work/from_peers.h"

namespace braid {

using tile::Fn;
using tile::Id;

namespace {

/// How packets lie in the scratch of each rank: in two halves, of a slot for each rank, of rows (or
/// one row, where the body has none) of so many elements.
struct PacketSlots {
  std::int64_t pitch = 0;
  std::int64_t slot_bytes = 0;
  int together = 1;  ///< ranks whose packets a thread waits for at one time
};

PacketSlots packet_slots(const BodyFacts& facts, const Config& config) {
  const SymbolTable& symbols = facts.body.symbols();
  const RowPieces work = row_pieces(facts, config);
  const DType dtype = facts.operand().dtype;
  const std::int64_t elements = tile::packet_elements(dtype, work.cols);
  const bool has_rows = facts.rows != Rows::kNone;
  const std::int64_t width = max_numel(has_rows ? facts.reduced_dims() : facts.space, symbols);
  const std::int64_t rows = has_rows ? max_numel(facts.kept_dims(), symbols) : 1;
  PacketSlots slots;
  slots.pitch = (width + elements - 1) / elements * elements;
  slots.slot_bytes = rows * slots.pitch / elements * tile::kPacketBytes;
  // A quarter of a thread's registers, and no more than memory serves at a time.
  constexpr std::int64_t kMostPackets = 32;
  const std::int64_t threads = 32 * config.at("num_warps");
  const int registers = tile::registers_of_thread(static_cast<int>(config.at("num_warps")));
  const std::int64_t most = std::min<std::int64_t>(kMostPackets, registers / 4 / 2);
  const std::int64_t packets =
      std::max<std::int64_t>(1, work.rows * work.cols / threads / elements);
  slots.together = static_cast<int>(std::max<std::int64_t>(1, most / packets));
  return slots;
}

/// Of each element in its slot.
Id place_in_slot(const RowPlace& place, const PacketSlots& slots) {
  if (place.facts.rows == Rows::kNone) return place.row;
  const Id row = place.b.map(Fn::kMul, {place.row, place.b.integer(slots.pitch)});
  return place.b.map(Fn::kAdd, {row, place.col});
}

/// The address, on rank `at`, of this epoch's slot of what rank `from` sends.
Id packet_slot(const RowPlace& place, const PacketSlots& slots, Id from, Id at) {
  tile::Builder& b = place.b;
  const BodyFacts& facts = place.facts;
  const Id scratch = b.param(
      {.kind = KernelParam::Kind::kScratch, .index = 0, .expr = 0, .group = facts.group()}, 256);
  const Id half = b.map(Fn::kRem, {b.epoch(), b.integer(2)});
  const Id slot = b.map(Fn::kAdd, {b.map(Fn::kMul, {half, b.integer(facts.world())}), from});
  const Id offset = b.map(Fn::kMul, {slot, b.integer(slots.slot_bytes)});
  return b.peer(b.map(Fn::kAdd, {scratch, offset}), at);
}

/// The collective's operand, to all ranks.
void send(const RowPlace& place, const PacketSlots& slots) {
  tile::Builder& b = place.b;
  BodyEmitter& emitter = place.emitter;
  const BodyFacts& facts = place.facts;
  const TensorType& type = facts.operand();
  const Id to = place_in_slot(place, slots);
  const Coords at = emitter.coords().reshape(place.at, type.shape);
  const Id value = emitter.value(facts.collective->inputs[0], at, place.mask);
  const Id x = emitter.spread_like(value, to, /*is_stored=*/true);
  const Id ok = emitter.conjunction(place.mask, b.type(to).cols);
  const Id rank = own_rank(b, facts.group());
  const Id world = b.integer(facts.world());
  const auto send_to = [&](Id peer) {
    b.ll_store(packet_slot(place, slots, rank, peer), to, x, ok, type.dtype);
  };
  // Each rank begins with the next, so that not all send to one at a time.
  const Id loop = b.begin_for(b.integer(1), world, b.integer(1), {});
  send_to(b.map(Fn::kRem, {b.map(Fn::kAdd, {rank, b.induction(loop)}), world}));
  b.end_for(loop, {});
  send_to(rank);
}

/// The sum over the ranks' packets.
Id received(const RowPlace& place, const PacketSlots& slots) {
  tile::Builder& b = place.b;
  const DType dtype = place.facts.operand().dtype;
  const Collective form = form_of(place.facts);
  const Id rank = own_rank(b, place.facts.group());
  const Id at = place_in_slot(place, slots);
  const Id ok = place.emitter.conjunction(place.mask, b.type(at).cols);
  // Addresses first: loads that follow each other wait together.
  for (std::int64_t from = 0; from < std::min<std::int64_t>(form.ranks, tile::kUnrolledRanks);
       ++from) {
    packet_slot(place, slots, b.integer(from), rank);
  }
  const auto part = [&](Id from) {
    return b.ll_load(packet_slot(place, slots, from, rank), at, from, ok, dtype);
  };
  const Id sum = sum_of(b, form, dtype, part, slots.together);
  // Neighbouring threads have neighbouring packets; the order in which a row is added up is that of
  // its own layout.
  return place.facts.rows == Rows::kNone ? sum : b.convert_layout(sum);
}

std::string refuse(const BodyFacts& facts) {
  const std::string reason = refuse_operand(facts);
  return reason.empty() ? cannot_send_packets(facts.operand(), facts.body.symbols()) : reason;
}

std::optional<Pieces> pieces_of(const BodyFacts& facts, const Config& config) {
  std::optional<Pieces> pieces = each_row(facts, config);
  pieces->scratch_bytes = 2 * facts.world() * packet_slots(facts, config).slot_bytes;
  return pieces;
}

}  // namespace

/// The collective's operand, as packets to every rank.
extern const Work kSendPackets{
    .matches = [](const Graph& body) { return runs_as(Algorithm::kPackets, body); },
    .refuse = refuse,
    .pieces = pieces_of,
    .emit =
        [](const Piece& piece) {
          const PacketSlots slots = packet_slots(piece.facts, piece.config);
          for_row_places(piece, [&](const RowPlace& place) {
            send(place, slots);
            const std::size_t output = place.facts.output_apart();
            if (output == place.facts.body.outputs().size()) return;
            place.emitter.store(output, place.at, place.mask);
          });
        },
};

/// The rest of the body, with the sum over the ranks' packets.
extern const Work kRowsFromPackets = rows_of_collective([](const Piece& piece) {
  const PacketSlots slots = packet_slots(piece.facts, piece.config);
  emit_rows(piece, [slots](const RowPlace& place) { return received(place, slots); });
});

}  // namespace braid
