#include "lowering/plan/cache_pages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <string>

#include "braid/error.h"
#include "lowering/lowering_testing.h"

namespace braid::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

template <class Call>
std::string error_text(Call call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

/// Two layers, whose caches are those values.
CachePages pages_of(Graph& graph, std::array<ValueId, 4> caches) {
  const auto in = [&](const char* name, DType dtype, Shape shape) {
    return graph.add_input({name, {dtype, std::move(shape)}});
  };
  const ValueId q = in("q", DType::kF16, {2, 2, 16});
  const ValueId table = in("table", DType::kI32, {2, 4});
  const ValueId lengths = in("lengths", DType::kI32, {2}), starts = in("starts", DType::kI32, {3});
  for (const std::size_t layer : {0, 2}) {
    graph.add_node(layer == 0 ? "first" : "second", "paged_attention",
                   {q, caches[layer], caches[layer + 1], table, lengths, starts});
  }
  return cache_pages(graph);
}

TEST(CachePages, AreThoseOfEachCacheOnce) {
  Graph graph;
  const auto cache = [&](const char* name, std::int64_t width) {
    return graph.add_input({name, {DType::kF16, {9, 32, 2, width}}, InputKind::kState});
  };
  const ValueId k = cache("k", 16), v = cache("v", 8), other = cache("other", 8);
  const CachePages found = pages_of(graph, {k, v, k, other});
  EXPECT_EQ(found.pages, 9);
  EXPECT_THAT(found.bytes, ElementsAre(32 * 2 * 16 * 2, 32 * 2 * 8 * 2, 32 * 2 * 8 * 2));
}

TEST(CachePages, RefusesOtherCaches) {
  const TensorType type{DType::kF16, {9, 32, 2, 16}};
  Graph graph;
  const ValueId k = graph.add_input({"k", type});
  const ValueId computed = graph.node(graph.add_node("n", "neg", {k})).outputs[0];
  EXPECT_THAT(
      error_text([&] {
        (void)pages_of(graph, {k, k, computed, k});
      }),
      HasSubstr("second: its cache is f16[9, 32, 2, 16], a node's result; expected an input"));
  Graph uneven;
  const ValueId one = uneven.add_input({"k", type});
  const ValueId two = uneven.add_input({"more", {DType::kF16, {10, 32, 2, 16}}});
  EXPECT_THAT(error_text([&] {
                (void)pages_of(uneven, {one, one, two, two});
              }),
              HasSubstr("second: its cache is f16[10, 32, 2, 16], an input; expected"));
  Graph none;
  none.add_input({"k", type});
  EXPECT_THAT(error_text([&] { (void)cache_pages(none); }), HasSubstr("no paged_attention"));
}

}  // namespace
}  // namespace braid::testing
