#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "braid/error.h"
#include "braid/executable.h"
#include "braid/reference.h"

namespace braid::testing {

/// The device the run tier uses: "cpu", or $BRAID_TEST_DEVICE; kernels are planned for
/// $BRAID_TEST_TARGET, where it is set.
WorldOptions world_options(std::int64_t world);

/// The same for features that only the cpu device has (checks, counts, interleavings), whatever the
/// run tier uses: see need_cpu_device.
WorldOptions cpu_world_options(std::int64_t world);
/// Ends the test here, as skipped, where the run tier uses another device and the library of the
/// cpu device is not there.
void need_cpu_device();

/// The passes that make all all-reduces run by the algorithm, where they can; "" leaves the choice.
/// Ends the test, as skipped, where the run tier's device has nothing of what multimem needs.
PassConfig all_reduce_by(std::string algorithm);
/// The target that makes it a candidate: one with its instructions.
std::string target_of(const PassConfig& passes);

/// Of a prepared executable, on all ranks.
void set_inputs(Executable& executable, const Graph& graph, const RankTensors& inputs);

/// The text of the kInvalidArgument that the call throws.
template <class Call>
std::string error_of(Call call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    return error.what();
  }
  return "no error";
}

/// Binds inputs, poisons outputs with NaN patterns, runs once and reads all outputs:
/// [rank][output].
RankTensors run_once(Executable& executable, const Graph& graph, const Bindings& bindings,
                     const RankTensors& inputs);

/// Compiles and runs the graph with random inputs and compares every output of every rank with the
/// reference; outputs that the reference has equal on all ranks must be bitwise equal on all ranks.
/// `but_for_ties`: an output may be off by what a value inside makes that is rounded the other way.
::testing::AssertionResult matches_reference(const Graph& graph, const Bindings& bindings,
                                             std::uint64_t seed, const PassConfig& passes = {},
                                             bool but_for_ties = false);
/// As matches_reference, and bitwise equal to the graph with a kernel per node.
::testing::AssertionResult matches_reference_and_unfused(const Graph& graph,
                                                         const Bindings& bindings,
                                                         std::uint64_t seed,
                                                         const PassConfig& passes = {},
                                                         bool but_for_ties = false);
/// `rounded_otherwise`: outputs of the reference with its roundings elsewhere. A 16-bit output may
/// be off by two epsilons then, any by as much as these are, one in f32 by 16 times as much.
::testing::AssertionResult same_as_reference(
    const Graph& graph, const RankTensors& got, const RankTensors& expected,
    const std::optional<RankTensors>& rounded_otherwise = {});

/// The graph under the sanitizer: no finding, and equal to the reference.
::testing::AssertionResult runs_clean(const Graph& graph, const Bindings& bindings,
                                      std::uint64_t seed, const PassConfig& passes = {});
/// Both, of one run: as matches_reference_and_unfused, and where the run tier's device is the cpu
/// device, the fused kernels run under the sanitizer.
::testing::AssertionResult runs_clean_as_unfused(const Graph& graph, const Bindings& bindings,
                                                 std::uint64_t seed, const PassConfig& passes = {});

}  // namespace braid::testing
