// The operand of a collective as packets: every rank sends its operand into the scratch of all
// ranks, and sums what arrived in its own. Data and flag are one access, so no barrier is needed.
//
// Two halves of slots, used by alternating epochs, are enough. A rank that sends in epoch e + 2 has
// finished its run of epoch e + 1, so it has received packets of e + 1 from every peer (at least
// one each: no dim is 0). A peer sends those only after its run of e, and so after all its reads of
// the half that e + 2 overwrites. A place has the current epoch exactly where a packet of this run
// has arrived; the only exception is a place that was last written 2^32 runs ago, which requires
// smaller batches ever since.

#include <fmt/format.h>

#include <algorithm>

#include "codegen/cuda/preamble.h"
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

/// The address, on rank `at`, of this epoch's slot of what rank `from` sends.
Id packet_slot(BodyEmitter& emitter, const PacketSlots& slots, Id from, Id at) {
  tile::Builder& b = emitter.builder();
  const BodyFacts& facts = emitter.facts();
  const Id scratch = b.param(
      {.kind = KernelParam::Kind::kScratch, .index = 0, .expr = 0, .group = facts.group()}, 256);
  const Id half = b.map(Fn::kRem, {b.epoch(), b.integer(2)});
  const Id slot = b.map(Fn::kAdd, {b.map(Fn::kMul, {half, b.integer(facts.world())}), from});
  const Id offset = b.map(Fn::kMul, {slot, b.integer(slots.slot_bytes)});
  return b.peer(b.map(Fn::kAdd, {scratch, offset}), at);
}

/// Of the collective's operand, to all ranks.
void send(RowPiece& rows, const PacketSlots& slots, BodyEmitter& emitter, const Coords& at,
          const Mask& mask) {
  tile::Builder& b = emitter.builder();
  const BodyFacts& facts = emitter.facts();
  const TensorType& type = facts.operand();
  const Id place = rows.place(slots.pitch);
  const Id x = emitter.spread_like(
      emitter.value(facts.collective->inputs[0], emitter.coords().reshape(at, type.shape), mask),
      place, /*is_stored=*/true);
  const Id ok = emitter.conjunction(mask, b.type(place).cols);
  const Id rank = own_rank(b, facts.group());
  const Id world = b.integer(facts.world());
  const auto send_to = [&](Id peer) {
    b.ll_store(packet_slot(emitter, slots, rank, peer), place, x, ok, type.dtype);
  };
  // Each rank begins with the next, so that not all send to one at a time.
  const Id loop = b.begin_for(b.integer(1), world, b.integer(1), {});
  send_to(b.map(Fn::kRem, {b.map(Fn::kAdd, {rank, b.induction(loop)}), world}));
  b.end_for(loop, {});
  send_to(rank);
}

/// The sum over the ranks' packets.
Id received(RowPiece& rows, const PacketSlots& slots, BodyEmitter& emitter, const Mask& mask) {
  tile::Builder& b = emitter.builder();
  const BodyFacts& facts = emitter.facts();
  const DType dtype = facts.operand().dtype;
  const Collective form = form_of(facts);
  const Id rank = own_rank(b, facts.group());
  const Id place = rows.place(slots.pitch);
  const Id ok = emitter.conjunction(mask, b.type(place).cols);
  // Addresses first: loads that follow each other wait together.
  for (std::int64_t from = 0; from < std::min<std::int64_t>(form.ranks, tile::kUnrolledRanks);
       ++from) {
    packet_slot(emitter, slots, b.integer(from), rank);
  }
  const auto part = [&](Id from) {
    return b.ll_load(packet_slot(emitter, slots, from, rank), place, from, ok, dtype);
  };
  const Id sum = sum_of(b, form, dtype, part, slots.together);
  // Neighbouring threads have neighbouring packets; the order in which a row is added up is that of
  // its own layout.
  return facts.rows == Rows::kNone ? sum : b.convert_layout(sum);
}

}  // namespace

/// The collective's operand, as packets to every rank.
extern const Work kSendPackets;
const Work kSendPackets{
    .matches =
        [](const Graph& body) {
          return std::ranges::any_of(
              body.nodes(), [](const Node& node) { return algorithm_of(node) == kPackets; });
        },
    .refuse = [](const BodyFacts& facts) -> std::string {
      const std::string reason = refuse_operand(facts);
      const DType dtype = facts.operand().dtype;
      if (!reason.empty() || fits_packet(dtype)) return reason;
      return fmt::format("a packet has no room for {}", dtype_name(dtype));
    },
    .pieces = [](const BodyFacts& facts, const Config& config) -> std::optional<Pieces> {
      const PacketSlots slots = packet_slots(facts, config);
      Pieces pieces = for_row_pieces(facts, config, [&facts, slots](RowPiece& rows, const Piece&) {
        rows.for_all([&](BodyEmitter& emitter, const Coords& at, const Mask& mask) {
          send(rows, slots, emitter, at, mask);
          const std::size_t output = facts.output_apart();
          if (output < facts.body.outputs().size()) emitter.store(output, at, mask);
        });
      });
      pieces.scratch_bytes = 2 * facts.world() * slots.slot_bytes;
      return pieces;
    },
};

/// The rest of the body, with the sum over the ranks' packets.
extern const Work kRowsFromPackets;
const Work kRowsFromPackets{
    .settings = kRowSettings,
    .refuse = refuse_rows_of_collective,
    .tuning = kCollectiveRowTuning,
    .pieces = [](const BodyFacts& facts, const Config& config) -> std::optional<Pieces> {
      const PacketSlots slots = packet_slots(facts, config);
      return for_row_pieces(facts, config, [slots](RowPiece& rows, const Piece&) {
        rows.read([&rows, slots](BodyEmitter& emitter, const Coords&, const Mask& mask) {
          return received(rows, slots, emitter, mask);
        });
        rows.emit();
      });
    },
};

}  // namespace braid
