#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <span>

#include "ir/buckets.h"
#include "ir/fail.h"
#include "ir/groups.h"
#include "ir/json_read.h"
#include "ir/text.h"
#include "ir/text_file.h"
#include "lowering/fuse/kernel_body.h"
#include "lowering/plan/collective_step.h"
#include "lowering/plan/kind_names.h"
#include "lowering/plan/program.h"

// parse_program: reads a plan from an untrusted source. Whatever follows from other parts of the
// plan is computed again, and must equal what the file states: what a kernel needs, from its body
// and configuration; lifetimes and hazards, from the steps (verify).
namespace braid {
namespace {

using namespace json_read;

constexpr std::string_view kVersionKey = "braid_program";
/// Limit for one list of a variant; sums over all lists cannot overflow.
constexpr int kMostEntries = 1 << 24;

/// Runs `make` and adds the place to its errors.
template <class Make>
auto at_place(const Place& place, Make make) {
  try {
    return make();
  } catch (const Error& error) {
    fail_at(place, error.what());
  }
}

std::vector<int> read_indices(const json& value, const Place& place) {
  std::vector<int> indices;
  each_item(value, place,
            [&](const json& v, const Place& p) { indices.push_back(read_index(v, p)); });
  return indices;
}

/// The one of the enumerators that is called so.
template <class T>
void read_choice(const Fields& fields, const Place& place, std::string_view key,
                 std::span<const std::string_view> names, T& to) {
  const json& name = fields.get(key);
  const auto known = std::ranges::find(names, read_string(name, place / key));
  if (known == names.end()) {
    fail_type(name, place / key, fmt::format("one of \"{}\"", fmt::join(names, "\", \"")));
  }
  to = static_cast<T>(known - names.begin());
}

class ProgramReader {
 public:
  Program read(const json& document, const Place& place) {
    const Fields fields(document, place,
                        {kVersionKey, "name", "target", "world", "ranks_per_device",
                         "batch_invariant", "device", "symbols", "groups", "arenas", "buffers",
                         "kernels", "steps", "inputs", "outputs", "variants", "hash"});
    if (const json& version = fields.get(kVersionKey); version != 1) {
      fail_type(version, place / kVersionKey, "version 1");
    }
    read_head(fields, place);
    if (fields.find("variants") != nullptr) read_variants(fields, place);
    fields.each("arenas", [&](const json& v, const Place& p) { read_arena(v, p); });
    fields.each("buffers", [&](const json& v, const Place& p) { read_buffer(v, p); });
    fields.each("kernels", [&](const json& v, const Place& p) { read_kernel(v, p); });
    fields.each("steps", [&](const json& v, const Place& p) { read_step(v, p); });
    fields.each("inputs",
                [&](const json& v, const Place& p) { read_tensor(v, p, program_.inputs); });
    fields.each("outputs",
                [&](const json& v, const Place& p) { read_tensor(v, p, program_.outputs); });
    at_place(place, [&] { verify(program_); });
    check_derived(fields, place);
    program_.hash = hash_of(program_);
    if (const json* hash = fields.find("hash"); hash != nullptr && *hash != program_.hash) {
      fail_type(*hash, place / "hash", "\"" + program_.hash + "\"");
    }
    return std::move(program_);
  }

 private:
  void read_head(const Fields& fields, const Place& place) {
    fields.read("name", program_.name);
    tables_.set_name(program_.name);
    read_symbols(tables_, fields.get("symbols"), place / "symbols");
    read_groups(tables_, fields.get("groups"), place / "groups");
    program_.symbols = tables_.symbols();
    program_.groups = tables_.groups();
    program_.target = at_place(place / "target",
                               [&] { return Target::parse(fields.get<std::string>("target")); });
    fields.read("world", program_.world);
    const std::int64_t world = at_place(place / "groups", [&] { return world_size(tables_); });
    if (program_.world != world) {
      fail_type(fields.get("world"), place / "world", fmt::format("{}, as the groups say", world));
    }
    fields.read("ranks_per_device", program_.ranks_per_device);
    if (program_.ranks_per_device < 1 || program_.ranks_per_device > program_.world) {
      fail_type(fields.get("ranks_per_device"), place / "ranks_per_device",
                fmt::format("1 to {}", program_.world));
    }
    fields.read_if("batch_invariant", program_.batch_invariant);
  }

