#pragma once

#include <cstdint>
#include <string>

#include "braid/graph.h"
#include "braid/pass_config.h"

// Fused nodes, and the options that run them, or plain collectives, in chunks.
namespace braid::testing {

inline const Dim kT = Dim::symbol("T");
inline constexpr DType kF32 = DType::kF32, kBF16 = DType::kBF16, kF16 = DType::kF16,
                       kF8 = DType::kF8E4M3;

inline PassConfig chunked() {
  PassConfig config;
  config.always_pipeline = true;
  return config;
}

inline PassConfig by_copies() {
  PassConfig config;
  config.by_copies = true;
  return config;
}

inline const Attrs kTp = {{"group", std::string("tp")}};
inline Attrs scattered(const char* op) {
  return {{"group", std::string("tp")}, {"reduce_op", std::string(op)}};
}
inline Attrs gathering(std::int64_t dim, bool return_a) {
  return {{"group", std::string("tp")}, {"gather_dim", dim}, {"return_A", return_a}};
}
inline Attrs scattering(std::int64_t dim, const char* reduce_op, bool return_mm) {
  return {{"group", std::string("tp")},
          {"scatter_dim", dim},
          {"reduce_op", std::string(reduce_op)},
          {"return_mm", return_mm}};
}

}  // namespace braid::testing
