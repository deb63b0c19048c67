#pragma once

#include "lowering/remark.h"

// The reason codes of the rewrites of the pass fsdp.

namespace braid::fsdp_reasons {

// Unsharded parameters (fsdp_params.cpp):
inline constexpr ReasonCode kParamGone{
    "fsdp.param_gone",
    "unsharded parameter gone: its readers read {values}, which was copied into it"};
inline constexpr ReasonCode kParamUnread{"fsdp.param_unread",
                                         "unsharded parameter gone: nothing reads it"};
inline constexpr ReasonCode kParamStays{"fsdp.param_stays", "unsharded parameter stays: {why}"};
inline constexpr ReasonCode kNoInput{"fsdp.no_input",
                                     "{op} acts on '{value}', which is no graph input"};
inline constexpr ReasonCode kOverwrites{"fsdp.overwrites", "{op} '{node}' overwrites it"};
inline constexpr ReasonCode kActsOnView{"fsdp.acts_on_view",
                                        "{op} '{node}' acts on '{value}', a view of it"};
inline constexpr ReasonCode kFullTwice{"fsdp.full_twice",
                                       "{op} '{node}' resizes it to full, as {op} '{before}' did, "
                                       "without a resize to 0 between the two"};
inline constexpr ReasonCode kZeroFirst{
    "fsdp.zero_first", "{op} '{node}' resizes it to 0 before it is resized to full"};
inline constexpr ReasonCode kWrittenWithoutMemory{"fsdp.written_without_memory",
                                                  "{op} '{node}' writes it while it has no memory"};
inline constexpr ReasonCode kCopiesParam{
    "fsdp.copies_param", "{op} '{node}' copies one unsharded parameter into another"};
inline constexpr ReasonCode kReadWithoutMemory{"fsdp.read_without_memory",
                                               "{op} '{node}' reads it while it has no memory"};
inline constexpr ReasonCode kReadBeforeCopy{
    "fsdp.read_before_copy", "{op} '{node}' reads it before an fsdp.copy_ has filled it"};
inline constexpr ReasonCode kSourceOverwritten{
    "fsdp.source_overwritten",
    "'{value}', which was copied into it, is overwritten by {writer_op} '{writer}' before {op} "
    "'{node}' is done with it"};
inline constexpr ReasonCode kGraphOutput{"fsdp.graph_output", "'{value}' is a graph output"};
inline constexpr ReasonCode kStaysFull{
    "fsdp.stays_full", "{op} '{node}' resizes it to full and nothing to 0 afterwards"};

// All-gathers in place (fsdp.cpp):
inline constexpr ReasonCode kInPlace{"fsdp.in_place",
                                     "in place: it writes '{value}', where its operand lies"};
inline constexpr ReasonCode kNotInPlace{"fsdp.not_in_place", "not in place: {why}"};
inline constexpr ReasonCode kOtherGroup{
    "fsdp.other_group",
    "it gathers over group '{group}', and '{copy_in}' copies in for group '{other}'"};
inline constexpr ReasonCode kOutputInMemory{
    "fsdp.output_in_memory", "'{value}' is a graph output, and in the memory that it would write"};
inline constexpr ReasonCode kMemoryUsedLater{
    "fsdp.memory_used_later", "'{node}' uses the memory that it would write, after it"};

// The order of collectives (fsdp_order.cpp):
inline constexpr ReasonCode kKeptTogether{
    "fsdp.kept_together",
    "kept together with '{collective}' and '{last}', after the {kind} before it"};
inline constexpr ReasonCode kNotKeptTogether{"fsdp.not_kept_together", "not kept together: {why}"};
inline constexpr ReasonCode kNoOrder{"fsdp.no_order",
                                     "some node would have to run in the middle of a group"};
inline constexpr ReasonCode kGatherUnwaited{"fsdp.gather_unwaited", "nothing waits for its gather"};
inline constexpr ReasonCode kScatterUnwaited{"fsdp.scatter_unwaited",
                                             "nothing waits for its scatter"};
inline constexpr ReasonCode kOtherReader{"fsdp.other_reader", "'{reader}' reads '{value}', too"};
inline constexpr ReasonCode kGoesElsewhere{
    "fsdp.goes_elsewhere", "'{value}' goes elsewhere than into one reduce_scatter_tensor"};
inline constexpr ReasonCode kNoScatter{
    "fsdp.no_scatter", "{op} '{reader}' reads '{value}'; expected a reduce_scatter_tensor"};

}  // namespace braid::fsdp_reasons
