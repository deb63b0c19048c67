#include "codegen/body/sources.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "braid/graph.h"

namespace braid {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::UnorderedElementsAre;

const auto kAll = [](NodeId) { return true; };

/// A graph whose inputs are given by name, and whose nodes are computed one after the other.
class Made {
 public:
  Graph graph{"made"};

  ValueId in(DType dtype, Shape shape) {
    return graph.add_input(
        {"i" + std::to_string(graph.inputs().size()), {dtype, std::move(shape)}});
  }
  ValueId op(const char* name, std::vector<ValueId> inputs, Attrs attrs = {}) {
    const std::string unique = "n" + std::to_string(graph.nodes().size());
    return graph.node(graph.add_node(unique, name, std::move(inputs), std::move(attrs))).outputs[0];
  }
  ValueId view(ValueId value, Shape shape) {
    return op("view", {value}, {{"shape", std::move(shape)}});
  }
  ValueId arange(std::int64_t end, std::int64_t step) {
    return op("arange", {}, {{"end", end}, {"step", step}, {"dtype", DType::kI32}});
  }
};

auto source(ValueId value, std::int64_t rows, std::int64_t columns) {
  return AllOf(Field(&Source::value, value),
               Field(&Source::rows, Field(&Source::Along::alike, rows)),
               Field(&Source::columns, Field(&Source::Along::alike, columns)));
}

TEST(Sources, NumbersInWordsAndScalesOfGroups) {
  Made m;
  const ValueId words = m.in(DType::kI32, {512, 96}), scales = m.in(DType::kF16, {32, 96});
  const ValueId zeros = m.in(DType::kI32, {32, 12});
  const ValueId number = m.op("bitwise_right_shift",
                              {m.view(words, {512, 1, 96}), m.view(m.arange(32, 4), {1, 8, 1})});
  const ValueId zero = m.op("bitwise_right_shift", {m.view(zeros, {32, 12, 1}), m.arange(32, 4)});
  const ValueId scaled = m.op(
      "mul", {m.op("to", {m.op("sub", {m.view(number, {32, 128, 96}), m.view(zero, {32, 1, 96})})},
                   {{"dtype", DType::kF16}}),
              m.view(scales, {32, 1, 96})});
  const auto found = sources_of(m.graph, m.view(scaled, {4096, 96}), kAll);
  ASSERT_TRUE(found);
  EXPECT_THAT(*found, UnorderedElementsAre(source(words, 8, 1), source(zeros, 128, 8),
                                           source(scales, 128, 1)));
  for (const Source& each : *found) EXPECT_TRUE(each.is_by_columns && !each.rows.repeats);
}

TEST(Sources, PartsOfKAreBatches) {
  Made m;
  const ValueId words = m.in(DType::kI32, {512, 96}), scales = m.in(DType::kF16, {4, 1, 96});
  const ValueId number = m.op("bitwise_right_shift",
                              {m.view(words, {512, 1, 96}), m.view(m.arange(32, 4), {1, 8, 1})});
  const ValueId scaled =
      m.op("mul", {m.op("to", {m.view(number, {4, 1024, 96})}, {{"dtype", DType::kF16}}), scales});
  // Within a part of 512 rows all have one scale.
  const auto found = sources_of(m.graph, m.view(scaled, {8, 512, 96}), kAll);
  ASSERT_TRUE(found);
  EXPECT_THAT(*found, UnorderedElementsAre(source(words, 8, 1), source(scales, 0, 1)));
}

TEST(Sources, TransposedWeights) {
  Made m;
  const ValueId bytes = m.in(DType::kU8, {96, 64}), scales = m.in(DType::kF16, {96});
  const ValueId low =
      m.op("bitwise_right_shift",
           {m.view(bytes, {96, 64, 1}), m.op("to", {m.arange(8, 4)}, {{"dtype", DType::kU8}})});
  const ValueId scaled = m.op(
      "mul",
      {m.op("to", {m.view(low, {96, 128})}, {{"dtype", DType::kF16}}), m.view(scales, {96, 1})});
  const ValueId weight =
      m.op("transpose", {scaled}, {{"dim0", std::int64_t{0}}, {"dim1", std::int64_t{1}}});
  const auto found = sources_of(m.graph, weight, kAll);
  ASSERT_TRUE(found);
  EXPECT_THAT(*found, UnorderedElementsAre(source(bytes, 2, 1), source(scales, 0, 1)));
  EXPECT_FALSE(found->front().is_by_columns);
}

/// x times the transpose of `bytes` as f16, scaled by groups of K.
const Node& scaled_by_groups(Made& m, DType dtype, std::int64_t group) {
  const std::int64_t groups = 512 / group;
  const ValueId words = m.view(m.in(dtype, {96, 512}), {96, groups, group});
  const ValueId scales = m.in(DType::kF8E4M3, {96, groups, 1});
  const Attrs to_f16{{"dtype", DType::kF16}};
  const ValueId scaled = m.op("mul", {m.op("to", {words}, to_f16), m.op("to", {scales}, to_f16)});
  const ValueId weight = m.op("transpose", {m.view(scaled, {96, 512})},
                              {{"dim0", std::int64_t{0}}, {"dim1", std::int64_t{1}}});
  m.op("mm", {m.in(DType::kF16, {8, 512}), weight});
  return m.graph.nodes().back();
}

TEST(Sources, OfAProductAreWideOrOneForEachRow) {
  const auto is_copied = [](DType dtype, std::int64_t group) {
    Made m;
    const Node& product = scaled_by_groups(m, dtype, group);
    return copied_sources(m.graph, product, 1).has_value();
  };
  EXPECT_TRUE(is_copied(DType::kI8, 128));
  // A tile of 64 along K would have two scales in a row, 16 bits: fewer than a copy has.
  EXPECT_FALSE(is_copied(DType::kI8, 32));
  EXPECT_FALSE(is_copied(DType::kF32, 128));  // larger than what is made of it
}

TEST(Sources, WhatRepeatsAndWhatBeginsAnywhere) {
  Made m;
  const ValueId table = m.in(DType::kF32, {8});
  const ValueId wide = m.op("mul", {m.in(DType::kF32, {16, 8, 96}), m.view(table, {1, 8, 1})});
  const auto found = sources_of(m.graph, m.view(wide, {128, 96}), kAll);
  ASSERT_TRUE(found);
  ASSERT_EQ(found->back().value, table);
  EXPECT_TRUE(found->back().rows.repeats);

  // A part of packed numbers may begin within a word.
  const ValueId words = m.in(DType::kI32, {16, 96});
  const ValueId numbers = m.view(
      m.op("bitwise_right_shift", {m.view(words, {16, 1, 96}), m.view(m.arange(32, 4), {1, 8, 1})}),
      {128, 96});
  const auto part = [&](ValueId of) {
    return m.op("slice", {of},
                {{"dim", std::int64_t{0}}, {"start", std::int64_t{3}}, {"end", std::int64_t{67}}});
  };
  EXPECT_FALSE(sources_of(m.graph, part(numbers), kAll));
  const ValueId bytes = m.in(DType::kI8, {128, 96});
  EXPECT_THAT(*sources_of(m.graph, part(bytes), kAll), ElementsAre(source(bytes, 1, 1)));
  // Nor is what a reduction gives followed further.
  const ValueId sum = m.op("sum", {m.in(DType::kF32, {128, 96, 4})},
                           {{"dim", std::vector<std::int64_t>{2}}, {"keepdim", false}});
  EXPECT_FALSE(sources_of(m.graph, sum, kAll));
}

// Each value is looked at once: a chain of 40 sums of a value with itself has 2^40 paths.
TEST(Sources, AChainOfSumsOfOneValue) {
  Made m;
  ValueId value = m.in(DType::kF32, {128, 96});
  for (int i = 0; i < 40; ++i) value = m.op("add", {value, value});
  EXPECT_THAT(*sources_of(m.graph, value, kAll),
              ElementsAre(source(m.graph.input_values()[0], 1, 1)));
  // What no kernel holds is given up, not the stack.
  for (int i = 0; i < 100000; ++i) value = m.op("relu", {value});
  EXPECT_FALSE(sources_of(m.graph, value, kAll));
}

}  // namespace
}  // namespace braid
