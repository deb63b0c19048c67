#pragma once

#include "codegen/work/rows.h"
#include "ir/collective.h"

namespace braid {

/// What the collective of a body does.
[[nodiscard]] Collective form_of(const BodyFacts& facts);

/// Where its operand lies in every rank's arena.
[[nodiscard]] tile::Id operand_offset(tile::Builder& builder, const BodyFacts& facts);

/// Its result, out of the arenas of all ranks.
[[nodiscard]] tile::Id from_peers(const RowPlace& place);
/// Where `rank` has put it in the place of its operand.
[[nodiscard]] tile::Id from_rank(const RowPlace& place, tile::Id rank);

/// In the order of the ranks; `part`: what one of them has, asked for of `together` ranks before
/// any is added.
[[nodiscard]] tile::Id sum_of(tile::Builder& b, const Collective& form, DType dtype,
                              const std::function<tile::Id(tile::Id rank)>& part, int together = 1);

}  // namespace braid