  /// Reads the variants. Their list ranges are consecutive, and end with the program's.
  void read_variants(const Fields& fields, const Place& place) {
    const Place list = place / "variants";
    const auto& items = read_array(fields.get("variants"), list);
    if (items.empty() || items.size() > kMostBuckets + 1) {
      fail_at(list, "{} variants; expected 1 to {}", items.size(), kMostBuckets + 1);
    }
    Variant own;
    const auto follow = [](IndexRange& range, const json& value, const Place& where) {
      const int count = read_index(value, where);
      if (count > kMostEntries) fail_type(value, where, fmt::format("at most {}", kMostEntries));
      range = {range.end, range.end + count};
    };
    const auto count_of = [&](std::string_view key) {
      return read_array(fields.get(key), place / key).size();
    };
    for (std::size_t v = 0; v < items.size(); ++v) {
      const Place here = list / v;
      const Fields variant(items[v], here, {"symbols", "buffers", "kernels", "steps"});
      Graph tables(program_.name);
      read_symbols(tables, variant.get("symbols"), here / "symbols");
      own.symbols = tables.symbols();
      follow(own.buffers, variant.get("buffers"), here / "buffers");
      follow(own.kernels, variant.get("kernels"), here / "kernels");
      follow(own.steps, variant.get("steps"), here / "steps");
      program_.variants.push_back(own);
    }
    const int shared = static_cast<int>(std::min<std::size_t>(count_of("buffers"), kMostEntries)) -
                       own.buffers.end;
    for (Variant& variant : program_.variants) {
      variant.buffers.first += shared;
      variant.buffers.end += shared;
    }
  }

  /// The symbols of the variant that owns this entry of a list, else the program's.
  [[nodiscard]] const SymbolTable& symbols_of(IndexRange Variant::*list, std::size_t index) const {
    for (const Variant& variant : program_.variants) {
      if ((variant.*list).has(index)) return variant.symbols;
    }
    return program_.symbols;
  }

  void read_arena(const json& value, const Place& place) {
    const Fields fields(value, place, {"name", "bytes"});
    const auto name = fields.get<std::string>("name");
    constexpr std::string_view kSymmetric =
        kArenaNames[static_cast<std::size_t>(ArenaKind::kSymmetric)];
    Arena arena{ArenaKind::kSymmetric, "", fields.get<std::int64_t>("bytes")};
    if (name.starts_with(kSymmetric)) {
      arena.group = name.substr(kSymmetric.size());
    } else {
      read_choice(fields, place, "name", kArenaNames, arena.kind);
    }
    program_.arenas.push_back(std::move(arena));
  }

  /// A type that uses known symbols only and has no negative dims.
  TensorType read_type(const Fields& fields, const Place& place) {
    TensorType type{fields.get<DType>("dtype"), fields.get<Shape>("shape")};
    at_place(place / "shape", [&] {
      // Adding an input checks the shape.
      return tables_.add_input({.name = fmt::format("t{}", tables_.inputs().size()), .type = type});
    });
    return type;
  }

  /// Reads a slice. Other properties follow from the buffer that it is part of.
  void read_slice(const json& value, const Place& place) {
    const Fields fields(value, place, {"name", "dtype", "shape", "slice"});
    const Place here = place / "slice";
    const Fields slice(fields.get("slice"), here, {"of", "group", "shift"});
    const std::size_t count = program_.buffers.size();
    const int of = slice.get<int>("of");
    if (static_cast<std::size_t>(of) >= count || program_.buffers[of].slice) {
      fail_type(slice.get("of"), here / "of", "an earlier buffer that is no slice");
    }
    Buffer b = program_.buffers[of];
    fields.read("name", b.name);
    b.type = read_type(fields, place);
    b.bytes = (numel(b.type.shape) * static_cast<std::int64_t>(dtype_size(b.type.dtype)))
                  .max(symbols_of(&Variant::buffers, program_.buffers.size()));
    b.slice = Slice{of, slice.get<std::string>("group"), slice.get<std::int64_t>("shift")};
    program_.buffers.push_back(std::move(b));
  }

