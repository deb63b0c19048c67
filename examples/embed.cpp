// braid inside a program: a graph built in C++, compiled, and run on two ranks of this process with
// the caller's own device memory bound to an input and an output.
#include <braid/executable.h>
#include <braid/graph_builder.h>

#include <cstdio>
#include <exception>

using braid::DType, braid::Dim, braid::HostTensor;
constexpr std::int64_t kRows = 4, kWidth = 256;

// y = rms_norm(all_reduce(x), g) on [T, kWidth].
static braid::Graph build_graph(int world) {
  braid::GraphBuilder b("embed");
  const Dim t = b.symbol("T", {1, 64});
  b.group("tp", world);
  auto x = b.input("x", {DType::kBF16, {t, kWidth}}, {.per_rank = true});
  auto g = b.parameter("g", {DType::kBF16, {kWidth}});
  auto sum = b.collective("all_reduce", {x}, {{"reduce_op", "sum"}, {"group", "tp"}});
  b.output(sum.op("rms_norm", {g}, {{"eps", 1e-5}}, "y"));
  return b.build();
}

int main() try {
  braid::WorldOptions options;
  options.device = braid::DeviceKind::kCpu;
  options.world = 2;
  auto world = braid::World::open(options);
  auto executable = braid::Executable::compile(build_graph(world.size()), world);

  std::vector<std::unique_ptr<braid::Memory>> memory;  // a server's own buffers are never copied
  for (int rank = 0; rank < world.size(); ++rank) {
    for (const char* name : {"x", "y"}) {
      memory.push_back(world.device().allocate(rank, kRows * kWidth * dtype_size(DType::kBF16)));
      executable.bind(rank, name, {memory.back()->address(), DType::kBF16, {kRows, kWidth}});
    }
  }
  executable.prepare({{"T", kRows}});  // all that can fail or be slow
  for (int rank = 0; rank < world.size(); ++rank) {
    std::vector<double> x(kRows * kWidth, rank + 1.0), g(kWidth, 0.5);
    x[0] = 0;
    executable.set_input(rank, "x", HostTensor::from_doubles(DType::kBF16, {kRows, kWidth}, x));
    executable.set_input(rank, "g", HostTensor::from_doubles(DType::kBF16, {kWidth}, g));
  }
  executable.run();  // only launches
  for (int rank = 0; rank < world.size(); ++rank) {
    auto y = executable.output(rank, "y").to_doubles();
    std::printf("rank %d: y[0, :3] = %g %g %g\n", rank, y[0], y[1], y[2]);
  }
} catch (const std::exception& error) {
  std::fprintf(stderr, "embed: %s\n", error.what());
  return 1;
}
