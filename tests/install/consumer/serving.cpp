// What a server does with an installed braid, on the cpu device. Usage: serving save|load
// DIRECTORY. Prints "ok", or the first line here that does not hold.

#include <braid/executable.h>
#include <braid/graph_builder.h>
#include <braid/tune.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <memory>
#include <source_location>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace {

constexpr int kRanks = 2;
constexpr std::int64_t kMost = 8, kWidth = 16;

void check(bool holds, const std::source_location at = std::source_location::current()) {
  if (holds) return;
  std::printf("serving.cpp:%u does not hold\n", static_cast<unsigned>(at.line()));
  std::exit(1);
}

/// The message of the error that `call` throws.
std::string error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "no error";
}
bool has(const std::string& text, const char* part) {
  if (text.find(part) != std::string::npos) return true;
  std::printf("%s\n", text.c_str());
  return false;
}

/// y = w * the sum of all ranks' x, for up to kMost rows, with kernels of their own for two.
braid::Graph weighted_sum(const std::string& name) {
  braid::GraphBuilder b(name);
  b.group("tp", kRanks);
  const braid::Dim t = b.symbol("T", {.min = 1, .max = kMost, .buckets = {{.max = 2}}});
  const auto x = b.input("x", {braid::DType::kF32, {t, kWidth}}, {.per_rank = true});
  const auto w = b.parameter("w", {braid::DType::kF32, {kWidth}});
  const auto sum = b.collective("all_reduce", {x}, {{"reduce_op", "sum"}, {"group", "tp"}});
  b.output(sum.op("mul", {w}, {}, "y"));
  return b.build();
}

/// The caller's own memory: of each rank, for kMost rows.
struct Buffer {
  explicit Buffer(braid::Device& device) {
    for (int rank = 0; rank < kRanks; ++rank) {
      memory[static_cast<std::size_t>(rank)] = device.allocate(rank, kMost * kWidth * 4);
    }
  }
  [[nodiscard]] float* at(int rank) const {
    return reinterpret_cast<float*>(memory[static_cast<std::size_t>(rank)]->address());
  }
  void fill(float value) const {
    for (int rank = 0; rank < kRanks; ++rank) std::fill_n(at(rank), kMost * kWidth, value);
  }
  void bind(braid::Executable& to, const char* name, std::vector<std::int64_t> shape) const {
    for (int rank = 0; rank < kRanks; ++rank) {
      to.bind(rank, name, {reinterpret_cast<std::uint64_t>(at(rank)), braid::DType::kF32, shape});
    }
  }
  std::array<std::unique_ptr<braid::Memory>, kRanks> memory;
};
const std::vector<std::int64_t> kRows = {kMost, kWidth};

/// One stream of each rank.
struct Lanes {
  explicit Lanes(braid::Device& device) {
    for (int rank = 0; rank < kRanks; ++rank) {
      streams.push_back(device.create_stream(rank));
      events.push_back(device.create_event(rank));
      pointers.push_back(streams.back().get());
    }
  }
  /// What comes here later follows what is on the others now.
  void follow(Lanes& others) {
    for (std::size_t rank = 0; rank < kRanks; ++rank) {
      others.streams[rank]->record(*others.events[rank]);
      streams[rank]->wait(*others.events[rank]);
    }
  }
  void synchronize() const {
    for (const auto& stream : streams) stream->synchronize();
  }
  std::vector<std::unique_ptr<braid::Stream>> streams;
  std::vector<std::unique_ptr<braid::Event>> events;
  std::vector<braid::Stream*> pointers;
};

braid::WorldOptions world_options() {
  braid::WorldOptions options;
  options.device = braid::DeviceKind::kCpu;
  options.world = kRanks;
  options.threads = 2;
  return options;
}

