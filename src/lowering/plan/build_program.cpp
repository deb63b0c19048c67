#include <fmt/format.h>

#include <map>
#include <tuple>
#include <unordered_map>

#include "ir/fail.h"
#include "ir/mutation.h"
#include "ir/op_registry.h"
#include "ir/views.h"
#include "lowering/fuse/kernel_body.h"
#include "lowering/passes.h"
#include "lowering/plan/collective_step.h"
#include "lowering/plan/cost.h"
#include "lowering/plan/lay_out.h"
#include "lowering/plan/plan_steps.h"
#include "lowering/plan/updates.h"
#include "lowering/schedule/streams.h"

// build_program: turns a graph of kernels into a plan.
//
// Each kernel (or bare copy) is a step on stream 0; equal kernels share one ProgramKernel. Views
// name the buffer of the value behind them. A kernel writes a graph output straight into its io
// buffer. Where that is impossible (a graph input, a communication buffer, a value that is another
// output already) a copy step at the end does it. copy_ is a copy step into a graph input, or
// nothing where the input was updated in place (updates.h).
//
// A step that waits for other ranks owns the flag words and the scratch that its kernel asks for:
// buffers of their own kind in its group's arena, live in the whole program. Of each group the last
// step that reads or writes the operands of peers ends with a barrier, so that no rank still reads
// when the next run starts to write. Packets need none: a rank's run is over when it has all that
// were sent to it in that run, and those of the next go to the other half (work/packets.cpp).
// Copies from peers go on a stream of their own: it waits for what wrote the operand, then for all
// ranks to have come so far (a barrier step, launched once for all operands that are there by
// then), then copies; each wait_tensor is a wait for its copy's event. Chunks are slices. A kernel
// or copy writes its result straight into the value that joins it with others, where those chunks
// are aligned; else a copy step does it, as for values that have a place already.
// A collective that is left to a communicator is a step on another stream, which starts where the
// kernels' stream stands; its wait_tensor is a wait for its event, too.
// Refuses any other node: it should be inside a kernel by now.
namespace braid {
namespace {

constexpr std::string_view kChunk = "chunk_by_rank";
constexpr std::string_view kJoin = "join_by_rank";
constexpr std::string_view kChunkOfPeer = "copy_chunk_from_peer";

class Builder {
 public:
  Builder(const Graph& graph, PassContext& context)
      : graph_(graph),
        context_(context),
        buffer_of_(graph.values().size(), -1),
        event_of_(graph.values().size(), -1),
        in_place_(updated_in_place(graph)),
        written_to_io_(graph.values().size(), false),
        joined_(graph.values().size()),
        placements_(place_on_streams(graph, context.ranks_per_device)),
        steps_(program_, context) {
    program_.name = graph.name();
    program_.target = context.target;
    program_.ranks_per_device = context.ranks_per_device;
    program_.batch_invariant = context.config.batch_invariant;
    program_.symbols = graph.symbols();
    program_.groups = graph.groups();
    program_.world = world_size(graph);
  }

  Program run(std::span<const std::string> output_names) {
    add_inputs();
    choose_direct_outputs();
    choose_joined();
    for (const Node& node : graph_.nodes()) add_node(node);
    add_outputs(output_names);
    steps_.finish();
    add_words();
    lay_out(program_, places_, context_);
    program_.hash = hash_of(program_);
    return std::move(program_);
  }

 private:
  int& buffer_of(ValueId value) { return buffer_of_[value]; }
  Buffer& buffer(int id) { return program_.buffers[id]; }

  int add_buffer(std::string name, const TensorType& type, ArenaKey place) {
    program_.buffers.push_back({.kind = BufferKind::kTensor,
                                .name = std::move(name),
                                .type = type,
                                .arena = -1,
                                .offset = 0,
                                .bytes = max_bytes(type, graph_.symbols()),
                                .first_step = -1,
                                .last_step = -1});
    places_.push_back(std::move(place));
    return static_cast<int>(program_.buffers.size()) - 1;
  }

  int add_slice(std::string name, const TensorType& type, int of, const Node& node,
                std::int64_t shift) {
    const std::string& group = *node.attr<std::string>("group");
    cut_by_.emplace(of, group);
    const int id = add_buffer(std::move(name), type, places_[of]);
    buffer(id).slice = Slice{of, group, shift};
    return id;
  }