  void read_buffer(const json& value, const Place& place) {
    if (read_object(value, place).contains("slice")) return read_slice(value, place);
    const Fields fields(
        value, place,
        {"name", "kind", "dtype", "shape", "arena", "offset", "bytes", "first_step", "last_step"});
    Buffer b;
    fields.read("name", b.name);
    read_choice(fields, place, "kind", kBufferNames, b.kind);
    b.type = read_type(fields, place);
    fields.read("arena", b.arena);
    fields.read("offset", b.offset);
    fields.read("bytes", b.bytes);
    fields.read("first_step", b.first_step);
    fields.read("last_step", b.last_step);
    program_.buffers.push_back(std::move(b));
  }

  void read_kernel(const json& value, const Place& place) {
    const Fields fields(
        value, place,
        {"template", "config", "grid", "threads", "shared_bytes", "comm_group", "flag_words",
         "scratch_bytes", "attributes", "remote", "clobbered", "params", "body"});
    ProgramKernel kernel;
    fields.read("config", kernel.spec.config);
    kernel.spec.body =
        std::make_shared<const Graph>(read_graph(fields.get("body"), place / "body"));
    at_place(place, [&] {
      check_kernel(kernel.spec);
      kernel.needs = requirements(kernel.spec, program_.target, program_.ranks_per_device);
    });
    program_.kernels.push_back(std::move(kernel));
  }

  /// Checks it as `fuse` would make it: as a node with the program's symbols and groups.
  void check_kernel(const KernelSpec& spec) const {
    const Graph& body = *spec.body;
    if (body.inputs().empty() && body.nodes().empty() && body.outputs().empty()) {
      return check_barrier(spec);
    }
    Graph graph(program_.name);
    add_tables(graph, symbols_of(&Variant::kernels, program_.kernels.size()), program_.groups);
    std::vector<ValueId> operands;
    for (const GraphInput& input : spec.body->inputs()) {
      operands.push_back(graph.add_input(
          {.name = fmt::format("i{}", operands.size()), .type = input.type, .per_rank = true}));
    }
    const NodeId node = graph.add_node("kernel", "kernel", std::move(operands),
                                       {{"body", spec.body}, {"config", spec.config}});
    braid::check_kernel(graph.node(node));
  }

  /// A barrier has neither operands nor results, unlike any node of a graph.
  void check_barrier(const KernelSpec& spec) const {
    for (const auto& [name, group] : spec.body->groups()) {
      const auto known = program_.groups.find(name);
      if (known != program_.groups.end() && known->second == group) continue;
      throw_invalid("body", "the body's group {} is not that of the program", quote(name));
    }
    check_spec("barrier", spec);
  }

  /// Checks that the device facts, and the needs of kernels where the file states them, equal the
  /// computed ones.
  void check_derived(const Fields& fields, const Place& place) const {
    Document document;
    parse(to_json(program_), Place(""), document);
    const json& device = document.root["device"];
    if (const json* found = fields.find("device"); found != nullptr && *found != device) {
      fail_type(*found, place / "device", device.dump());
    }
    const json& given = fields.get("kernels");
    const json& known = document.root["kernels"];
    const Place kernels = place / "kernels";
    for (std::size_t k = 0; k < known.size(); ++k) {
      const Place here = kernels / k;
      for (const auto& [key, value] : known[k].items()) {
        if (key == "body") continue;
        const auto found = given[k].find(key);
        if (found != given[k].end() && *found != value) fail_type(*found, here / key, value.dump());
      }
      for (const auto& [key, value] : given[k].items()) {
        if (!known[k].contains(key)) fail_type(value, here / key, "none");
      }
    }
  }

