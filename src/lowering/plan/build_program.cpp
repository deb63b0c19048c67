#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <unordered_map>

#include "braid/error.h"
#include "codegen/protocol.h"
#include "ir/op_registry.h"
#include "ir/views.h"
#include "lowering/fuse/kernel_body.h"
#include "lowering/passes.h"
#include "lowering/plan/cost.h"
#include "lowering/plan/lifetimes.h"
#include "lowering/plan/plan_memory.h"

// build_program: a graph of kernels becomes a plan.
//
// Each kernel (or bare copy) is a step on stream 0; equal kernels are one ProgramKernel. Views are
// names for the buffer of the value behind them. A kernel writes an output of the graph straight
// into its io buffer; a copy step at the end does it where that cannot be: for a graph input, a
// communication buffer, and a value whose buffer is another output already. copy_ is a copy step
// into a graph input.
// A step that waits for other ranks owns the flag words and the scratch that its kernel asks for:
// buffers of their own kind in its group's arena, live in the whole program. The last such step of
// each group ends with a barrier, so that no rank still reads when the next run starts to write.
// Refuses any other node: it should be inside a kernel by now.
namespace braid {
namespace {

constexpr std::int64_t kSymmetricAlignment = std::int64_t{2} << 20U;
constexpr std::int64_t kAlignment = 256;

class Builder {
 public:
  Builder(const Graph& graph, PassContext& context)
      : graph_(graph),
        context_(context),
        buffer_of_(graph.values().size(), -1),
        written_to_io_(graph.values().size(), false) {
    program_.name = graph.name();
    program_.target = context.target;
    program_.ranks_per_device = context.ranks_per_device;
    program_.symbols = graph.symbols();
    program_.groups = graph.groups();
    program_.world = world_size(graph);
  }

  Program run(std::span<const std::string> output_names) {
    add_inputs();
    choose_direct_outputs();
    for (const Node& node : graph_.nodes()) add_node(node);
    add_outputs(output_names);
    add_communication();
    add_arenas();
    set_lifetimes();
    place_buffers();
    program_.hash = hash_of(program_);
    return std::move(program_);
  }

 private:
  /// Where a buffer will lie, before the arenas have indices.
  struct Place {
    ArenaKind kind;
    std::string group;
    bool operator<(const Place& other) const {
      return std::tie(kind, group) < std::tie(other.kind, other.group);
    }
  };

  int& buffer_of(ValueId value) { return buffer_of_[static_cast<std::size_t>(value)]; }
  Buffer& buffer(int id) { return program_.buffers[static_cast<std::size_t>(id)]; }

