// What a program needs of an installed braid: headers, one library, and the cpu device beside it.
#include <braid/executable.h>

#include <cstdio>

int main() {
  braid::Graph graph("twice");
  const auto x = graph.add_input({"x", {braid::DType::kF32, {3}}});
  graph.add_output(graph.node(graph.add_node("y", "add", {x, x})).outputs[0]);
  braid::WorldOptions options;
  options.device = braid::DeviceKind::kCpu;
  auto world = braid::World::open(options);
  auto executable = braid::Executable::compile(graph, world);
  executable.prepare({});
  executable.set_input(0, "x", braid::HostTensor::from_doubles(braid::DType::kF32, {3}, {1, 2, 3}));
  executable.run();
  for (double y : executable.output(0, "y").to_doubles()) std::printf("%g ", y);
}
