#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "braid/dim.h"
#include "braid/dtype.h"
#include "braid/export.h"

namespace braid {

class Graph;
class Rewriter;  // src/lowering/rewrite.h
struct OpDef;    // src/ir/op_registry.h

/// Index of a value in its graph.
using ValueId = std::int32_t;
/// Index of a node in its graph; nodes are in program order.
using NodeId = std::int32_t;

/// What is known of a value before it exists.
struct BRAID_API TensorType {
  DType dtype = DType::kF32;                           ///< of its elements
  Shape shape;                                         ///< the outermost extent first
  bool operator==(const TensorType&) const = default;  ///< of both
  [[nodiscard]] std::string str() const;               ///< "bf16[T, 2048]"
};

/// Attributes are typed by the op's registry entry. A `Shape` is the target of a view; a graph is
/// the body of a kernel node.
using AttrValue =
    std::variant<bool, std::int64_t, double, std::string, DType, std::vector<std::int64_t>, Shape,
                 std::map<std::string, std::int64_t>, std::shared_ptr<const Graph>>;
/// Attributes by name.
using Attrs = std::map<std::string, AttrValue, std::less<>>;

/// A process group: `size` ranks. On a mesh, `ranks` lists the members of each instance. When
/// `symmetric`, the group may use symmetric memory.
struct Group {
  std::int64_t size = 1;                          ///< ranks of each instance
  bool symmetric = true;                          ///< may use symmetric memory
  std::vector<std::vector<std::int64_t>> ranks;   ///< of each instance; empty: one, of all
  bool operator==(const Group&) const = default;  ///< of all three
};
/// Groups by name.
using GroupTable = std::map<std::string, Group, std::less<>>;

/// What an input or a node gives.
struct Value {
  std::string name;      ///< the node's name, or "name:i" when the node has several results
  TensorType type;       ///< inferred by the op
  NodeId producer = -1;  ///< -1 for a graph input
  int result = 0;        ///< which result of the producer, or which graph input
  /// When not empty: this value is a communication buffer of that group (set by lowering).
  std::string comm_group;
};

/// How long an input keeps what it holds.
enum class InputKind : std::uint8_t {
  kActivation,  ///< given anew in each run
  kParameter,   ///< given once
};

/// What a graph takes.
struct GraphInput {
  std::string name;                         ///< of its value
  TensorType type;                          ///< on each rank
  InputKind kind = InputKind::kActivation;  ///< whether it stays
  bool per_rank = false;                    ///< false: equal values on all ranks
};

/// An op on values.
struct BRAID_API Node {
  std::string name;                                  ///< unique in its graph
  const OpDef* op = nullptr;                         ///< its registry entry
  std::vector<ValueId> inputs;                       ///< in the op's order
  Attrs attrs;                                       ///< complete: defaults are filled in
  std::map<std::string, double, std::less<>> hints;  ///< for example runtime_ns
  std::vector<ValueId> outputs;                      ///< in the op's order

  [[nodiscard]] std::string_view op_name() const;  ///< as in JSON
  /// The attribute, or nothing; the type must be the registry's.
  template <class T>
  [[nodiscard]] const T* attr(std::string_view key) const {
    auto it = attrs.find(key);
    return it == attrs.end() ? nullptr : std::get_if<T>(&it->second);
  }
};

/// The program of one rank; all ranks run it (SPMD). SSA over tensors, append-only: a node uses
/// only values that exist already, so the nodes are always in topological order. A pass builds a
/// new graph from an old one.
class BRAID_API Graph {
 public:
  Graph() = default;
  /// An empty graph.
  explicit Graph(std::string name) : name_(std::move(name)) {}

  // Each of these throws kInvalidArgument with the place and what was expected.