  int add_buffer(std::string name, const TensorType& type, Place place) {
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

  void add_inputs() {
    for (std::size_t i = 0; i < graph_.inputs().size(); ++i) {
      const GraphInput& input = graph_.inputs()[i];
      const bool parameter = input.kind == InputKind::kParameter;
      const int id = add_buffer(input.name, input.type,
                                {parameter ? ArenaKind::kParameters : ArenaKind::kIo, ""});
      buffer_of(graph_.input_values()[i]) = id;
      program_.inputs.push_back({input.name, id, input.type, input.kind, input.per_rank});
    }
  }

  /// The value whose bytes a value names.
  ValueId base(ValueId value) const {
    for (;;) {
      const NodeId producer = graph_.value(value).producer;
      if (producer < 0 || !names_bytes(graph_.node(producer).op_name())) return value;
      value = graph_.node(producer).inputs[0];
    }
  }

  bool can_lie_in_io(ValueId value) const {
    return graph_.value(value).producer >= 0 && graph_.value(value).comm_group.empty();
  }

  void choose_direct_outputs() {
    for (ValueId output : graph_.outputs()) {
      const ValueId value = base(output);
      if (can_lie_in_io(value)) written_to_io_[static_cast<std::size_t>(value)] = true;
    }
  }

  int add_result(ValueId value) {
    const Value& v = graph_.value(value);
    Place place{ArenaKind::kWorkspace, ""};
    if (!v.comm_group.empty()) {
      place = {ArenaKind::kSymmetric, v.comm_group};
    } else if (written_to_io_[static_cast<std::size_t>(value)]) {
      place = {ArenaKind::kIo, ""};
    }
    return buffer_of(value) = add_buffer(v.name, v.type, std::move(place));
  }

  void add_node(const Node& node) {
    Step step;
    step.name = node.name;
    switch (node.op->op_class) {
      case OpClass::kView:
        if (!names_bytes(node.op_name())) break;
        buffer_of(node.outputs[0]) = buffer_of(node.inputs[0]);
        return;
      case OpClass::kCopy:
        step.kind = Step::Kind::kCopy;
        step.source = buffer_of(node.inputs[0]);
        step.destination = add_result(node.outputs[0]);
        program_.steps.push_back(std::move(step));
        return;
      case OpClass::kMutation:
        step.kind = Step::Kind::kCopy;
        step.source = buffer_of(node.inputs[1]);
        step.destination = buffer_of(node.inputs[0]);
        buffer_of(node.outputs[0]) = step.destination;
        program_.steps.push_back(std::move(step));
        return;
      case OpClass::kKernel:
        step.kernel = find_kernel(node);
        if (const auto* indexed = node.attr<Config>("indexed")) step.indexed = *indexed;
        for (ValueId input : node.inputs) step.inputs.push_back(buffer_of(input));
        for (ValueId output : node.outputs) step.outputs.push_back(add_result(output));
        program_.steps.push_back(std::move(step));
        return;
      default:
        break;
    }
    throw_invalid(node.name, fmt::format("found {}; expected kernel, view and copy nodes only: run "
                                         "fuse first",
                                         node.op_name()));
  }

  /// The index of the node's kernel. `fuse` shares bodies as objects; a graph that was read from
  /// JSON has equal ones apart.
  int find_kernel(const Node& node) {
    const auto& body = *node.attr<std::shared_ptr<const Graph>>("body");
    const auto& config = *node.attr<Config>("config");
    auto& known = kernels_of_body_[body.get()];
    for (int kernel : known) {
      if (program_.kernels[static_cast<std::size_t>(kernel)].spec.config == config) return kernel;
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
      if (!can_lie_in_io(base(output)) || given[static_cast<std::size_t>(id)]) {
        const int copy = add_buffer(name, graph_.type(output), {ArenaKind::kIo, ""});
        Step step;
        step.kind = Step::Kind::kCopy;
        step.name = name;
        step.source = id;
        step.destination = copy;
        program_.steps.push_back(std::move(step));
        id = copy;
      } else {
        given[static_cast<std::size_t>(id)] = true;
      }
      program_.outputs.push_back({.name = name, .buffer = id, .type = graph_.type(output)});
    }
  }

  /// A buffer of 32-bit words that a step owns, or none.
  int add_words(const Step& step, BufferKind kind, std::int64_t words, const std::string& group) {
    if (words == 0) return -1;
    const bool flags = kind == BufferKind::kFlags;
    const int id = add_buffer(fmt::format("{} {}", step.name, flags ? "flags" : "scratch"),
                              {DType::kI32, {words}}, {ArenaKind::kSymmetric, group});
    buffer(id).kind = kind;
    return id;
  }

  void add_communication() {
    std::map<std::string, int, std::less<>> last_waiting;  // group -> its last step
    for (std::size_t s = 0; s < program_.steps.size(); ++s) {
      Step& step = program_.steps[s];
      const std::string& group = comm_group(program_, step);
      if (group.empty()) continue;
      const Requirements& needs = program_.kernels[static_cast<std::size_t>(step.kernel)].needs;
      step.flags = add_words(step, BufferKind::kFlags, needs.flag_words, group);
      step.scratch = add_words(step, BufferKind::kScratch, (needs.scratch_bytes + 3) / 4, group);
      last_waiting[group] = static_cast<int>(s);
    }
    for (const auto& [group, step] : last_waiting) {
      program_.steps[static_cast<std::size_t>(step)].closing_barrier = true;
    }
  }

  void add_arenas() {
    std::map<Place, int> arenas;
    for (const Place& place : places_) arenas.emplace(place, 0);
    for (auto& [place, index] : arenas) {
      index = static_cast<int>(program_.arenas.size());
      program_.arenas.push_back({place.kind, place.group, 0});
    }
    for (std::size_t i = 0; i < places_.size(); ++i) {
      program_.buffers[i].arena = arenas.find(places_[i])->second;
    }
  }

  void set_lifetimes() {
    const std::vector<StepRange> ranges = lifetimes(program_, StepOrder(program_.steps));
    for (std::size_t i = 0; i < ranges.size(); ++i) {
      program_.buffers[i].first_step = ranges[i].first;
      program_.buffers[i].last_step = ranges[i].last;
    }
  }

  void place_buffers() {
    std::vector<std::vector<Buffer*>> in_arena(program_.arenas.size());
    for (Buffer& b : program_.buffers) in_arena[static_cast<std::size_t>(b.arena)].push_back(&b);
    for (std::size_t a = 0; a < in_arena.size(); ++a) {
      Arena& arena = program_.arenas[a];
      std::vector<Lifetime> lives;
      for (const Buffer* b : in_arena[a]) {
        lives.push_back({b->bytes, b->first_step, b->last_step, kAlignment});
      }
      const bool symmetric = arena.kind == ArenaKind::kSymmetric;
      const std::int64_t head = symmetric ? protocol::kHeadBytes : 0;
      const bool fixed = arena.kind == ArenaKind::kParameters || arena.kind == ArenaKind::kIo;
      const MemoryPlan plan = fixed ? side_by_side(lives) : plan_memory(lives);
      for (std::size_t i = 0; i < lives.size(); ++i)
        in_arena[a][i]->offset = head + plan.offsets[i];
      arena.bytes = round_up(head + plan.total, symmetric ? kSymmetricAlignment : 1);
    }
  }

  static MemoryPlan side_by_side(std::span<const Lifetime> buffers) {
    MemoryPlan plan;
    for (const Lifetime& b : buffers) {
      plan.offsets.push_back(plan.total);
      plan.total += round_up(b.size, b.alignment);
    }
    return plan;
  }

  const Graph& graph_;
  PassContext& context_;
  Program program_;
  std::vector<Place> places_;        ///< of each buffer
  std::vector<int> buffer_of_;       ///< of each value
  std::vector<bool> written_to_io_;  ///< values whose kernel writes an output
  std::unordered_map<const Graph*, std::vector<int>> kernels_of_body_;  ///< met so far
  std::unordered_map<std::string, int> kernels_;                        ///< by their text
};

}  // namespace

Program build_program(const Graph& graph, PassContext& context,
                      std::span<const std::string> output_names) {
  Program program = Builder(graph, context).run(output_names);
  verify(program);
  return program;
}

}  // namespace braid
