#include "runtime/exec/pad_kernels.h"

#include <fmt/format.h>

#include <cstddef>
#include <string>

#include "codegen/protocol.h"

namespace braid {
namespace {

using protocol::Record;

constexpr const char* kEntry = "braid_meet";
constexpr std::uint32_t kThreads = 32;

/// Each thread signals to a member and waits for one, then for every 32nd after it.
constexpr const char* kMeet = R"(.version 7.0
.target sm_80
.address_size 64
.visible .entry {entry}(.param .align 8 .b8 pads[{pads_bytes}], .param .u32 rank,
                           .param .u32 first_signaled, .param .u32 end_signaled,
                           .param .u32 first_awaited, .param .u32 end_awaited,
                           .param .u64 flags, .param .u32 step, .param .u64 record,
                           .param .u64 timeout)
.maxntid {threads}, 1, 1
{{
  .reg .pred %p, %lost;
  .reg .b32 %t, %rank, %epoch, %peer, %end, %seen, %word;
  .reg .b64 %pads, %flags, %self, %own, %x, %start, %now, %timeout, %record;
  mov.b64 %pads, pads;
  ld.param.u32 %rank, [rank];
  ld.param.u64 %flags, [flags];
  ld.param.u64 %record, [record];
  ld.param.u64 %timeout, [timeout];
  mul.wide.u32 %x, %rank, 8;
  add.s64 %x, %pads, %x;
  ld.param.u64 %self, [%x];
  add.s64 %own, %self, %flags;
  ld.global.u32 %epoch, [%own];
  add.u32 %epoch, %epoch, 1;
  mov.u32 %t, %tid.x;
  bar.sync 0;
  ld.param.u32 %peer, [first_signaled];
  ld.param.u32 %end, [end_signaled];
  add.u32 %peer, %peer, %t;
  setp.ge.u32 %p, %peer, %end;
  @%p bra SIGNALED;
  fence.acq_rel.sys;
SIGNAL:
  mul.wide.u32 %x, %peer, 8;
  add.s64 %x, %pads, %x;
  ld.param.u64 %x, [%x];
  add.s64 %x, %x, %flags;
  mad.wide.u32 %x, %rank, 4, %x;
  st.relaxed.sys.global.u32 [%x+4], %epoch;
  add.u32 %peer, %peer, {threads};
  setp.lt.u32 %p, %peer, %end;
  @%p bra SIGNAL;
SIGNALED:
  ld.param.u32 %peer, [first_awaited];
  ld.param.u32 %end, [end_awaited];
  add.u32 %peer, %peer, %t;
  setp.ne.u32 %lost, %t, %t;
NEXT:
  setp.ge.u32 %p, %peer, %end;
  @%p bra DONE;
  mad.wide.u32 %x, %peer, 4, %own;
  mov.u64 %start, %globaltimer;
POLL:
  ld.relaxed.sys.global.u32 %seen, [%x+4];
  sub.s32 %word, %seen, %epoch;
  setp.ge.s32 %p, %word, 0;
  @%p bra CAME;
  ld.relaxed.sys.global.u32 %word, [%self+{abort}];
  setp.ne.u32 %lost, %word, 0;
  @%lost bra DONE;
  mov.u64 %now, %globaltimer;
  sub.s64 %now, %now, %start;
  setp.le.s64 %p, %now, %timeout;
  @%p bra POLL;
  atom.global.cas.b32 %word, [%record+{kind}], 0, {lost_wait};
  setp.ne.u32 %p, %word, 0;
  @%p bra ABORT;
  ld.param.u32 %word, [step];
  st.global.u32 [%record+{step}], %word;
  st.global.u32 [%record+{peer}], %peer;
  st.global.u32 [%record+{expected}], %epoch;
  st.global.u32 [%record+{seen}], %seen;
ABORT:
  mov.u32 %peer, 0;
ABORT_NEXT:
  mul.wide.u32 %x, %peer, 8;
  add.s64 %x, %pads, %x;
  ld.param.u64 %x, [%x];
  st.relaxed.sys.global.u32 [%x+{abort}], 1;
  add.u32 %peer, %peer, 1;
  setp.lt.u32 %p, %peer, {members};
  @%p bra ABORT_NEXT;
  setp.eq.u32 %lost, %t, %t;
  bra DONE;
CAME:
  fence.acq_rel.sys;
  add.u32 %peer, %peer, {threads};
  bra NEXT;
DONE:
  barrier.red.or.pred %lost, 0, %lost;
  setp.ne.or.u32 %p, %t, 0, %lost;
  @%p ret;
  st.global.u32 [%own], %epoch;
  ret;
}}
)";

std::string meet_ptx(std::size_t members) {
  return fmt::format(
      kMeet, fmt::arg("entry", kEntry), fmt::arg("pads_bytes", members * sizeof(std::uint64_t)),
      fmt::arg("threads", kThreads), fmt::arg("members", members),
      fmt::arg("abort", protocol::kAbortOffset), fmt::arg("kind", offsetof(Record, kind)),
      fmt::arg("lost_wait", std::uint32_t{Record::kLostWait}),
      fmt::arg("step", offsetof(Record, step)), fmt::arg("peer", offsetof(Record, peer)),
      fmt::arg("expected", offsetof(Record, expected)), fmt::arg("seen", offsetof(Record, seen)));
}

}  // namespace

void PadKernel::load(Device& device, std::span<const int> ranks) {
  const KernelImage image{kEntry, meet_ptx(members_), {}, "symmetric memory"};
  for (const int rank : ranks) {
    modules_.push_back(device.load(rank, image));
    functions_.push_back(&modules_.back()->function(kEntry));
  }
}

void PadKernel::launch(std::size_t local, Stream& stream, const Launch& launch) const {
  const void* const arguments[] = {
      launch.pads.data(),    &launch.rank,        &launch.signaled.first, &launch.signaled.end,
      &launch.awaited.first, &launch.awaited.end, &launch.flags,          &launch.step,
      &launch.record,        &launch.timeout_ns};
  stream.launch(*functions_[local], {.grid = {1}, .block = {kThreads}}, arguments);
}

}  // namespace braid