  void add_inputs() {
    for (std::size_t i = 0; i < graph_.inputs().size(); ++i) {
      const GraphInput& input = graph_.inputs()[i];
      const ArenaKind arena = input.kind == InputKind::kParameter ? ArenaKind::kParameters
                              : input.kind == InputKind::kState   ? ArenaKind::kState
                                                                  : ArenaKind::kIo;
      const int id = add_buffer(input.name, input.type, {arena, ""});
      buffer_of(graph_.input_values()[i]) = id;
      program_.inputs.push_back({input.name, id, input.type, input.kind, input.per_rank});
    }
  }

  ValueId base(ValueId value) const { return named_value(graph_, value); }

  bool can_lie_in_io(ValueId value) const {
    const NodeId producer = graph_.value(value).producer;
    return producer >= 0 && !in_place_[value] && graph_.value(value).comm_group.empty() &&
           graph_.node(producer).op_name() != kChunk;
  }

  void choose_direct_outputs() {
    for (ValueId output : graph_.outputs()) {
      const ValueId value = base(output);
      if (can_lie_in_io(value)) written_to_io_[value] = true;
    }
  }

  /// Decides which values are written directly into the value that joins them.
  void choose_joined() {
    for (const Node& node : graph_.nodes()) {
      if (node.op_name() != kJoin || !graph_.value(node.outputs[0]).comm_group.empty()) continue;
      for (std::size_t k = 0; k < node.inputs.size(); ++k) {
        const ValueId chunk = base(node.inputs[k]);
        Joined& joined = joined_[chunk];
        if (joined.by == nullptr && can_lie_in_join(chunk)) joined = {&node, k};
      }
    }
  }

  bool can_lie_in_join(ValueId chunk) const {
    const Value& value = graph_.value(chunk);
    if (value.producer < 0 || !value.comm_group.empty() || written_to_io_[chunk]) return false;
    const OpClass c = graph_.node(value.producer).op->op_class;
    return (c == OpClass::kKernel || c == OpClass::kCopy || c == OpClass::kPeerCopy) &&
           has_aligned_chunks(value.type, graph_.symbols());
  }

  int add_result(ValueId value) {
    const Value& v = graph_.value(value);
    if (const Joined& joined = joined_[value]; joined.by != nullptr) {
      return buffer_of(value) = add_slice(v.name, v.type, buffer_of_join(*joined.by), *joined.by,
                                          static_cast<std::int64_t>(joined.operand));
    }
    ArenaKey place{ArenaKind::kWorkspace, ""};
    if (!v.comm_group.empty()) {
      place = {ArenaKind::kSymmetric, v.comm_group};
    } else if (written_to_io_[value]) {
      place = {ArenaKind::kIo, ""};
    }
    return buffer_of(value) = add_buffer(v.name, v.type, std::move(place));
  }

  /// The buffer of a join. It exists from the first chunk on.
  int buffer_of_join(const Node& join) {
    const ValueId whole = join.outputs[0];
    return buffer_of(whole) >= 0 ? buffer_of(whole) : add_result(whole);
  }

  void add_node(const Node& node) {
    switch (node.op->op_class) {
      case OpClass::kView:
        if (!names_bytes(node.op_name())) break;
        buffer_of(node.outputs[0]) = buffer_of(node.inputs[0]);
        return;
      case OpClass::kCopy:
        return steps_.copy(node.name, buffer_of(node.inputs[0]), add_result(node.outputs[0]));
      case OpClass::kMutation:
        buffer_of(node.outputs[0]) = buffer_of(node.inputs[0]);
        if (buffer_of(node.inputs[1]) == buffer_of(node.inputs[0])) return;  // it was updated
        return steps_.copy(node.name, buffer_of(node.inputs[1]), buffer_of(node.inputs[0]));
      case OpClass::kCollective:
        if (!is_asynchronous(node)) break;
        return add_collective(node);
      case OpClass::kKernel:
        return add_kernel(node);
      case OpClass::kChunk:
        return node.op_name() == kChunk ? add_chunk(node) : add_join(node);
      case OpClass::kPeerCopy:
        return add_copy_from_peer(node);
      case OpClass::kWait:
        if (event_of_[node.inputs[0]] < 0) break;
        steps_.await(node.name, event_of_[node.inputs[0]]);
        buffer_of(node.outputs[0]) = buffer_of(node.inputs[0]);
        return;
      default:
        break;
    }
    throw_invalid(node.name, "found {}; expected kernel, view and copy nodes only: run fuse first",
                  node.op_name());
  }

