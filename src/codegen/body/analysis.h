#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "codegen/kernel/spec.h"

namespace braid {

/// How a kernel goes over what it reduces.
enum class Rows : std::uint8_t {
  kNone,    ///< it reduces nothing
  kHeld,    ///< trailing dims; a row fits in the registers of a block
  kWide,    ///< trailing dims; a loop over pieces of the row, once per reduction
  kStrided  ///< other dims, and those of a cumsum; each thread loops over them for its own results
};

/// What several works need to know of a body, found once for a question.
struct BodyFacts {
  const Graph& body;
  std::string refusal = {};  ///< not empty: no kernel computes the body, and why
  Shape space = {};  ///< the iteration space: what the kernel's full values are flat-equal to
  Rows rows = Rows::kNone;
  std::vector<bool> reduced = {};  ///< per dim of the space; empty without a reduction
  const Node* collective = nullptr;
  const Node* scan = nullptr;  ///< a cumsum, or a topk
  /// What the kernel puts in memory, or sends, before all else: the collective's operand where the
  /// kernel computes it, or the result that it gathers for its matmuls.
  ValueId apart = -1;
  std::vector<bool> per_row = {};  ///< per value: one element per row, not one per point
  bool narrow = false;             ///< 32-bit indices reach everything
  /// Of a kernel that is joined with others (kernel/joined.h): its blocks are all resident, and its
  /// nodes come behind so many.
  bool resident = false;
  int nodes_before = 0;

  /// Which output is computed apart; a number past them all where none is.
  [[nodiscard]] std::size_t output_apart() const;
  [[nodiscard]] Shape kept_dims() const;
  [[nodiscard]] Shape reduced_dims() const;
  /// What the error record calls a node.
  [[nodiscard]] int number_of(const Node& node) const;
  /// That of the collective; without one, the first.
  [[nodiscard]] const std::string& group() const;
  [[nodiscard]] std::int64_t world() const;
  [[nodiscard]] const TensorType& operand() const;
};

/// Every value is asked for at one place (docs/architecture.md, Tile programs): the rule that makes
/// a body one kernel without computing anything twice. An input may be read at several.
[[nodiscard]] BodyFacts analyze(const Graph& body);

/// For each value whether `value` is computed from it; of itself, too.
[[nodiscard]] std::vector<bool> computed_from(const Graph& body, ValueId value);
/// Why a kernel whose collective has a prologue would compute something twice, for that one is
/// over before what comes after the collective begins; else empty.
[[nodiscard]] std::string refuse_recomputed(const Graph& body, const Node& collective);

[[nodiscard]] bool is_matmul(const Node& node);
/// Which operand of a matmul is the left one.
[[nodiscard]] std::size_t first_matrix(const Node& matmul);
/// A reduction or a norm.
[[nodiscard]] bool is_reduction(const Node& node);

/// Whether the value is an input, or one seen through views and other movements alone.
[[nodiscard]] bool is_moved_input(const Graph& body, ValueId value);

/// The most tensors that a cat in a kernel has; two such cats fit in a kernel. Each tensor is a
/// load and a choice in every thread: with hundreds the compiler runs for minutes, and registers
/// spill.
inline constexpr std::size_t kMostCatOperands = 32;

/// The widest row a block holds in registers.
inline constexpr std::int64_t kMaxRow = 16384;

}  // namespace braid
