#pragma once

#include <string>
#include <vector>

#include "braid/rendezvous.h"

namespace braid {

/// What a rank tells the others of its program before the first launch, or of memory that they
/// share.
struct RankCard {
  std::string failure;              ///< why it cannot take part; else empty
  std::string hash;                 ///< of its plan, worked out by itself
  std::vector<std::string> arenas;  ///< Memory::export_handle of each symmetric arena, or nothing
  std::string communicators;        ///< Communicators::offers, or nothing
  std::string memory = {};          ///< what it asks for where that is memory; then no hash
};

/// Exchanges the cards of this end's ranks for those of all ranks, by rank. Throws where a rank
/// failed, and where two ranks have different plans or memory: they would hang or read garbage.
[[nodiscard]] std::vector<RankCard> exchange_cards(Rendezvous& rendezvous,
                                                   const std::vector<RankCard>& mine);

}  // namespace braid