  void add_kernel(const Node& node) {
    Step step;
    step.name = node.name;
    step.kernel = find_kernel(node);
    if (const auto* indexed = node.attr<Config>("indexed")) step.indexed = *indexed;
    for (ValueId input : node.inputs) step.inputs.push_back(buffer_of(input));
    for (const Update& update : updates_of(node)) {
      int& tensor = step.inputs[update.operand];
      const ValueId result = node.outputs[update.result];
      if (in_place_[result]) {
        buffer_of(result) = tensor;
      } else {
        steps_.copy(node.name, tensor, add_result(result));
        tensor = buffer_of(result);
      }
    }
    for (ValueId output : node.outputs) {
      step.outputs.push_back(buffer_of(output) >= 0 ? buffer_of(output) : add_result(output));
    }
    steps_.push(std::move(step));
  }

  /// The buffer of a chunk's operand; a copy of it where it is itself a slice, or has slices of
  /// another group.
  int buffer_to_cut(const Node& node, const ArenaKey& place) {
    const int id = buffer_of(node.inputs[0]);
    const std::string& group = *node.attr<std::string>("group");
    const auto cut = cut_by_.find(id);
    if (!buffer(id).slice && (cut == cut_by_.end() || cut->second == group)) return id;
    const auto [copy, is_new] = copies_to_cut_.try_emplace({id, group, place.kind}, -1);
    if (is_new) {
      const std::string name = fmt::format("{} for {}", buffer(id).name, group);
      copy->second = add_buffer(name, graph_.type(node.inputs[0]), place);
      steps_.copy(node.name, id, copy->second);
    }
    return copy->second;
  }

  void add_chunk(const Node& node) {
    const Value& chunk = graph_.value(node.outputs[0]);
    const int slice =
        add_slice(chunk.name, chunk.type, buffer_to_cut(node, {ArenaKind::kWorkspace, ""}), node,
                  *node.attr<std::int64_t>("shift"));
    buffer_of(node.outputs[0]) = slice;
    const bool shared = !chunk.comm_group.empty();
    if (!shared && has_aligned_chunks(chunk.type, graph_.symbols())) return;
    steps_.copy(node.name, slice, add_result(node.outputs[0]));
  }

  void add_join(const Node& node) {
    const int whole = buffer_of_join(node);
    for (std::size_t k = 0; k < node.inputs.size(); ++k) {
      const Joined& joined = joined_[base(node.inputs[k])];
      if (joined.by == &node && joined.operand == k) continue;
      const Value& chunk = graph_.value(node.inputs[k]);
      const std::string name = fmt::format("{} of {}", chunk.name, node.name);
      steps_.copy(node.name, buffer_of(node.inputs[k]),
                  add_slice(name, chunk.type, whole, node, static_cast<std::int64_t>(k)));
    }
  }

  void add_copy_from_peer(const Node& node) {
    const std::string& group = *node.attr<std::string>("group");
    const std::int64_t shift = *node.attr<std::int64_t>("shift");
    Step step{.kind = Step::Kind::kCopy, .name = node.name, .stream = placement_of(node).stream};
    step.source = buffer_of(node.inputs[0]);
    if (node.op_name() == kChunkOfPeer) {
      // For the peer's operand: this rank's chunk there is as many ranks before the peer's own.
      const std::int64_t size = graph_.groups().find(group)->second.size;
      const Value& chunk = graph_.value(node.outputs[0]);
      step.source = add_slice(chunk.name + " of a peer", chunk.type,
                              buffer_to_cut(node, {ArenaKind::kSymmetric, group}), node,
                              (size - shift) % size);
    }
    step.destination = add_result(node.outputs[0]);
    step.source_peer = Step::Peer{group, shift};
    event_of_[node.outputs[0]] = steps_.copy_from_peer(std::move(step));
  }

  void add_collective(const Node& node) {
    Step step = collective_step(graph_, node);
    step.stream = placement_of(node).stream;
    step.inputs = {buffer_of(node.inputs[0])};
    step.outputs = {add_result(node.outputs[0])};
    event_of_[node.outputs[0]] = steps_.collective(std::move(step));
  }

  [[nodiscard]] const Placement& placement_of(const Node& node) const {
    return placements_[graph_.value(node.outputs[0]).producer];
  }

  /// The kernel's configuration, with the number of multiprocessors it must leave free where it
  /// would fill them all.
  Config config_of(const Node& node) {
    Config config = *node.attr<Config>("config");
    const auto leaves = config.find(std::string(kLeavesSetting));
    if (leaves != config.end()) leaves->second = placement_of(node).leaves;
    return config;
  }

