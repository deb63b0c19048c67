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
struct OpDef;  // opaque: the op's entry in the registry

/// Index of a value in its graph.
using ValueId = std::int32_t;
/// Index of a node in its graph; nodes are in program order.
using NodeId = std::int32_t;

/// The static type of a value: dtype and symbolic shape.
struct BRAID_API TensorType {
  DType dtype = DType::kF32;
  Shape shape;  ///< outermost extent first
  bool operator==(const TensorType&) const = default;
  [[nodiscard]] std::string str() const;  ///< for example "bf16[T, 2048]"
};

/// The value of an attribute; the op's registry entry says which alternative. A `Shape` is the
/// target shape of a view; a graph is the body of a kernel node.
using AttrValue =
    std::variant<bool, std::int64_t, double, std::string, DType, std::vector<std::int64_t>, Shape,
                 std::map<std::string, std::int64_t>, std::shared_ptr<const Graph>>;
using Attrs = std::map<std::string, AttrValue, std::less<>>;

/// A process group. On a mesh it has several instances, one for each row of `ranks`.
struct Group {
  std::int64_t size = 1;                         ///< ranks per instance
  bool symmetric = true;                         ///< its arenas and kernels may use symmetric
                                                 ///< memory
  std::vector<std::vector<std::int64_t>> ranks;  ///< members of each instance; empty means one
                                                 ///< instance of all ranks
  bool operator==(const Group&) const = default;
};
using GroupTable = std::map<std::string, Group, std::less<>>;

/// A graph input or a result of a node.
struct Value {
  std::string name;      ///< the node's name, or "name:i" when the node has several results
  TensorType type;       ///< inferred by the op
  NodeId producer = -1;  ///< the node, or -1 for a graph input
  int result = 0;        ///< index among the producer's results, or among the graph inputs
  /// Set by lowering: the value is a communication buffer of that group. Empty for all others.
  std::string comm_group;
};

/// How often the caller supplies an input.
enum class InputKind : std::uint8_t {
  kActivation,  ///< anew for each run
  kParameter,   ///< once; kept from run to run
  kState,       ///< never, or once: zeros at first; kept from run to run, as the graph's runs leave
                ///< it (a KV cache)
};

struct GraphInput {
  std::string name;  ///< name of its value
  TensorType type;   ///< type on each rank
  InputKind kind = InputKind::kActivation;
  bool per_rank = false;  ///< false: all ranks are given equal values
};

/// One application of an op to values.
struct BRAID_API Node {
  std::string name;                                  ///< unique in its graph
  const OpDef* op = nullptr;                         ///< an opaque handle; see op_name()
  std::vector<ValueId> inputs;                       ///< operands, in the op's order
  Attrs attrs;                                       ///< complete: defaults are filled in
  std::map<std::string, double, std::less<>> hints;  ///< optional numbers for passes, such as
                                                     ///< runtime_ns
  std::vector<ValueId> outputs;                      ///< results, in the op's order

  [[nodiscard]] std::string_view op_name() const;  ///< the op's name in JSON
  /// The attribute, or null where it is absent. T must be the type that the registry gives it.
  template <class T>
  [[nodiscard]] const T* attr(std::string_view key) const {
    auto it = attrs.find(key);
    return it == attrs.end() ? nullptr : std::get_if<T>(&it->second);
  }
};

/// The program of one rank; all ranks run it (SPMD). It is in SSA form over tensors and
/// append-only: a node can use only values that exist already, so the nodes are always in
/// topological order. A pass builds a new graph from an old one.
class BRAID_API Graph {
 public:
  Graph() = default;
  explicit Graph(std::string name) : name_(std::move(name)) {}

  // Each of these functions throws kInvalidArgument with the place and what was expected.

