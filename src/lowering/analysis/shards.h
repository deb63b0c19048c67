#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lowering/analysis/match.h"
#include "lowering/pass.h"

namespace braid {

/// A rank's chunk of a value along `dim`.
struct Shard {
  std::string_view group;
  std::size_t dim = 0;
  auto operator<=>(const Shard&) const = default;
};

/// The plan of sequence_parallel, complete before anything is rewritten: which nodes become local,
/// that is, compute chunks from chunks. The wait of a reduced sum is local too, where a
/// reduce_scatter replaces the all_reduce.
class ShardPlan {
 public:
  ShardPlan(const Graph& graph, const PassConfig& config);

  [[nodiscard]] bool empty() const { return empty_; }
  /// One remark for each norm behind an all_reduce, or nearly so.
  [[nodiscard]] const std::vector<Remark>& remarks() const { return remarks_; }
  /// The chunks that the node computes on; nothing when it is no local node.
  [[nodiscard]] const std::optional<Shard>& local(NodeId node) const { return on_[node]; }
  /// What a local node computes of the value; nothing when no local node gives it.
  [[nodiscard]] std::optional<Shard> shard(ValueId value) const;
  /// Whether operand `index` of a local node is a chunk (a weight, for example, is whole).
  [[nodiscard]] bool takes_chunk(NodeId node, std::size_t index) const;
  /// Whether someone reads the whole value.
  [[nodiscard]] bool is_needed_whole(ValueId value) const { return whole_[value]; }
  /// The type of the chunk.
  [[nodiscard]] TensorType chunk_type(ValueId value, const Shard& shard) const;

 private:
  /// The answer for one node: it could compute chunks `out` from chunks `in`, or the reason why
  /// not. If all are empty, the node does not concern the pass.
  struct Answer {
    std::optional<Shard> in;
    std::optional<Shard> out;
    Reason reason;
  };
  [[nodiscard]] Answer ask(const Node& node);
  [[nodiscard]] Answer ask_wait(const Node& node) const;
  [[nodiscard]] Answer ask_view(const Node& node) const;
  [[nodiscard]] Answer ask_sum(const Node& node);
  [[nodiscard]] Answer ask_norm(const Node& node, Answer stream);
  [[nodiscard]] Reason cannot_cut(ValueId value, const Shard& shard);
  [[nodiscard]] const std::vector<bool>& replicated(std::string_view group);
  [[nodiscard]] bool reads_chunk(NodeId reader, ValueId value) const;
  void drop_idle_nodes();
  void find_whole_values();
  void report(NodeId id, const Reason& reason);
  [[nodiscard]] std::string whole_reader(ValueId value) const;

  [[nodiscard]] std::int64_t ranks(std::string_view group) const {
    return graph_.groups().find(group)->second.size;
  }
  [[nodiscard]] const std::string& name(ValueId value) const { return graph_.value(value).name; }

  const Graph& graph_;
  const PassConfig& config_;
  Uses uses_;
  Pattern sum_;
  std::vector<bool> overwritten_;
  std::map<std::string_view, std::vector<bool>> replicated_;
  bool empty_ = true;
  std::vector<Remark> remarks_;
  std::vector<std::optional<Shard>> on_;     ///< for each node
  std::vector<std::optional<Shard>> shard_;  ///< for each value
  std::vector<Reason> why_not_;              ///< for each value that depends on an all_reduce
  std::vector<bool> whole_;                  ///< for each value
  std::vector<NodeId> whole_reader_;         ///< the first reader; -1: none, or the graph output
};

}  // namespace braid
