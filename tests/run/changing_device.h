#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "braid/device.h"

namespace braid::testing {

/// Forwards to another device, but loads the PTX of kernels as `change` gives it back.
class ChangingDevice final : public Device {
 public:
  using Change = std::function<std::string(const KernelImage& image)>;
  ChangingDevice(std::unique_ptr<Device> inner, Change change)
      : inner_(std::move(inner)), change_(std::move(change)) {}
  std::string_view kind() const override { return inner_->kind(); }
  std::string description() const override { return inner_->description(); }
  std::string target() const override { return inner_->target(); }
  int world() const override { return inner_->world(); }
  int ranks_per_device() const override { return inner_->ranks_per_device(); }
  std::unique_ptr<Memory> allocate(int rank, std::size_t bytes) override {
    return inner_->allocate(rank, bytes);
  }
  std::unique_ptr<Memory> allocate_shared(int rank, std::size_t bytes) override {
    return inner_->allocate_shared(rank, bytes);
  }
  std::unique_ptr<Memory> allocate_host(int rank, std::size_t bytes) override {
    return inner_->allocate_host(rank, bytes);
  }
  bool has_multicast() const override { return inner_->has_multicast(); }
  std::unique_ptr<Multicast> create_multicast(std::span<const int> ranks, std::size_t bytes,
                                              std::string_view handle) override {
    return inner_->create_multicast(ranks, bytes, handle);
  }
  void encode(const MatrixMap& map, std::span<std::uint8_t> bytes) const override {
    inner_->encode(map, bytes);
  }
  std::unique_ptr<Module> load(int rank, const KernelImage& image) override {
    return inner_->load(rank, {image.entry, change_(image), {}});
  }
  std::unique_ptr<Stream> create_stream(int rank) override { return inner_->create_stream(rank); }
  std::unique_ptr<Event> create_event(int rank) override { return inner_->create_event(rank); }
  Inspector* inspector() override { return inner_->inspector(); }

 private:
  std::unique_ptr<Device> inner_;
  Change change_;
};

/// The kernel with stalls: about one warp of eight first waits for up to a quarter of a
/// millisecond, other ones in each launch.
inline std::string stalling(const KernelImage& image) {
  constexpr std::string_view kStall = R"(
{
.reg .b32 %stall_r<5>;
.reg .b64 %stall_rd<3>;
.reg .pred %stall_p<3>;
mov.u64 %stall_rd0, %globaltimer;
cvt.u32.u64 %stall_r0, %stall_rd0;
mov.u32 %stall_r1, %ctaid.x;
mov.u32 %stall_r2, %tid.x;
shr.u32 %stall_r2, %stall_r2, 5;
mad.lo.s32 %stall_r0, %stall_r1, 97, %stall_r0;
mad.lo.s32 %stall_r0, %stall_r2, 13, %stall_r0;
mul.lo.s32 %stall_r0, %stall_r0, -1640531535;
shr.u32 %stall_r3, %stall_r0, 29;
setp.ne.u32 %stall_p0, %stall_r3, 0;
@%stall_p0 bra stall_end;
shr.u32 %stall_r4, %stall_r0, 11;
and.b32 %stall_r4, %stall_r4, 262143;
cvt.u64.u32 %stall_rd1, %stall_r4;
add.s64 %stall_rd1, %stall_rd0, %stall_rd1;
stall_loop:
mov.u64 %stall_rd2, %globaltimer;
setp.lt.u64 %stall_p1, %stall_rd2, %stall_rd1;
@%stall_p1 bra stall_loop;
stall_end:
}
)";
  std::string text = image.ptx;
  const std::size_t body = text.find("\n{", text.find(".entry")) + 2;
  return text.insert(body, kStall);
}

}  // namespace braid::testing