  /// Adds a symbol. It must be there before a shape uses it.
  void add_symbol(std::string name, Symbol symbol);
  /// Adds a group. It must be there before a node uses it.
  void add_group(std::string name, Group group);
  void set_name(std::string name) { name_ = std::move(name); }  ///< shown to people and in errors
  /// Appends an input and returns its value.
  ValueId add_input(GraphInput input);
  /// Appends a node. Checks the attributes, fills in defaults and infers the result types, all from
  /// the op's registry entry. An empty name becomes a fresh one ("v12").
  NodeId add_node(std::string name, std::string_view op, std::vector<ValueId> inputs,
                  Attrs attrs = {});
  /// Appends a copy of a node of another graph that has the same symbols and groups, with operands
  /// of the same types and without its hints. Only the name is checked, and nothing is inferred.
  NodeId add_copy(const Graph& from, const Node& node, std::string name,
                  std::vector<ValueId> inputs);
  /// Attaches a number that passes may use, such as "runtime_ns".
  void set_hint(NodeId node, std::string key, double value);
  /// Makes a value a communication buffer of a group.
  void set_comm_group(ValueId value, std::string group);
  void add_output(ValueId value);  ///< appends an output
  /// Drops unused symbols and groups, so that the body of a kernel has only its own.
  void drop_unused_tables();

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] const SymbolTable& symbols() const { return symbols_; }
  [[nodiscard]] const GroupTable& groups() const { return groups_; }
  [[nodiscard]] const std::vector<GraphInput>& inputs() const { return inputs_; }
  [[nodiscard]] const std::vector<ValueId>& input_values() const { return input_values_; }
  [[nodiscard]] const std::vector<Node>& nodes() const { return nodes_; }
  [[nodiscard]] const std::vector<Value>& values() const { return values_; }
  [[nodiscard]] const std::vector<ValueId>& outputs() const { return outputs_; }
  [[nodiscard]] const Node& node(NodeId id) const { return nodes_[id]; }
  [[nodiscard]] const Value& value(ValueId id) const { return values_[id]; }
  [[nodiscard]] const TensorType& type(ValueId id) const { return value(id).type; }
  /// The value of that name: an input, a node, or "node:i".
  [[nodiscard]] std::optional<ValueId> find(std::string_view name) const;

  /// For each value the nodes that use it, in program order, each once. Graph outputs do not count.
  [[nodiscard]] std::vector<std::vector<NodeId>> users() const;
  /// For each value whether it is a graph output.
  [[nodiscard]] std::vector<bool> output_flags() const;

  /// A graph with the same name, symbols, groups and inputs, but without nodes and outputs.
  [[nodiscard]] Graph clone_interface() const;

 private:
  /// A slot of the name table: a value's id, or ~node for a node with several results.
  struct NameSlot {
    std::uint32_t hash = 0;
    std::optional<ValueId> id;
  };

  ValueId add_value(Value value);
  /// Appends a node with results of these types, whose names are free.
  NodeId append(Node node, std::vector<TensorType> types);
  [[nodiscard]] std::optional<ValueId> find_name(std::string_view name) const;
  void add_name(std::string_view name, ValueId id);
  void check_free(const std::string& name) const;
  void check_result_names(const std::string& name, std::size_t results) const;
  std::string fresh_name();

  std::string name_;
  SymbolTable symbols_;
  GroupTable groups_;
  std::vector<GraphInput> inputs_;
  std::vector<ValueId> input_values_;
  std::vector<Node> nodes_;
  std::vector<Value> values_;
  std::vector<ValueId> outputs_;
  std::vector<NameSlot> names_;  ///< hash table with open addressing; its size is a power of two,
                                 ///< and the names themselves are in values_ and nodes_
  std::size_t name_count_ = 0;
  std::int64_t next_fresh_ = 0;
};

/// Reads the JSON form (docs/graph.schema.json). `where` names the file in errors. Sizes and
/// nesting are limited before any work is done. Throws kInvalidArgument; load_graph also throws
/// kEnvironment for I/O errors.
[[nodiscard]] BRAID_API Graph parse_graph(std::string_view json, std::string_view where = "");
[[nodiscard]] BRAID_API Graph load_graph(const std::string& path);
/// The JSON form. parse_graph reads it back to an equal graph, lowered and kernel nodes included.
[[nodiscard]] BRAID_API std::string to_json(const Graph& graph);
/// A text form for people, one node per line: `%h = mm(%x, %w1) : bf16[T, 2048]`.
[[nodiscard]] BRAID_API std::string to_text(const Graph& graph);

/// Checks the rules that adding nodes one by one cannot: every collective goes through wait_tensor
/// before it is used (unless lowered), names are unique, outputs exist. Throws kInvalidArgument.
BRAID_API void verify(const Graph& graph);

/// The number of ranks that the graph runs on: the product over its mesh, the size of its only
/// group, or 1 without groups. Throws kInvalidArgument when the groups do not agree.
[[nodiscard]] BRAID_API std::int64_t world_size(const Graph& graph);
/// The same program on `world` ranks. A graph with one group, without rank lists, gets that group
/// size; shapes are per rank and stay. Otherwise the sizes must already agree, or it throws
/// kInvalidArgument.
[[nodiscard]] BRAID_API Graph with_world_size(const Graph& graph, std::int64_t world);

}  // namespace braid
