#pragma once

#include "lowering/remark.h"

// The reason codes of micro_pipeline.

namespace braid::micro_pipeline_reasons {

// For both kinds of collectives:
inline constexpr ReasonCode kUnread{"micro_pipeline.unread",
                                    "nothing reads it now: a fused node gathers it"};
inline constexpr ReasonCode kOneRank{"micro_pipeline.one_rank",
                                     "group '{group}' has one rank: run canonicalize first"};
inline constexpr ReasonCode kNotSymmetric{
    "micro_pipeline.not_symmetric",
    "group '{group}' has no symmetric memory; expected \"symmetric\": true"};
inline constexpr ReasonCode kSeveralWaits{"micro_pipeline.several_waits",
                                          "it is waited for {waits} times; expected once"};
inline constexpr ReasonCode kHidden{"micro_pipeline.hidden",
                                    "'{matmul}' can hide it if it runs as copies"};
inline constexpr ReasonCode kNoMatrix{
    "micro_pipeline.no_matrix", "the right operand of '{matmul}' is {type}; expected a matrix"};
inline constexpr ReasonCode kHidesAnother{"micro_pipeline.hides_another",
                                          "'{matmul}' hides another collective"};
inline constexpr ReasonCode kRegrouped{"micro_pipeline.regrouped",
                                       "'{value}', whose rows are regrouped, is overwritten"};
inline constexpr ReasonCode kGain{"micro_pipeline.gain",
                                  "{us:.1f} us instead of {plain_us:.1f} on {device}"};
inline constexpr ReasonCode kNoForm{
    "micro_pipeline.no_form",
    "{us:.1f} us on {device} either way, as it has neither chunks nor a kernel"};
inline constexpr ReasonCode kNoGain{"micro_pipeline.no_gain",
                                    "no gain: {times}, with {intensity:.0f} multiplications for "
                                    "each element of a chunk, for {sizes}"};

// For a gather:
inline constexpr ReasonCode kGatherFused{"micro_pipeline.gather_fused",
                                         "fused with {matmuls}; {gain}{others}"};
inline constexpr ReasonCode kReturnsA{"micro_pipeline.returns_a", "; A is returned: {why}"};
inline constexpr ReasonCode kGathersNoMatrix{
    "micro_pipeline.gathers_no_matrix", "'{value}' is {type}; expected a matrix, or more dims"};
inline constexpr ReasonCode kNoReader{"micro_pipeline.no_reader", "nothing reads it"};
inline constexpr ReasonCode kNoMatmul{"micro_pipeline.no_matmul", "no matmul can take it: {why}"};
inline constexpr ReasonCode kGraphOutput{"micro_pipeline.graph_output",
                                         "'{value}' is a graph output"};
inline constexpr ReasonCode kViewIsOutput{"micro_pipeline.view_is_output",
                                          "view '{view}' is a graph output"};
inline constexpr ReasonCode kNotItsRows{
    "micro_pipeline.not_its_rows",
    "view '{view}' is {type}; expected its rows as a matrix of {columns} columns"};
inline constexpr ReasonCode kOtherReader{"micro_pipeline.other_reader",
                                         "'{reader}' ({op}) reads it{why}"};
inline constexpr ReasonCode kNotJoined{"micro_pipeline.not_joined",
                                       ", for canonicalize left '{node}' as it is: {why}"};
inline constexpr ReasonCode kRightOperand{"micro_pipeline.right_operand",
                                          "'{matmul}' reads it as its right operand"};
inline constexpr ReasonCode kOverwrittenAfter{
    "micro_pipeline.overwritten_after",
    "'{matmul}' reads '{value}', which is overwritten after the gather"};
inline constexpr ReasonCode kOperandStays{"micro_pipeline.operand_stays",
                                          "'{matmul}' needs '{value}', which {why}"};
inline constexpr ReasonCode kDependsOnGathered{"micro_pipeline.depends_on_gathered",
                                               "depends on the gathered value"};
inline constexpr ReasonCode kTooManyMoved{
    "micro_pipeline.too_many_moved", "needs more than {most} nodes that come after the gather"};
inline constexpr ReasonCode kWaitsLater{"micro_pipeline.waits_later",
                                        "waits at '{wait}' for what comes after the gather"};
inline constexpr ReasonCode kNotMovable{
    "micro_pipeline.not_movable",
    "needs {op} '{node}', which comes after the gather and stays there"};
inline constexpr ReasonCode kOperandOverwritten{
    "micro_pipeline.operand_overwritten",
    "needs '{node}', whose operand '{value}' is overwritten after the gather"};
inline constexpr ReasonCode kDTypesDiffer{
    "micro_pipeline.dtypes_differ",
    "'{matmul}' and '{other}' have different out_dtypes; expected one"};
inline constexpr ReasonCode kOneHasBias{
    "micro_pipeline.one_has_bias",
    "of '{matmul}' and '{other}' one has a bias; expected both or none"};
inline constexpr ReasonCode kScalesDiffer{
    "micro_pipeline.scales_differ",
    "'{matmul}' and '{other}' scale A by '{scale}' and '{other_scale}'; expected one scale"};
inline constexpr ReasonCode kScaleInBlocks{
    "micro_pipeline.scale_in_blocks",
    "'{matmul}' scales A by {scale}, in blocks along K; expected one number, or one per row"};
inline constexpr ReasonCode kLastDimScaled{
    "micro_pipeline.gathers_last_dim_scaled",
    "it gathers along the last dim, {dim}; expected another for scaled matmuls"};
inline constexpr ReasonCode kLastDimOthers{
    "micro_pipeline.gathers_last_dim_for_others",
    "it gathers along the last dim, {dim}, and not only matmuls read it: {why}"};
inline constexpr ReasonCode kLastDimShort{
    "micro_pipeline.gathers_short_last_dim",
    "it gathers along the last dim, {dim}, by {extent} on each rank; expected at least {least}"};

// For a scatter:
inline constexpr ReasonCode kScatterFused{"micro_pipeline.scatter_fused",
                                          "fused with '{matmul}'; {gain}{product}"};
inline constexpr ReasonCode kReturnsProduct{"micro_pipeline.returns_product",
                                            "; its product is returned, too"};
inline constexpr ReasonCode kReduceOp{"micro_pipeline.reduce_op",
                                      "its reduce_op is {found}; expected sum or avg"};
inline constexpr ReasonCode kInCanonicalize{"micro_pipeline.in_canonicalize",
                                            "{why}: in canonicalize, {cause}"};
inline constexpr ReasonCode kFusedAlready{"micro_pipeline.fused_already",
                                          "'{matmul}' is fused with '{collective}' already"};
inline constexpr ReasonCode kColumnsCut{
    "micro_pipeline.columns_cut",
    "view '{view}' of the product is {type}; expected its {columns} columns as the last dim"};
inline constexpr ReasonCode kScattersLastDim{
    "micro_pipeline.scatters_last_dim_scaled",
    "it scatters along the last dim, {dim}; expected another for a scaled matmul"};
inline constexpr ReasonCode kRowsNotAffine{"micro_pipeline.rows_not_affine",
                                           "the rows of '{value}' are no affine expression"};
inline constexpr ReasonCode kOverwrittenBefore{"micro_pipeline.overwritten_before",
                                               "'{value}' is overwritten before the scatter"};
inline constexpr ReasonCode kReadBefore{"micro_pipeline.read_before",
                                        "'{reader}' reads '{value}' before the scatter does"};

}  // namespace braid::micro_pipeline_reasons