  /// Symbols must be added before they are used.
  void add_symbol(std::string name, Symbol symbol);
  /// So must groups.
  void add_group(std::string name, Group group);
  void set_name(std::string name) { name_ = std::move(name); }  ///< for people, and in errors
  /// Appends an input.
  ValueId add_input(GraphInput input);
  /// Checks the attributes, fills in defaults and infers the result types from the op's registry
  /// entry. An empty name is replaced by a fresh one ("v12").
  NodeId add_node(std::string name, std::string_view op, std::vector<ValueId> inputs,
                  Attrs attrs = {});
  /// Something that passes may use: "runtime_ns".
  void set_hint(NodeId node, std::string key, double value);
  /// Makes a value a communication buffer of a group.
  void set_comm_group(ValueId value, std::string group);
  void add_output(ValueId value);  ///< appends an output
  /// Forgets the symbols and groups that nothing in the graph mentions: the body of a kernel
  /// carries its own only.
  void drop_unused_tables();

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] const SymbolTable& symbols() const { return symbols_; }
  [[nodiscard]] const GroupTable& groups() const { return groups_; }
  [[nodiscard]] const std::vector<GraphInput>& inputs() const { return inputs_; }
  [[nodiscard]] const std::vector<ValueId>& input_values() const { return input_values_; }
  [[nodiscard]] const std::vector<Node>& nodes() const { return nodes_; }
  [[nodiscard]] const std::vector<Value>& values() const { return values_; }
  [[nodiscard]] const std::vector<ValueId>& outputs() const { return outputs_; }
  [[nodiscard]] const Node& node(NodeId id) const { return nodes_[static_cast<std::size_t>(id)]; }
  [[nodiscard]] const Value& value(ValueId id) const {
    return values_[static_cast<std::size_t>(id)];
  }
  [[nodiscard]] const TensorType& type(ValueId id) const { return value(id).type; }
  /// The value of that name (an input, a node, or "node:i").
  [[nodiscard]] std::optional<ValueId> find(std::string_view name) const;

  /// For each value the nodes that use it, in order, each once; graph outputs are not counted.
  [[nodiscard]] std::vector<std::vector<NodeId>> users() const;
  /// For each value whether it is a graph output.
  [[nodiscard]] std::vector<bool> output_flags() const;

  /// The same graph (interface only: name, symbols, groups, inputs) without nodes and outputs.
  [[nodiscard]] Graph clone_interface() const;

 private:
  friend class Rewriter;
  /// A place in the table of names: a value, or ~node for a node with several results.
  struct NameSlot {
    std::uint32_t hash = 0;
    std::optional<ValueId> id;
  };

  ValueId add_value(Value value);
  [[nodiscard]] std::optional<ValueId> find_name(std::string_view name) const;
  void add_name(std::string_view name, ValueId id);
  void check_free(const std::string& name) const;
  std::string fresh_name();

  std::string name_;
  SymbolTable symbols_;
  GroupTable groups_;
  std::vector<GraphInput> inputs_;
  std::vector<ValueId> input_values_;
  std::vector<Node> nodes_;
  std::vector<Value> values_;
  std::vector<ValueId> outputs_;
  std::vector<NameSlot> names_;  ///< open addressing, a power of two; ids say where the names stand
  std::size_t name_count_ = 0;
  std::int64_t next_fresh_ = 0;
};

/// Reads the JSON form (docs/graph.schema.json). `where` names the file in errors. Limits on size
/// and nesting come before work. Throws kInvalidArgument; load_graph kEnvironment for I/O, too.
[[nodiscard]] BRAID_API Graph parse_graph(std::string_view json, std::string_view where = "");
[[nodiscard]] BRAID_API Graph load_graph(const std::string& path);
/// The JSON form, which parse_graph reads back to an equal graph, lowered and kernel nodes
/// included.
[[nodiscard]] BRAID_API std::string to_json(const Graph& graph);
/// A text for people, one line per node: `%h = mm(%x, %w1) : bf16[T, 2048]`.
[[nodiscard]] BRAID_API std::string to_text(const Graph& graph);

/// Checks the rules that building node by node cannot see: every collective passes
/// through wait_tensor before use (unless lowered), names are unique, outputs exist. Throws.
BRAID_API void verify(const Graph& graph);

/// The number of ranks the graph runs on: the product over its mesh, the size of its only group, 1
/// without groups.
/// Throws kInvalidArgument when the groups do not agree.
[[nodiscard]] BRAID_API std::int64_t world_size(const Graph& graph);
/// The same program on `world` ranks: its only group, which must have no rank lists, takes that
/// size (shapes stay local). With other groups the sizes must agree already; otherwise throws.
[[nodiscard]] BRAID_API Graph with_world_size(const Graph& graph, std::int64_t world);

}  // namespace braid