  /// The index of the node's kernel. `fuse` shares equal bodies as objects; a graph read from JSON
  /// has equal ones apart.
  int find_kernel(const Node& node) {
    const auto& body = *node.attr<std::shared_ptr<const Graph>>("body");
    const Config config = config_of(node);
    auto& known = kernels_of_body_[body.get()];
    for (int kernel : known) {
      if (program_.kernels[kernel].spec.config == config) return kernel;
    }
    known.push_back(find_equal_kernel(node, body, config));
    return known.back();
  }

  int find_equal_kernel(const Node& node, const std::shared_ptr<const Graph>& body,
                        const Config& config) {
    std::string key;
    for (const auto& [name, value] : config)
      fmt::format_to(std::back_inserter(key), "{}={},", name, value);
    key += ';';
    key += body_key(*body);
    const auto [entry, is_new] =
        kernels_.try_emplace(std::move(key), static_cast<int>(program_.kernels.size()));
    if (is_new) {
      check_kernel(node);
      ProgramKernel kernel{.spec = {body, config}, .needs = {}};
      kernel.needs = requirements(kernel.spec, context_.target, context_.ranks_per_device);
      program_.kernels.push_back(std::move(kernel));
    }
    return entry->second;
  }

  void add_outputs(std::span<const std::string> names) {
    std::vector<bool> given(program_.buffers.size(), false);
    for (std::size_t i = 0; i < graph_.outputs().size(); ++i) {
      const ValueId output = graph_.outputs()[i];
      const std::string& name = i < names.size() ? names[i] : graph_.value(output).name;
      int id = buffer_of(output);
      if (!can_lie_in_io(base(output)) || given[id]) {
        const int copy = add_buffer(name, graph_.type(output), {ArenaKind::kIo, ""});
        steps_.copy(name, id, copy);
        id = copy;
      } else {
        given[id] = true;
      }
      program_.outputs.push_back({.name = name, .buffer = id, .type = graph_.type(output)});
    }
  }

  /// Adds a buffer of 32-bit words that a step owns; -1 for none.
  int add_words_of(const Step& step, BufferKind kind, std::int64_t words,
                   const std::string& group) {
    if (words == 0) return -1;
    const bool flags = kind == BufferKind::kFlags;
    const ArenaKind arena = group.empty() ? ArenaKind::kState : ArenaKind::kSymmetric;
    const int id = add_buffer(fmt::format("{} {}", step.name, flags ? "flags" : "scratch"),
                              {DType::kI32, {words}}, {arena, group});
    buffer(id).kind = kind;
    return id;
  }

  void add_words() {
    for (Step& step : program_.steps) {
      if (step.kernel < 0) continue;
      const std::string& group = comm_group(program_, step);
      const Requirements& needs = program_.kernels[step.kernel].needs;
      step.flags = add_words_of(step, BufferKind::kFlags, needs.flag_words, group);
      step.scratch = add_words_of(step, BufferKind::kScratch, (needs.scratch_bytes + 3) / 4, group);
    }
  }

  const Graph& graph_;
  PassContext& context_;
  Program program_;
  std::vector<ArenaKey> places_;       ///< for each buffer
  std::vector<int> buffer_of_;         ///< for each value
  std::vector<int> event_of_;          ///< for each value made in the background: the event of its
                                       ///< step
  std::map<int, std::string> cut_by_;  ///< buffers with slices, and the group of these
  std::map<std::tuple<int, std::string, ArenaKind>, int> copies_to_cut_;
  std::vector<bool> in_place_;       ///< updates that are made where the updated tensor lies
  std::vector<bool> written_to_io_;  ///< values whose kernel writes a graph output
  /// The join in whose result a value is written.
  struct Joined {
    const Node* by = nullptr;
    std::size_t operand = 0;
  };
  std::vector<Joined> joined_;                                          ///< for each value
  std::vector<Placement> placements_;                                   ///< for each node
  std::unordered_map<const Graph*, std::vector<int>> kernels_of_body_;  ///< the kernels of a body
                                                                        ///< so far
  PlanSteps steps_;
  std::unordered_map<std::string, int> kernels_;  ///< by their text
};

}  // namespace

Program build_program(const Graph& graph, PassContext& context,
                      std::span<const std::string> output_names) {
  Program program = Builder(graph, context).run(output_names);
  verify(program);
  return program;
}

}  // namespace braid
