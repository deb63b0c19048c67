#pragma once

#include <nlohmann/json.hpp>

namespace braid::test {

/// A layer with everything of the real one and small extents: two ranks, T rows of 64.
inline nlohmann::ordered_json small_graph() {
  return nlohmann::ordered_json::parse(R"({
    "braid": 1, "name": "small",
    "symbols": {"T": {"min": 1, "max": 16}},
    "groups": {"tp": {"size": 2}},
    "inputs": [
      {"name": "x", "dtype": "bf16", "shape": ["T", 64]},
      {"name": "w", "dtype": "bf16", "shape": [64, 64], "kind": "parameter", "per_rank": true},
      {"name": "g", "dtype": "bf16", "shape": [64], "kind": "parameter"}],
    "nodes": [
      {"name": "h", "op": "mm", "inputs": ["x", "w"]},
      {"name": "a", "op": "silu", "inputs": ["h"]},
      {"name": "c", "op": "all_reduce", "inputs": ["a"],
       "attrs": {"reduce_op": "sum", "group": "tp"}},
      {"name": "s", "op": "wait_tensor", "inputs": ["c"]},
      {"name": "r", "op": "add", "inputs": ["s", "x"]},
      {"name": "y", "op": "rms_norm", "inputs": ["r", "g"], "attrs": {"eps": 1e-5}}],
    "outputs": ["y", "r"]})");
}

}  // namespace braid::test