/// Two executables, the second of what the first has made; each with a plan for 2 rows and one for
/// all, on streams of the caller's that only events order.
void plans_on_streams(braid::Executable first, braid::Executable second, braid::World& world) {
  braid::Device& device = world.device();
  const Buffer x(device), between(device), y(device), twice(device), thrice(device);
  twice.fill(2);
  thrice.fill(3);
  x.bind(first, "x", kRows);
  twice.bind(first, "w", {kWidth});
  between.bind(first, "y", kRows);
  between.bind(second, "x", kRows);
  thrice.bind(second, "w", {kWidth});
  y.bind(second, "y", kRows);
  using Plan = braid::Executable::Plan;
  const std::array<std::pair<Plan, Plan>, 2> plans = {
      std::pair{first.prepare({{"T", 2}}), second.prepare({{"T", 2}})},
      std::pair{first.prepare({{"T", kMost}}), second.prepare({{"T", kMost}})}};
  Lanes a(device), b(device);
  const auto enqueue = [&](std::size_t which) {
    a.follow(b);  // `between` may be written again
    first.run(plans[which].first, a.pointers);
    b.follow(a);
    second.run(plans[which].second, b.pointers);
  };
  const std::uint64_t compiled = world.metrics().kernels_compiled;
  for (int round = 0; round < 20; ++round) {
    const auto value = static_cast<float>(round + 1);
    x.fill(value);
    y.fill(-1);
    enqueue(0);
    b.synchronize();
    check(y.at(1)[0] == value * 24 && y.at(0)[2 * kWidth - 1] == value * 24);
    check(y.at(0)[2 * kWidth] == -1);  // the third row
    for (int more = 0; more < 5; ++more) enqueue(static_cast<std::size_t>(more) % 2);
    enqueue(1);
    b.synchronize();
    check(y.at(1)[kMost * kWidth - 1] == value * 24);
  }

  // The same recorded, and replayed in any order.
  std::array<std::array<std::unique_ptr<braid::RecordedGraph>, kRanks>, 2> graphs;
  for (std::size_t which = 0; which < 2; ++which) {
    for (braid::Stream* stream : a.pointers) stream->begin_capture();
    first.run(plans[which].first, a.pointers);
    second.run(plans[which].second, a.pointers);
    for (std::size_t rank = 0; rank < kRanks; ++rank) {
      graphs[which][rank] = a.streams[rank]->end_capture();
    }
  }
  for (int round = 0; round < 20; ++round) {
    x.fill(static_cast<float>(round));
    y.fill(-1);
    for (const std::size_t which : {std::size_t{0}, static_cast<std::size_t>(round % 2)}) {
      for (std::size_t rank = 0; rank < kRanks; ++rank) {
        a.streams[rank]->replay(*graphs[which][rank]);
      }
    }
    a.synchronize();
    const float expected = static_cast<float>(round) * 24;
    check(y.at(0)[0] == expected && y.at(1)[kWidth] == expected);
    check(y.at(0)[2 * kWidth] == (round % 2 == 1 ? expected : -1));
  }
  check(world.metrics().kernels_compiled == compiled);

  // A context of its own for another thread, and a thread for each rank.
  braid::Executable other = first.another();
  const Buffer own_x(device), own_y(device);
  own_x.fill(5);
  own_x.bind(other, "x", kRows);
  own_y.bind(other, "y", kRows);
  const Plan plan = other.prepare({{"T", kMost}});
  std::vector<std::thread> threads;
  for (int rank = 0; rank < kRanks; ++rank) {
    threads.emplace_back([&, rank] { other.run_rank(plan, rank); });
  }
  for (std::thread& thread : threads) thread.join();
  other.synchronize();
  check(own_y.at(1)[kMost * kWidth - 1] == 20);

  // What a caller may get wrong.
  check(has(error_of([&] { first.prepare({{"T", kMost + 1}}); }), "T"));
  check(has(error_of([&] { first.prepare({}); }), "T"));
  check(has(error_of([&] { first.bind(0, "z", {}); }), "z"));
  check(has(error_of([&] {
              first.bind(0, "x", {x.memory[0]->address(), braid::DType::kBF16, kRows});
            }),
            "bf16"));
  check(has(error_of([&] { x.bind(first, "x", {1, kWidth}), first.prepare({{"T", 2}}); }), "x"));
  x.bind(first, "x", kRows);
  check(has(error_of([&] { first.run(plans[0].second); }), "plan"));
  check(has(error_of([&] {
              first.run(plans[0].first, std::array{a.pointers[1], a.pointers[0]});
            }),
            "stream"));
}

/// Memory from a pool of the caller's: as much as was foretold, and given back.
void own_allocator() {
  std::atomic<std::size_t> bytes = 0, freed = 0;
  braid::WorldOptions options = world_options();
  options.allocator.allocate = [&](int, std::size_t size) {
    bytes += size;
    return reinterpret_cast<std::uint64_t>(std::aligned_alloc(256, (size + 255) / 256 * 256));
  };
  options.allocator.free = [&](int, std::uint64_t address, std::size_t size) {
    freed += size;
    std::free(reinterpret_cast<void*>(address));
  };
  {
    const braid::World world = braid::World::open(options);
    const braid::Graph graph = weighted_sum("pooled");
    std::size_t own = 0;
    for (const braid::ArenaReport& arena : braid::Executable::memory_estimate(graph, world)) {
      if (arena.name == "parameters" || arena.name == "io") {
        own += kRanks * static_cast<std::size_t>(arena.bytes);
      }
    }
    braid::Executable pooled = braid::Executable::compile(graph, world);
    check(bytes == 0);  // all of it may still be bound
    pooled.prepare({{"T", 1}});
    check(bytes == own && own > 0);
  }
  check(freed == bytes);
}

