// Greedy decoding with a cache: the prompts of several sequences in one run, then one new token of
// each in a run. Keys and values stay in the executable's states. The graph is one of llama.py, and
// its weights are random.
//
//     examples/llama.py --layers 2 --dtype f32 --world 2 >llama.json
//     decode llama.json
#include <braid/executable.h>
#include <braid/reference.h>

#include <algorithm>
#include <cstdio>
#include <exception>

using braid::DType, braid::HostTensor;
using Integers = std::vector<std::int64_t>;

// Its tokens, of which the cache has the keys and values of the first `cached`.
struct Sequence {
  Integers tokens;
  std::size_t cached = 0;
};

static std::int64_t extent(const braid::Graph& graph, std::string_view input, std::size_t dim) {
  for (const auto& each : graph.inputs()) {
    if (each.name == input) return each.type.shape.at(dim).evaluate({});
  }
  throw std::runtime_error("the graph has no input " + std::string(input));
}

// Runs what is new of all sequences, and appends to each the token that is most likely next.
static void step(const braid::Graph& graph, braid::Executable& executable,
                 std::vector<Sequence>& sequences) {
  const std::int64_t pages = extent(graph, "page_table", 1);
  const std::int64_t page_size = extent(graph, "l0_keys", 1);
  const std::int64_t count = std::ssize(sequences);
  Integers tokens, positions, slots, table, lengths, starts{0};
  for (std::int64_t s = 0; s < count; ++s) {
    Sequence& sequence = sequences[s];
    const auto page = [&](std::int64_t of) { return of * count + s; };  // any page will do
    for (; sequence.cached < sequence.tokens.size(); ++sequence.cached) {
      const auto position = static_cast<std::int64_t>(sequence.cached);
      tokens.push_back(sequence.tokens[sequence.cached]);
      positions.push_back(position);
      slots.push_back(page(position / page_size) * page_size + position % page_size);
    }
    for (std::int64_t of = 0; of < pages; ++of) table.push_back(page(of));
    lengths.push_back(std::ssize(sequence.tokens));
    starts.push_back(std::ssize(tokens));
  }
  executable.prepare({{"T", std::ssize(tokens)}});  // a server keeps a plan for each size
  const auto set = [&](const char* name, Integers shape, const Integers& values) {
    const HostTensor tensor = HostTensor::from_integers(DType::kI32, std::move(shape), values);
    for (int rank = 0; rank < braid::world_size(graph); ++rank) {
      executable.set_input(rank, name, tensor);
    }
  };
  set("tokens", {std::ssize(tokens)}, tokens);
  set("positions", {std::ssize(tokens)}, positions);
  set("slots", {std::ssize(tokens)}, slots);
  set("page_table", {count, pages}, table);
  set("lengths", {count}, lengths);
  set("starts", {count + 1}, starts);
  executable.run();
  const std::vector<double> logits = executable.output(0, "logits").to_doubles();
  const std::ptrdiff_t vocabulary = std::ssize(logits) / count;
  for (std::int64_t s = 0; s < count; ++s) {
    const auto row = logits.begin() + s * vocabulary;
    sequences[s].tokens.push_back(std::max_element(row, row + vocabulary) - row);
  }
}

int main(int argc, char** argv) try {
  if (argc != 2) throw std::runtime_error("expected a graph of llama.py");
  constexpr int kSteps = 64;
  const braid::Graph graph = braid::load_graph(argv[1]);
  braid::WorldOptions options;
  options.device = braid::DeviceKind::kCpu;
  options.world = static_cast<int>(braid::world_size(graph));
  auto world = braid::World::open(options);
  auto executable = braid::Executable::compile(graph, world);

  executable.prepare({{"T", 1}});
  const auto weights = braid::random_inputs(graph, {{"T", 1}}, /*seed=*/1);
  for (int rank = 0; rank < world.size(); ++rank) {
    for (std::size_t i = 0; i < graph.inputs().size(); ++i) {
      const auto& input = graph.inputs()[i];
      if (input.kind != braid::InputKind::kParameter) continue;
      executable.set_input(rank, input.name, weights[rank][i]);
    }
  }
  std::vector<Sequence> sequences(extent(graph, "lengths", 0));
  for (std::size_t s = 0; s < sequences.size(); ++s) {
    for (std::size_t i = 0; i < 1 + 7 * s; ++i) {
      sequences[s].tokens.push_back(static_cast<std::int64_t>(3 * s + i));
    }
  }
  for (int i = 0; i < kSteps; ++i) step(graph, executable, sequences);
  for (const Sequence& sequence : sequences) {
    const std::size_t prompt = sequence.tokens.size() - kSteps;
    for (std::size_t i = 0; i < sequence.tokens.size(); ++i) {
      std::printf("%s%d",
                  i == 0        ? ""
                  : i == prompt ? " | "
                                : " ",
                  static_cast<int>(sequence.tokens[i]));
    }
    std::printf("\n");
  }
} catch (const std::exception& error) {
  std::fprintf(stderr, "decode: %s\n", error.what());
  return 1;
}
