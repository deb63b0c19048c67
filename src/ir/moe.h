#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace braid {

// Mixture of experts: names of operands and results (ops_moe.cpp).

/// Operands of moe_experts behind the rows.
enum MoeOperand : std::size_t {
  kMoeIndices = 1,  ///< the experts of each token
  kMoeWeights,      ///< of what they give
  kMoeGateUp,
  kMoeDown,
  kMoeGateUpBias,  ///< with kMoeDownBias, or neither
  kMoeDownBias
};

/// Results of moe_routing. Its rows are the choices of all tokens, sorted by expert.
enum MoeRouted : std::size_t {
  kRoutedTokens,  ///< the token of each row
  kRoutedEnds,    ///< past the last row of each expert
  kRoutedPlaces,  ///< the row of each choice
  kRoutedExperts  ///< the expert of each row
};

/// A block goes through the choices for each expert.
inline constexpr std::int64_t kMostExperts = 4096;

inline constexpr std::string_view kSwiglu = "swiglu", kClampedSwiglu = "clamped_swiglu";
/// Of clamped_swiglu: (up + 1) * gate * sigmoid(alpha * gate), with gate at most the limit and up
/// within it.
inline constexpr double kSwigluLimit = 7, kSwigluAlpha = 1.702;

}  // namespace braid