/// A compile that the caller ends, a run that he cancels, and one that works after.
void ends_early() {
  braid::WorldOptions options = world_options();
  options.use_cache = false;
  options.progress = [](std::size_t done, std::size_t, std::string_view) {
    if (done == 1) throw std::runtime_error("no more time");
  };
  check(has(error_of([&] {
              braid::World world = braid::World::open(options);
              (void)braid::Executable::compile(weighted_sum("ended"), world);
            }),
            "no more time"));
  options = world_options();
  braid::World world = braid::World::open(options);
  braid::Executable sum = braid::Executable::compile(weighted_sum("cancelled"), world);
  const braid::Executable::Plan plan = sum.prepare({{"T", 1}});
  check(has(error_of([&] { sum.run(plan); }), "x: has no value on rank 0"));
  const std::vector<double> ones(kWidth, 1);
  for (int rank = 0; rank < kRanks; ++rank) {
    sum.set_input(rank, "x",
                  braid::HostTensor::from_doubles(braid::DType::kF32, {1, kWidth}, ones));
    sum.set_input(rank, "w", braid::HostTensor::from_doubles(braid::DType::kF32, {kWidth}, ones));
  }
  sum.run_rank(plan, 0);  // waits for the other rank
  sum.cancel();
  check(has(error_of([&] { sum.synchronize(); }), "cancel"));
  sum.set_input(0, "w", braid::HostTensor::from_doubles(braid::DType::kF32, {kWidth}, ones));
  sum.run(plan);
  sum.synchronize();
}

/// The first bucket at once, and each compiled by processes of the program that was installed
/// beside the library.
void in_processes() {
  braid::WorldOptions options = world_options();
  options.use_cache = false;
  options.compile_processes = 2;
  options.compile_in_background = true;
  options.warning = [](std::string_view what) {
    std::printf("%s\n", std::string(what).c_str());
    check(false);
  };
  braid::World world = braid::World::open(options);
  braid::Executable staged = braid::Executable::compile(weighted_sum("staged"), world);
  check(staged.ready({{"T", 1}}));
  staged.prepare({{"T", kMost}});
  check(staged.ready({{"T", kMost}}) && world.metrics().kernels_compiled > 1);
}

/// What was found is what those get who compile later.
void tuned(const std::string& directory) {
  braid::GraphBuilder b("product");
  const auto x = b.input("x", {braid::DType::kBF16, {64, 64}});
  b.output(x.op("mm", {b.parameter("w", {braid::DType::kBF16, {64, 64}})}, {}, "y"));
  const braid::Graph graph = b.build();
  braid::TuneOptions options;
  options.device = braid::DeviceKind::kCpu;
  options.target = "A100";
  options.database = directory + "/tuned.db";
  options.budget_s = 2;
  const braid::TuneResult result = braid::tune(graph, options);
  check(!result.measured && result.kernels.size() == 1 && result.kernels[0].best);
  braid::WorldOptions with;
  with.device = braid::DeviceKind::kCpu;
  with.target = "A100";
  with.tune_db = options.database;
  braid::World world = braid::World::open(with);
  const auto product = braid::Executable::compile(graph, world);
  for (const auto& [setting, value] : result.kernels[0].best->config) {
    check(has(product.program_json(), ('"' + setting + "\": " + std::to_string(value)).c_str()));
  }
}

void serve(const std::string& what, const std::string& directory) {
  braid::World world = braid::World::open(world_options());
  const std::string first = directory + "/first", second = directory + "/second";
  if (what == "save") {
    braid::Executable a = braid::Executable::compile(weighted_sum("first"), world);
    braid::Executable b = braid::Executable::compile(weighted_sum("second"), world);
    a.save(first);
    b.save(second);
    plans_on_streams(std::move(a), std::move(b), world);
    own_allocator();
    ends_early();
    in_processes();
    tuned(directory);
    return;
  }
  plans_on_streams(braid::Executable::load(first + "/program.json", world),
                   braid::Executable::load(second + "/program.json", world), world);
  check(has(error_of([&] { (void)braid::Executable::compile(weighted_sum("third"), world); }),
            "NVRTC"));
  braid::WorldOptions larger = world_options();
  larger.world = 4;
  const braid::World other = braid::World::open(larger);
  check(has(error_of([&] { (void)braid::Executable::load(first + "/program.json", other); }),
            "the world has 4"));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  try {
    serve(argv[1], argv[2]);
  } catch (const std::exception& error) {
    std::printf("%s\n", error.what());
    return 1;
  }
  std::puts("ok");
}
