#pragma once

#include <string>
#include <vector>

#include "braid/rendezvous.h"

namespace braid {

/// Where an error of a rendezvous is said to be.
inline constexpr const char* kRendezvous = "rendezvous";

/// What a rank tells the others about its program before the first launch, or about memory to
/// share.
struct RankCard {
  std::string failure;                  ///< why it cannot take part; else empty
  std::string hash;                     ///< hash of its plan, computed by itself
  std::vector<std::string> arenas;      ///< Memory::export_handle of each symmetric arena, if any
  std::string communicators;            ///< Communicators::offers, if any
  std::string memory = {};              ///< description of the memory it asks for; then there is no
                                        ///< hash
  std::vector<std::string> units = {};  ///< what it found of units that the plan uses, if it is
                                        ///< still open whether this will be the plan
};

/// Exchanges the cards of this end's ranks for those of all ranks, by rank. Throws if a rank
/// failed, or if two ranks have different plans or memory: they would hang or read garbage.
[[nodiscard]] std::vector<RankCard> exchange_cards(Rendezvous& rendezvous,
                                                   const std::vector<RankCard>& mine);

}  // namespace braid
