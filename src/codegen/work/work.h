#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "codegen/body/analysis.h"
#include "codegen/tile/builder.h"

namespace braid {

/// Which piece a work shall emit; scalars.
struct Piece {
  tile::Id number;  ///< of the work's pieces; of one rank's, where these are dealt by ranks
  tile::Id turn = tile::kNone;  ///< number of that rank in the order of dealing
  /// Whose it is, where the order says so.
  std::function<tile::Id()> rank = {};
  /// Returns once piece `number` of those of `rank` that an earlier phase makes is there.
  std::function<void(tile::Id rank, tile::Id number)> await = {};
};
using Emit = std::function<void(const Piece&)>;

/// The pieces of a work in one kernel.
struct Pieces {
  Expr count = 1;            ///< of one rank, where they are dealt by ranks
  std::int64_t divisor = 1;  ///< of the count
  /// Emits what all pieces use; gives what emits one.
  std::function<Emit(tile::Builder&)> open;
  int columns = 8;  ///< tile::Program::columns, as the next two
  int warps_m = 1;
  std::int64_t scratch_bytes = 0;
  std::int64_t flags = 0;  ///< so many of the first pieces are awaited, one by one
};

/// How the numbers of a config are found.
struct Tuning {
  Config (*default_config)(const BodyFacts& facts, const Target& target) = nullptr;
  /// What a tuner may choose from, beginning with `base`, which has other works' numbers, too. None
  /// changes an order of summation, so results do not depend on the choice.
  std::vector<Config> (*candidates)(const BodyFacts& facts, const Target& target,
                                    const Config& base) = nullptr;
  /// A rough time of its matmuls in their tiles, without the launch.
  double (*rough_ns)(const BodyFacts& facts, const Config& config, const Bindings& bindings,
                     const Target& target) = nullptr;
};

/// What a block does at one place: it computes one piece of a result, and knows no grid, no other
/// block, and nothing of when other ranks do what. Kernels are made of such (kernel/phases.h).
struct Work {
  std::span<const Setting> settings = {};  ///< what it reads of a config
  /// Whether such a body is this work's, be it able to express it or not; null: any.
  bool (*matches)(const Graph& body) = nullptr;
  /// Empty when it can express a body that matches; else the reason, for people. Null: any.
  std::string (*refuse)(const BodyFacts& facts) = nullptr;
  Tuning tuning = {};
  /// Nothing where this body leaves it nothing to do.
  std::optional<Pieces> (*pieces)(const BodyFacts& facts, const Config& config);
};

/// That of pieces which have nothing in common.
[[nodiscard]] inline std::function<Emit(tile::Builder&)> each(
    std::function<void(tile::Builder&, const Piece&)> emit) {
  return [emit = std::move(emit)](tile::Builder& b) -> Emit {
    return [&b, emit](const Piece& piece) { emit(b, piece); };
  };
}

}  // namespace braid
