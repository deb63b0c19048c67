#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "braid/graph.h"
#include "lowering/pass.h"

namespace braid::testing {

/// A program that is nothing but costs, on two ranks: every value is so many bytes, every node
/// takes so many nanoseconds. Values are known by name; nodes stand in the order of the calls.
class Costs {
 public:
  Costs();

  Costs& input(const std::string& name, std::int64_t bytes);
  Costs& compute(const std::string& name, const std::vector<std::string>& inputs,
                 std::int64_t bytes, double ns, const std::string& kind = "compute");
  /// Asynchronous; its result is as large as its operand.
  Costs& collective(const std::string& name, const std::string& operand, double ns);
  /// A collective that is complete when it ends, so it needs no wait.
  Costs& synchronous(const std::string& name, const std::string& operand, double ns);
  Costs& wait(const std::string& name, const std::string& of);
  /// Verified; with those outputs.
  [[nodiscard]] Graph graph(const std::vector<std::string>& outputs);

 private:
  [[nodiscard]] ValueId value(const std::string& name) const { return *graph_.find(name); }
  void add_collective(const std::string& name, const std::string& operand, const std::string& how,
                      double ns);
  Graph graph_;
};

/// The factors of the iterative passes are 1.
PassContext plain_costs();

/// The record of that node, of the last pass that made one.
const MoveRecord& record_of(const std::vector<MoveRecord>& records, const std::string& node);

/// A random program of costs with chains, several readers, dead nodes, matmuls, collectives of two
/// groups, some in place, waits far behind or at once, and memory that is overwritten.
Graph random_costs(std::uint64_t seed, int nodes);

}  // namespace braid::testing
