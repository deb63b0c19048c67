#pragma once

#include "lowering/remark.h"

// The reason codes of fuse: merges, and why two kernels were not merged.

namespace braid::fuse_reasons {

inline constexpr ReasonCode kOneKernel{"fuse.one_kernel", "one {template} kernel: {ops}"};
inline constexpr ReasonCode kTuned{"fuse.tuned", "tuned: {what}"};
inline constexpr ReasonCode kNotTuned{"fuse.not_tuned", "not tuned: {why}"};
inline constexpr ReasonCode kNotFused{"fuse.not_fused", "not fused with '{value}': {why}"};

inline constexpr ReasonCode kLongCat{"fuse.long_cat",
                                     "{operands} tensors: a tree of cats of at most {most} each"};

// What is not legal:
inline constexpr ReasonCode kCollectiveOpens{
    "fuse.collective_opens",
    "{op} opens its kernel: its operand must be complete on every rank first"};
inline constexpr ReasonCode kViewOpens{"fuse.view_opens",
                                       "a {op} that is written to memory opens its kernel"};
inline constexpr ReasonCode kTooManyNodes{"fuse.too_many_nodes",
                                          "the kernel would compute more than {most} nodes"};
inline constexpr ReasonCode kClosesCycle{
    "fuse.closes_cycle", "another operand may depend on that kernel: merging could close a cycle"};
inline constexpr ReasonCode kTemplateRefuses{"fuse.template_refuses", "{why}"};

// What does not pay:
inline constexpr ReasonCode kMatmulOpens{
    "fuse.matmul_opens",
    "a matmul opens its kernel: inside, its operand would be computed once per tile"};
inline constexpr ReasonCode kAttentionOpens{
    "fuse.attention_opens",
    "attention opens its kernel: inside, its operands would be computed once per tile"};
inline constexpr ReasonCode kCannotJoin{
    "fuse.cannot_join",
    "'{node}' went into the {template} kernel of '{head}', and a {other} kernel cannot join that"};
inline constexpr ReasonCode kRepeats{
    "fuse.repeats", "{computed} would be computed again for each element of {visited}"};

inline constexpr ReasonCode kWouldWait{
    "fuse.would_wait", "that kernel runs beside '{collective}', for which this one waits"};

}  // namespace braid::fuse_reasons
