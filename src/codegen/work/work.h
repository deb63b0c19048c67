#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "codegen/body/analysis.h"
#include "codegen/body/coords.h"
#include "codegen/tile/builder.h"

namespace braid {

/// How many pieces a work has in a kernel, and what they need.
struct Pieces {
  Expr count = 1;            ///< of one rank, where they are dealt by ranks
  std::int64_t divisor = 1;  ///< of the count
  int columns = 8;           ///< tile::Program::columns, as the next two
  int warps_m = 1;
  std::int64_t scratch_bytes = 0;
  std::int64_t flags = 0;  ///< so many of the first pieces are awaited, one by one
};

/// One of them.
struct Piece {
  tile::Builder& b;
  const BodyFacts& facts;
  const Config& config;
  tile::Id number;              ///< of one rank's, where they are dealt by ranks; a scalar
  tile::Id turn = tile::kNone;  ///< number of that rank in the order of dealing
  /// Whose it is, where the order says so.
  std::function<tile::Id()> rank = {};
  /// Returns once piece `number` of those of that rank that an earlier phase makes is there.
  std::function<void(tile::Id number)> await = {};

  /// An extent as an i64 scalar.
  [[nodiscard]] tile::Id scalar(const Dim& dim) const {
    return scalar_of(b, Expr(dim), facts.body.symbols());
  }
};

/// 1 in a config whose warps have roles: a thread of further warps fills a ring by bulk copies, and
/// the others multiply beside it. The ring runs on from piece to piece. Where the unit that
/// multiplies has a memory for sums, it is a thread of one more warp that does so, into slots for
/// sums; the others take sums from there, while it multiplies for the next piece.
inline constexpr const char* kRingSetting = "ring";

/// How pieces are done so. The step of the ring that begins a piece, an i32, is given to the roles;
/// they return the one that follows it.
struct RingWork {
  struct Steps {
    tile::Id of_operands, of_sums;
  };
  /// Empty where a config with a ring can be emitted; else the reason, for people.
  std::string (*refuse)(const BodyFacts& facts, const Config& config, const Target& target);
  std::vector<tile::Id> (*allocate)(tile::Builder& b, const BodyFacts& facts, const Config& config);
  /// Of the ring of operands, or that of sums.
  tile::Id (*compute)(const Piece& piece, std::span<const tile::Id> shared, tile::Id step);
  tile::Id (*fill)(const Piece& piece, std::span<const tile::Id> shared, tile::Id step);
  /// Null where threads that compute always multiply.
  Steps (*multiply)(const Piece& piece, std::span<const tile::Id> shared,
                    const Steps& steps) = nullptr;
  /// Whether those that compute have all sums of a piece in registers at one time; null: they do.
  bool (*holds_sums)(const BodyFacts& facts, const Target& target) = nullptr;
};

[[nodiscard]] inline bool has_ring(const Config& config) {
  const auto ring = config.find(kRingSetting);
  return ring != config.end() && ring->second != 0;
}

/// What a block does at one place: it computes one piece of a result, and knows no grid, no other
/// block, and nothing of when other ranks do what. Kernels are made of such (kernel/kernel.h).
struct Work {
  std::span<const Setting> settings = {};  ///< what it reads of a config
  /// Whether such a body is this work's, be it able to express it or not; null: any.
  bool (*matches)(const Graph& body) = nullptr;
  /// Empty when it can express a body that matches; else the reason, for people. Null: any.
  std::string (*refuse)(const BodyFacts& facts) = nullptr;
  /// What a tuner may choose from, beginning with the default; null where it has no numbers of its
  /// own. None changes an order of summation, so results do not depend on the choice.
  std::vector<Config> (*configs)(const BodyFacts& facts, const Target& target) = nullptr;
  /// A rough time of its matmuls in their tiles, without the launch.
  double (*rough_ns)(const BodyFacts& facts, const Config& config, const Bindings& bindings,
                     const Target& target) = nullptr;
  /// The same of a work without matmuls, as one of joined kernels: its blocks are few, and wait for
  /// memory more often.
  double (*resident_ns)(const BodyFacts& facts, const Config& config, const Bindings& bindings,
                        const Target& target) = nullptr;
  /// Nothing where this body leaves it nothing to do.
  std::optional<Pieces> (*pieces)(const BodyFacts& facts, const Config& config);
  /// Emits what all pieces read, such as a pointer, in front of them.
  tile::Id (*prepare)(tile::Builder& b, const BodyFacts& facts) = nullptr;
  void (*emit)(const Piece& piece) = nullptr;
  /// The same for configs with kRingSetting, null for a work that has none: what both roles use is
  /// allocated in front of them.
  const RingWork* by_ring = nullptr;
};

}  // namespace braid