  void read_step(const json& value, const Place& place) {
    using Kind = Step::Kind;
    const Fields fields(value, place, {"name",
                                       "stream",
                                       "kind",
                                       "kernel",
                                       "inputs",
                                       "outputs",
                                       "indexed",
                                       "flags",
                                       "closing_barrier",
                                       "scratch",
                                       "source",
                                       "destination",
                                       "source_peer",
                                       "destination_peer",
                                       "op",
                                       "group",
                                       "reduce_op",
                                       "dtype",
                                       "shape",
                                       "src",
                                       "splits",
                                       "event"});
    Step step;
    fields.read("name", step.name);
    fields.read("stream", step.stream);
    read_choice(fields, place, "kind", kStepNames, step.kind);
    switch (step.kind) {
      case Kind::kCopy:
        fields.read("source", step.source);
        fields.read("destination", step.destination);
        step.source_peer = read_peer(fields, place, "source_peer");
        step.destination_peer = read_peer(fields, place, "destination_peer");
        break;
      case Kind::kEventRecord:
      case Kind::kEventWait:
        fields.read("event", step.event);
        break;
      case Kind::kCollective:
        read_collective(fields, place, step);
        break;
      case Kind::kLaunch:
      case Kind::kBarrier:
        fields.read("kernel", step.kernel);
        read_operands(fields, place, step);
        fields.read_if("flags", step.flags);
        fields.read_if("scratch", step.scratch);
        fields.read_if("closing_barrier", step.closing_barrier);
        fields.read_if("indexed", step.indexed);
        break;
    }
    program_.steps.push_back(std::move(step));
  }

  void read_collective(const Fields& fields, const Place& place, Step& step) {
    fields.read("op", step.op);
    fields.read("group", step.group);
    fields.read("reduce_op", step.reduce_op);
    step.operand = read_type(fields, place);
    fields.read_if("src", step.src);
    if (const json* splits = fields.find("splits")) {
      for (const int rows : read_indices(*splits, place / "splits")) step.splits.push_back(rows);
    }
    read_operands(fields, place, step);
    at_place(place, [&] { return collective_of(program_, step); });
  }

  static std::optional<Step::Peer> read_peer(const Fields& fields, const Place& place,
                                             std::string_view key) {
    const json* value = fields.find(key);
    if (value == nullptr) return std::nullopt;
    const Place here = place / key;
    const Fields peer(*value, here, {"group", "shift"});
    return Step::Peer{peer.get<std::string>("group"), peer.get<std::int64_t>("shift")};
  }

  static void read_operands(const Fields& fields, const Place& place, Step& step) {
    step.inputs = read_indices(fields.get("inputs"), place / "inputs");
    step.outputs = read_indices(fields.get("outputs"), place / "outputs");
  }

  void read_tensor(const json& value, const Place& place, std::vector<ProgramTensor>& tensors) {
    const bool input = &tensors == &program_.inputs;
    const Fields fields(value, place, {"name", "buffer", "dtype", "shape", "kind", "per_rank"});
    ProgramTensor tensor;
    fields.read("name", tensor.name);
    if (input && !inputs_.insert(tensor.name).second) {
      fail_at(place / "name", "there is another {}", quote(tensor.name));
    }
    fields.read("buffer", tensor.buffer);
    tensor.type = read_type(fields, place);
    if (input) {
      read_choice(fields, place, "kind", kInputNames, tensor.kind);
      fields.read("per_rank", tensor.per_rank);
    }
    tensors.push_back(std::move(tensor));
  }

  Program program_;
  std::set<std::string> inputs_;
  Graph tables_;  ///< has the symbols, the groups, and an input of each type
};

}  // namespace

bool is_program(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r\n";
  const auto skip = [&](std::size_t at) {
    return std::min(text.find_first_not_of(kBlank, at), text.size());
  };
  const std::size_t open = skip(0);
  if (open == text.size() || text[open] != '{') return false;
  return text.substr(skip(open + 1)).starts_with(fmt::format("\"{}\"", kVersionKey));
}

Program parse_program(std::string_view text, std::string_view where) {
  const Place place(where);
  Document document;
  parse(text, place, document);
  return ProgramReader().read(document.root, place);
}

Program load_program(const std::string& path) {
  return parse_program(read_text(path, kMaxGraphBytes), path);
}

}  // namespace braid
