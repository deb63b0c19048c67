// The public headers as a stranger uses them: a graph in C++, two ranks with buffers of the
// caller's own, and one error of each class, after each of which everything still works.
#include <braid/error.h>
#include <braid/executable.h>
#include <braid/reference.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <vector>

#include "runtime/prepare_with_zeros.h"

namespace {

constexpr std::int64_t kHidden = 96;

// y = gelu(all_reduce(x @ w)) on [T, kHidden]; T is at most 8.
braid::Graph build() {
  using braid::DType, braid::Dim;
  braid::Graph graph("stranger");
  graph.add_symbol("T", {1, 8, 1});
  graph.add_group("tp", {2, true, {}});
  const auto x = graph.add_input({"x", {DType::kF32, {Dim::symbol("T"), 64}}});
  const auto w = graph.add_input(
      {"w", {DType::kF32, {64, kHidden}}, braid::InputKind::kParameter, /*per_rank=*/true});
  const auto op = [&](const char* name, const char* op_name, std::vector<braid::ValueId> inputs,
                      braid::Attrs attrs = {}) {
    return graph.node(graph.add_node(name, op_name, std::move(inputs), std::move(attrs)))
        .outputs[0];
  };
  const auto sum =
      op("sum", "all_reduce", {op("p", "mm", {x, w})}, {{"reduce_op", "sum"}, {"group", "tp"}});
  graph.add_output(op("y", "gelu", {op("s", "wait_tensor", {sum})}));
  return graph;
}

braid::WorldOptions two_ranks() {
  braid::WorldOptions options;
  options.device = braid::DeviceKind::kCpu;
  options.world = 2;
  return options;
}

template <class Body>
braid::ErrorCode code_of(Body body) {
  try {
    body();
  } catch (const braid::Error& error) {
    EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << error.what();
    return error.code();
  }
  ADD_FAILURE() << "nothing was thrown";
  return braid::ErrorCode::kInternal;
}

TEST(Stranger, RunsOnTwoRanksWithOwnBuffers) {
  const braid::Graph graph = build();
  const braid::Bindings bindings{{"T", 5}};
  auto world = braid::World::open(two_ranks());
  auto executable = braid::Executable::compile(graph, world);
  std::vector<std::unique_ptr<braid::Memory>> memory;
  for (int rank = 0; rank < world.size(); ++rank) {
    using Extents = std::pair<std::int64_t, std::int64_t>;
    for (const auto& [name, extents] :
         {std::pair{"x", Extents{8, 64}}, std::pair{"w", Extents{64, 96}},
          std::pair{"y", Extents{8, 96}}}) {
      const auto [rows, columns] = extents;
      memory.push_back(world.device().allocate(rank, static_cast<std::size_t>(rows * columns) * 4));
      executable.bind(rank, name, {memory.back()->address(), braid::DType::kF32, {rows, columns}});
    }
  }
  executable.prepare(bindings);
  const auto inputs = braid::random_inputs(graph, bindings, 7);
  const auto check = [&] {
    for (int rank = 0; rank < 2; ++rank) {
      executable.set_input(rank, "x", inputs[static_cast<std::size_t>(rank)][0]);
      executable.set_input(rank, "w", inputs[static_cast<std::size_t>(rank)][1]);
    }
    executable.poison_outputs();
    executable.run();
    const auto expected = braid::evaluate(graph, inputs, bindings);
    for (int rank = 0; rank < 2; ++rank) {
      EXPECT_LE(braid::relative_error(executable.output(rank, "y"),
                                      expected[static_cast<std::size_t>(rank)][0]),
                1e-5);
    }
  };
  check();

  // What the caller got wrong says so and changes nothing.
  using braid::ErrorCode;
  const auto& x = inputs[0][0];
  EXPECT_EQ(code_of([&] { executable.set_input(0, "nope", x); }), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_of([&] { executable.set_input(2, "x", x); }), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_of([&] { executable.set_input(0, "w", x); }), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_of([&] {
              executable.bind(0, "y", {24, braid::DType::kF32, {8, 96}});
            }),
            ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_of([&] { (void)executable.output(0, "z"); }), ErrorCode::kInvalidArgument);
  check();
  EXPECT_EQ(code_of([&] { executable.prepare({{"T", 9}}); }), ErrorCode::kInvalidArgument);
  executable.prepare(bindings);
  check();
}

TEST(Stranger, BadGraphsAreRefusedAtTheirNode) {
  braid::Graph graph = build();
  const auto add = [&](const char* name, const char* op, std::vector<braid::ValueId> inputs,
                       braid::Attrs attrs = {}) {
    return code_of([&] { graph.add_node(name, op, std::move(inputs), std::move(attrs)); });
  };
  const auto invalid = braid::ErrorCode::kInvalidArgument;
  EXPECT_EQ(add("y", "neg", {0}), invalid);      // the name is taken
  EXPECT_EQ(add("z", "negate", {0}), invalid);   // no such op
  EXPECT_EQ(add("z", "add", {0}), invalid);      // an operand is missing
  EXPECT_EQ(add("z", "add", {0, 99}), invalid);  // no such value
  EXPECT_EQ(add("z", "mm", {0, 0}), invalid);    // [T, 64] x [T, 64]
  EXPECT_EQ(add("z", "to", {0}), invalid);       // an attribute is missing
  EXPECT_EQ(add("z", "to", {0}, {{"dtype", std::string("f31")}}), invalid);
  EXPECT_EQ(graph.nodes().size(), build().nodes().size());
}

TEST(Stranger, WorldsAreChecked) {
  using braid::ErrorCode;
  auto options = two_ranks();
  options.world = 3;
  auto three = braid::World::open(options);
  EXPECT_EQ(code_of([&] { (void)braid::Executable::compile(build(), three); }),
            ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_of([&] { (void)braid::parse_device_kind("tpu"); }), ErrorCode::kInvalidArgument);
  options.device = braid::DeviceKind::kCuda;
  ::setenv("BRAID_LIBCUDA", "/nonexistent/libcuda.so", 1);
  EXPECT_EQ(code_of([&] { (void)braid::World::open(options); }), ErrorCode::kEnvironment);
  ::unsetenv("BRAID_LIBCUDA");
}

TEST(Stranger, APeerThatIsLateEndsInATimeout) {
  auto options = two_ranks();
  options.threads = 1;
  options.timeout_s = 1e-9;  // a rank that is polled at all is late
  auto world = braid::World::open(options);
  auto executable = braid::Executable::compile(build(), world);
  prepare_with_zeros(executable, world, {{"T", 1}});
  EXPECT_EQ(code_of([&] {
              for (int i = 0; i < 100; ++i) executable.run();
              executable.synchronize();
            }),
            braid::ErrorCode::kTimeout);
}

}  // namespace
