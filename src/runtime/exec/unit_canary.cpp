#include "runtime/exec/unit_canary.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>

#include "braid/graph.h"
#include "codegen/units.h"
#include "lowering/passes.h"

namespace braid {
namespace {

// More than 64 rows, which wgmma wants; no multiples of any tile but of the 16 bytes that bulk
// copies want; and along K, of 8 bits too, more steps of 128 bytes than the 8 stages of the longest
// ring.
constexpr std::int64_t kRows = 136, kColumns = 136, kSummed = 1040;

/// Integers from -2 to 2 without a pattern. Sums of products of them are exact, also those of the
/// 128 that wgmma adds up of 8 bits, and are rounded once.
std::vector<double> small_integers(std::int64_t count, std::uint64_t state) {
  std::vector<double> values(static_cast<std::size_t>(count));
  for (double& value : values) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    value = static_cast<double>((state >> 33U) % 5) - 2;
  }
  return values;
}

std::vector<double> product(const std::vector<double>& left, const std::vector<double>& right) {
  std::vector<double> sums(kRows * kColumns);
  for (std::int64_t m = 0; m < kRows; ++m) {
    for (std::int64_t k = 0; k < kSummed; ++k) {
      const double factor = left[m * kSummed + k];
      for (std::int64_t n = 0; n < kColumns; ++n) {
        sums[m * kColumns + n] += factor * right[k * kColumns + n];
      }
    }
  }
  return sums;
}

std::vector<std::string_view> names_of(unsigned units) {
  std::vector<std::string_view> names;
  for (const Unit* unit : all_units()) {
    if ((units & bit_of(*unit)) != 0) names.push_back(unit->name);
  }
  return names;
}

}  // namespace

std::span<const unsigned> tried_units() {
  static const unsigned kTried[] = {
      bit_of(units::kMmaSync), bit_of(units::kWgmma) | bit_of(units::kBulkTensor),
      bit_of(units::kTcgen05) | bit_of(units::kBulkTensor), bit_of(units::kCpAsync)};
  return kTried;
}

std::string names_of_units(unsigned units) {
  return fmt::format("{}", fmt::join(names_of(units), " and "));
}

std::string other_units(const Target& target, unsigned units) {
  unsigned others = 0;
  for (const Unit* unit : all_units()) {
    if (has(target, *unit)) others |= bit_of(*unit);
  }
  return fmt::format("{}", fmt::join(names_of(others & ~units), ","));
}

Program unit_canary(const Target& target, unsigned units) {
  Graph graph("unit_canary");
  const auto input = [&](const char* name, DType dtype, std::int64_t rows, std::int64_t columns) {
    return graph.add_input({.name = name, .type = {dtype, {rows, columns}}});
  };
  const auto node = [&](const char* name, const char* op, const std::vector<ValueId>& inputs,
                        Attrs attrs = {}) {
    return graph.node(graph.add_node(name, op, inputs, std::move(attrs))).outputs[0];
  };
  const ValueId left = input("a", DType::kBF16, kRows, kSummed);
  const ValueId right = input("b", DType::kBF16, kSummed, kColumns);
  graph.add_output(node("c", "mm", {left, right}));
  PassContext context;
  context.target = target;
  for (const Unit* unit : all_units()) {
    if (unit->optional && (units & bit_of(*unit)) == 0 && has(target, *unit)) {
      context.target.off |= bit_of(*unit);
    }
  }
  const DType narrow = DType::kF8E4M3;
  if (multiplier(context.target, narrow, /*asynchronous=*/true) != nullptr) {
    const ValueId a = input("narrow_a", narrow, kRows, kSummed);
    const ValueId rows = input("narrow_b", narrow, kColumns, kSummed);
    const ValueId one = input("one", DType::kF32, 1, 1);
    const ValueId b = node("columns", "transpose", {rows},
                           {{"dim0", std::int64_t{0}}, {"dim1", std::int64_t{1}}});
    graph.add_output(node("d", "scaled_mm", {a, b, one, one}));
  }
  return lower(graph, context);
}

CanaryTensors canary_tensors() {
  const std::vector<double> a = small_integers(kRows * kSummed, 1);
  const std::vector<double> b = small_integers(kSummed * kColumns, 2);
  std::vector<double> columns;
  for (std::int64_t n = 0; n < kColumns; ++n) {
    for (std::int64_t k = 0; k < kSummed; ++k) {
      columns.push_back(b[k * kColumns + n]);
    }
  }
  return {.inputs = {HostTensor::from_doubles(DType::kBF16, {kRows, kSummed}, a),
                     HostTensor::from_doubles(DType::kBF16, {kSummed, kColumns}, b),
                     HostTensor::from_doubles(DType::kF8E4M3, {kRows, kSummed}, a),
                     HostTensor::from_doubles(DType::kF8E4M3, {kColumns, kSummed}, columns),
                     HostTensor::from_doubles(DType::kF32, {1, 1}, std::vector<double>{1})},
          .expected = HostTensor::from_doubles(DType::kBF16, {kRows, kColumns}, product(a, b))};
}

std::string wrong_elements(const HostTensor& found, const HostTensor& expected) {
  const std::size_t size = dtype_size(expected.dtype);
  const std::size_t count = expected.data.size() / size;
  std::size_t wrong = 0, first = count;
  for (std::size_t i = 0; i < count; ++i) {
    if (std::memcmp(&found.data[i * size], &expected.data[i * size], size) == 0) continue;
    first = std::min(first, i);
    ++wrong;
  }
  if (wrong == 0) return {};
  const auto columns = static_cast<std::size_t>(expected.shape.back());
  return fmt::format(
      "{} of {} elements of a product are wrong, the first at [{}, {}]: found {}, expected {}",
      wrong, count, first / columns, first % columns, found.to_doubles()[first],
      expected.to_doubles()[first]);
}

}  // namespace braid
