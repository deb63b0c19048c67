#include "codegen/units.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <initializer_list>
#include <iterator>
#include <string>
#include <vector>

#include "codegen/tile/dot_layouts.h"
#include "codegen/tile/op_info.h"
#include "codegen/tile/walk.h"
#include "ir/fail.h"

namespace braid {
namespace {

/// PTX ISA: `mma` takes 8-bit floats from sm_89 on.
constexpr int kLeastSmOfFloat8 = 89;

// fma stands in for mma.sync, so it begins where that does.
constexpr Factor kOfFma[] = {{DType::kF32},
                             {DType::kF16},
                             {DType::kBF16},
                             {DType::kF8E4M3, kLeastSmOfFloat8},
                             {DType::kF8E5M2, kLeastSmOfFloat8}};
constexpr Factor kOfMmaSync[] = {{DType::kF16},
                                 {DType::kBF16},
                                 {DType::kF8E4M3, kLeastSmOfFloat8},
                                 {DType::kF8E5M2, kLeastSmOfFloat8}};
constexpr Factor kBesideThreads[] = {
    {DType::kF16}, {DType::kBF16}, {DType::kF8E4M3}, {DType::kF8E5M2}};

constexpr Multiplier kFmaMultiplies{.factors = kOfFma,
                                    .reads = Multiplier::Reads::kElements,
                                    .layouts = tile::fma_layouts,
                                    .row_step = tile::fma_row_step};
constexpr Multiplier kMmaSyncMultiplies{.factors = kOfMmaSync,
                                        .reads = Multiplier::Reads::kFragments,
                                        .from_registers = true,
                                        .step_bytes = 32,
                                        .widens_from = 90,
                                        .widens_below = 120,
                                        .layouts = tile::mma_layouts,
                                        .row_step = tile::mma_row_step};
constexpr Multiplier kWgmmaMultiplies{.factors = kBesideThreads,
                                      .reads = Multiplier::Reads::kDescriptors,
                                      .from_registers = true,
                                      .sums = Multiplier::Sums::kUnderWay,
                                      .rows = 64,
                                      .step_bytes = 32,
                                      // Its sums have 14 bits then (docs/numerics.md).
                                      .chain_of_float8 = 128,
                                      .layouts = tile::wgmma_layouts,
                                      .row_step = tile::wgmma_row_step};
constexpr Multiplier kTcgen05Multiplies{.factors = kBesideThreads,
                                        .reads = Multiplier::Reads::kDescriptors,
                                        .sums = Multiplier::Sums::kInOwnMemory,
                                        .rows = 128,
                                        .step_bytes = 32};

constexpr Copier kLoadStoreCopies{Copier::Moves::kPiece, Copier::Completes::kAtOnce, 1, 16};
constexpr Copier kCpAsyncCopies{Copier::Moves::kPiece, Copier::Completes::kInGroups, 4, 16};
constexpr Copier kBulkTensorCopies{Copier::Moves::kTile, Copier::Completes::kAtMbarrier, 128, 128};
constexpr Copier kMultimemCopies{Copier::Moves::kPieceOfAllRanks, Copier::Completes::kAtOnce, 4,
                                 16};

}  // namespace

namespace units {

constinit const Unit kFma{.name = "fma", .optional = false, .multiplies = &kFmaMultiplies};
constinit const Unit kMmaSync{.name = "mma.sync", .multiplies = &kMmaSyncMultiplies};
constinit const Unit kWgmma{.name = "wgmma",
                            .least_sm = 90,
                            .below_sm = 100,
                            .arch_specific = true,
                            .multiplies = &kWgmmaMultiplies};
constinit const Unit kTcgen05{.name = "tcgen05",
                              .least_sm = 100,
                              .below_sm = 120,
                              .arch_specific = true,
                              .multiplies = &kTcgen05Multiplies};
constinit const Unit kLoadStore{.name = "ld/st", .optional = false, .copies = &kLoadStoreCopies};
constinit const Unit kCpAsync{.name = "cp.async", .copies = &kCpAsyncCopies};
constinit const Unit kBulkTensor{
    .name = "cp.async.bulk.tensor", .least_sm = 90, .copies = &kBulkTensorCopies};
constinit const Unit kMultimem{.name = "multimem", .least_sm = 90, .copies = &kMultimemCopies};

}  // namespace units

namespace {

constexpr const Unit* kUnits[] = {&units::kFma,        &units::kMmaSync,   &units::kWgmma,
                                  &units::kTcgen05,    &units::kLoadStore, &units::kCpAsync,
                                  &units::kBulkTensor, &units::kMultimem};

/// Whether there is such a unit for the architecture's own code, or for all.
bool is_built_in(const Target& target, const Unit& unit) {
  return unit.least_sm <= target.sm && (unit.below_sm == 0 || target.sm < unit.below_sm) &&
         (!unit.arch_specific || target.arch_specific);
}

/// Why kernels for the target cannot use a unit for what it can do from an architecture on.
std::string why_not(const Target& target, const Unit& unit, int least_sm) {
  if (unit.arch_specific && !is_built_in(target, unit)) {
    return fmt::format("{} needs sm_{}a", unit.name, unit.least_sm);
  }
  if (target.sm < least_sm) return fmt::format("{} needs sm_{} or later", unit.name, least_sm);
  return has(target, unit) ? "" : fmt::format("{} is off", unit.name);
}

/// The first architecture on which it multiplies operands of a dtype, with its sums in one of these
/// places; or 0.
int multiplies_from(const Unit& unit, DType dtype, std::initializer_list<Multiplier::Sums> sums) {
  if (unit.multiplies == nullptr || std::ranges::count(sums, unit.multiplies->sums) == 0) return 0;
  for (const Factor& factor : unit.multiplies->factors) {
    if (factor.dtype == dtype) return std::max(factor.least_sm, unit.least_sm);
  }
  return 0;
}

/// The first one on which it copies so many bytes, or 0.
int copies_from(const Unit& unit, Copier::Moves moves, int bytes) {
  const Copier* const copies = unit.copies;
  const bool fits = copies != nullptr && copies->moves == moves && copies->least_bytes <= bytes &&
                    bytes <= copies->most_bytes;
  return fits ? unit.least_sm : 0;
}

/// The last of the target's units that does something: `from` gives the first architecture on which
/// a unit does it, or 0. Null where there is none.
template <class From>
const Unit* last_unit(const Target& target, const From& from) {
  const Unit* best = nullptr;
  for (const Unit* unit : kUnits) {
    const int least_sm = from(*unit);
    if (least_sm != 0 && why_not(target, *unit, least_sm).empty()) best = unit;
  }
  return best;
}

/// The same for an operation; where there is none, an error that says what for.
template <class From>
const Unit* needed_unit(const tile::Inst& inst, const Target& target, std::string_view verb,
                        std::string_view what, const From& from) {
  if (const Unit* unit = last_unit(target, from)) return unit;
  std::vector<std::string> reasons;
  for (const Unit* unit : kUnits) {
    if (const int least_sm = from(*unit)) reasons.push_back(why_not(target, *unit, least_sm));
  }
  throw_invalid(std::string(tile::op_info(inst.op).name), "no unit of {} {} {}{}{}", target.str(),
                verb, what, reasons.empty() ? "" : ": ", fmt::join(reasons, ", "));
}

}  // namespace

std::span<const Unit* const> all_units() { return kUnits; }

std::string unit_names() {
  std::vector<std::string_view> names;
  for (const Unit* unit : kUnits) names.push_back(unit->name);
  return fmt::format("{}", fmt::join(names, ", "));
}

unsigned bit_of(const Unit& unit) {
  return 1U << (std::ranges::find(kUnits, &unit) - std::begin(kUnits));
}

bool has(const Target& target, const Unit& unit) {
  return (target.off & bit_of(unit)) == 0 && is_built_in(target, unit);
}

const Unit* multiplier(const Target& target, DType dtype, bool asynchronous) {
  return last_unit(target, [&](const Unit& unit) {
    using Sums = Multiplier::Sums;
    return asynchronous ? multiplies_from(unit, dtype, {Sums::kUnderWay, Sums::kInOwnMemory})
                        : multiplies_from(unit, dtype, {Sums::kInRegisters});
  });
}

int chain_along_k(const Target& target, DType dtype) {
  const Unit* const unit =
      is_float8(dtype) ? multiplier(target, dtype, /*asynchronous=*/true) : nullptr;
  return unit == nullptr ? 0 : unit->multiplies->chain_of_float8;
}

bool copies_in_groups(const Target& target) {
  return std::ranges::any_of(kUnits, [&](const Unit* unit) {
    return has(target, *unit) && unit->copies != nullptr &&
           unit->copies->completes == Copier::Completes::kInGroups;
  });
}

int least_sm_of(DType dtype) {
  int least = 0;
  for (const Unit* unit : kUnits) {
    const int from = multiplies_from(*unit, dtype, {Multiplier::Sums::kInRegisters});
    if (from != 0 && (least == 0 || from < least)) least = from;
  }
  return least;
}

const Unit* tile::unit_of(const Program& program, const Inst& inst) {
  const auto multiplies = [&](std::string_view verb, Multiplier::Sums sums) {
    return needed_unit(inst, program.target, verb, dtype_name(inst.dtype),
                       [&](const Unit& unit) { return multiplies_from(unit, inst.dtype, {sums}); });
  };
  const auto copies = [&](Copier::Moves moves, int bytes, std::string_view what) {
    return needed_unit(inst, program.target, "copies", what,
                       [&](const Unit& unit) { return copies_from(unit, moves, bytes); });
  };
  switch (inst.op) {
    case Op::kDot:
      return multiplies("multiplies", Multiplier::Sums::kInRegisters);
    case Op::kAsyncDot:
      return multiplies("asynchronously multiplies", Multiplier::Sums::kUnderWay);
    case Op::kDotToSums:
      return multiplies("has a memory for sums of", Multiplier::Sums::kInOwnMemory);
    case Op::kCopyToShared:
      return copies(Copier::Moves::kPiece, inst.width * static_cast<int>(dtype_size(inst.dtype)),
                    "pieces");
    case Op::kCopyTile:
    case Op::kPushTile:
      return copies(Copier::Moves::kTile, SharedLayout::kPanels, "tiles of tensors");
    case Op::kMultimemReduce:
    case Op::kMultimemStore:
      return copies(Copier::Moves::kPieceOfAllRanks, kMultimemCopies.least_bytes,
                    "to and from all ranks at once");
    default:
      return nullptr;
  }
}

unsigned tile::units_of(const Program& program) {
  unsigned bits = 0;
  for_each_inst(program, [&](Id id) {
    if (const Unit* unit = unit_of(program, program.at(id))) bits |= bit_of(*unit);
  });
  return bits;
}

}  // namespace braid
