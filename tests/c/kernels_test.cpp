// Kernels of the caller's own through the C interface: launches, checks, counts and tensor maps.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "braid/braid.h"
#include "runtime/tensor_map.h"

namespace {

using nlohmann::json;
using ::testing::HasSubstr;

// y[i] = x[i] + step. The warps of `reverse` exchange what they read, without a barrier.
constexpr const char* kPtx = R"(
.version 8.0
.target sm_80
.address_size 64
.visible .entry add(.param .u64 x, .param .u64 y, .param .f32 step)
{
  .reg .b32 %r<2>;
  .reg .b64 %rd<6>;
  .reg .f32 %f<4>;
  ld.param.u64 %rd0, [x];
  ld.param.u64 %rd1, [y];
  ld.param.f32 %f0, [step];
  mov.u32 %r0, %tid.x;
  mul.wide.u32 %rd2, %r0, 4;
  add.s64 %rd3, %rd0, %rd2;
  add.s64 %rd4, %rd1, %rd2;
  ld.global.f32 %f1, [%rd3];
  add.f32 %f2, %f1, %f0;
  st.global.f32 [%rd4], %f2;
  ret;
}
.visible .entry reverse(.param .u64 x)
{
  .reg .b32 %r<4>;
  .reg .b64 %rd<4>;
  .shared .align 4 .b8 part[256];
  .loc 1 7 3
  ld.param.u64 %rd0, [x];
  mov.u32 %r0, %tid.x;
  mul.wide.u32 %rd1, %r0, 4;
  add.s64 %rd2, %rd0, %rd1;
  ld.global.u32 %r1, [%rd2];
  shl.b32 %r2, %r0, 2;
  mov.u32 %r3, part;
  add.u32 %r3, %r3, %r2;
  .loc 1 8 3
  st.shared.u32 [%r3], %r1;
  sub.u32 %r2, 252, %r2;
  mov.u32 %r3, part;
  add.u32 %r3, %r3, %r2;
  .loc 1 9 3
  ld.shared.u32 %r1, [%r3];
  st.global.u32 [%rd2], %r1;
  ret;
}
.file 1 "/home/someone/reverse.py"
)";
constexpr std::size_t kThreads = 64;
using Values = std::array<float, kThreads>;

class Kernels : public ::testing::Test {
 protected:
  ~Kernels() override {
    for (braid_memory memory : lent_) braid_memory_destroy(memory);
    for (braid_kernel kernel : kernels_) braid_kernel_destroy(kernel);
    if (stream_ != nullptr) braid_stream_destroy(stream_);
    if (world_ != nullptr) braid_world_destroy(world_);
  }
  static void good(braid_status status) { EXPECT_EQ(status, BRAID_OK) << braid_last_error(); }
  static std::string bad(braid_status status) {
    EXPECT_EQ(status, BRAID_INVALID_ARGUMENT);
    return braid_last_error();
  }
  void open(const char* sanitize, bool count) {
    const braid_world_options options{.bytes = sizeof(braid_world_options),
                                      .device = "cpu",
                                      .sanitize = sanitize,
                                      .count = count};
    good(braid_world_open(&options, &world_));
    good(braid_stream_create(world_, 0, &stream_));
  }
  braid_kernel load(const char* entry) {
    const braid_kernel_source source{.bytes = sizeof(braid_kernel_source),
                                     .ptx = kPtx,
                                     .entry = entry,
                                     .file = "mine.ptx",
                                     .registers = 24};
    braid_kernel kernel = nullptr;
    good(braid_kernel_load(world_, 0, &source, &kernel));
    kernels_.push_back(kernel);
    return kernel;
  }
  void lend(void* data, std::size_t bytes, const char* name) {
    good(braid_memory_lend(world_, 0, data, bytes, name, &lent_.emplace_back()));
  }
  braid_status launch(braid_kernel kernel, const std::vector<const void*>& args) {
    const braid_launch how{.bytes = sizeof(braid_launch),
                           .block = {kThreads},
                           .args = args.data(),
                           .count = args.size()};
    return braid_kernel_launch(kernel, stream_, &how);
  }
  braid_status add(braid_kernel kernel, const Values& x, const Values& y) {
    const void* const from = x.data();
    const void* const to = y.data();
    const float step = 0.5F;
    return launch(kernel, {&from, &to, &step});
  }
  json findings() {
    const char* text = nullptr;
    good(braid_findings(world_, &text));
    return json::parse(text).at("findings");
  }

  braid_world world_ = nullptr;
  braid_stream stream_ = nullptr;
  std::vector<braid_kernel> kernels_;
  std::vector<braid_memory> lent_;
  Values x_{}, y_{};
};

TEST_F(Kernels, UseMemoryOfTheProcess) {
  open(nullptr, false);
  for (std::size_t i = 0; i < kThreads; ++i) x_[i] = static_cast<float>(i);
  lend(x_.data(), sizeof x_, "x");  // nobody has to, here
  good(add(load("add"), x_, y_));
  good(braid_stream_synchronize(stream_));
  for (std::size_t i = 0; i < kThreads; ++i) EXPECT_EQ(y_[i], x_[i] + 0.5F);
  const char* text = nullptr;
  EXPECT_THAT(bad(braid_findings(world_, &text)), HasSubstr("checks and counts nothing"));
}

TEST_F(Kernels, UseLentMemoryAloneWhereAccessesAreChecked) {
  open("all", false);
  braid_kernel kernel = load("add");
  lend(x_.data(), sizeof x_, "x");
  {
    lend(y_.data(), sizeof y_, "y");
    good(add(kernel, x_, y_));
    good(braid_stream_synchronize(stream_));
    EXPECT_EQ(y_[7], 0.5F);
    EXPECT_TRUE(findings().empty());
    good(braid_memory_destroy(lent_.back()));
    lent_.pop_back();
  }
  good(add(kernel, x_, y_));
  EXPECT_EQ(braid_stream_synchronize(stream_), BRAID_INTERNAL);
  const json found = findings();
  ASSERT_EQ(found.size(), 1);
  EXPECT_EQ(found[0].at("kind"), "bounds");
  EXPECT_EQ(found[0].at("ptx_file"), "mine.ptx");
  good(braid_forget(world_));
  EXPECT_TRUE(findings().empty());
}

TEST_F(Kernels, FindingsNameTheFileThatThePtxNames) {
  open("race", false);
  lend(x_.data(), sizeof x_, "x");
  const void* const at = x_.data();
  good(launch(load("reverse"), {&at}));
  good(braid_stream_synchronize(stream_));
  const json found = findings();
  ASSERT_EQ(found.size(), 2);  // either warp may be the first
  for (const json& race : found) {
    EXPECT_EQ(race.at("kind"), "race");
    EXPECT_EQ(race.at("cuda_file"), "reverse.py");
    EXPECT_THAT(race.at("text").get<std::string>(), HasSubstr("reverse.py:8"));
    EXPECT_THAT(race.at("text").get<std::string>(), HasSubstr("reverse.py:9"));
  }
  good(braid_forget(world_));
  EXPECT_TRUE(findings().empty());
}

TEST_F(Kernels, AreCountedOnMemoryOfTheProcess) {
  open(nullptr, true);
  braid_kernel kernel = load("add");
  const char* text = nullptr;
  good(braid_kernel_counts(kernel, "H100", &text));
  EXPECT_EQ(text, nullptr);
  good(add(kernel, x_, y_));
  good(braid_stream_synchronize(stream_));
  good(braid_kernel_counts(kernel, "H100", &text));
  const json counted = json::parse(text);
  EXPECT_EQ(counted.at("launches"), 1);
  EXPECT_EQ(counted.at("counts").at("global_bytes"), 2 * sizeof x_);
  EXPECT_EQ(counted.at("counts").at("peer_bytes"), 0);
  EXPECT_EQ(counted.at("minimum_bytes"), 2 * sizeof x_);
  EXPECT_EQ(counted.at("estimate").at("device"), "H100");
  EXPECT_EQ(counted.at("estimate").at("registers"), 24);
  good(braid_forget(world_));
  good(braid_kernel_counts(kernel, "H100", &text));
  EXPECT_EQ(text, nullptr);
  EXPECT_THAT(bad(braid_kernel_counts(kernel, "H101", &text)), HasSubstr("expected one of A100"));
}

TEST_F(Kernels, TensorMapsAreThoseOfTheDevice) {
  open(nullptr, false);
  alignas(16) std::array<float, std::size_t{8} * 64> matrix{};
  const std::array<std::uint64_t, 2> dims{64, 8};
  const std::uint64_t stride = 256;
  const std::array<std::uint32_t, 2> box{32, 4};
  braid_tensor_map map{.bytes = sizeof(braid_tensor_map),
                       .data = matrix.data(),
                       .type = 7,
                       .rank = 2,
                       .dims = dims.data(),
                       .strides = &stride,
                       .box = box.data(),
                       .swizzle = 3,
                       .nan_fill = 1};
  std::array<std::byte, braid::TensorMap::kBytes> encoded{};
  good(braid_tensor_map_encode(world_, &map, encoded.data()));
  const braid::TensorMap read = braid::TensorMap::decode(encoded.data());
  EXPECT_EQ(read.type, braid::TensorMap::Type::kF32);
  EXPECT_EQ(read.swizzle, braid::TensorMap::Swizzle::k128);
  EXPECT_TRUE(read.nan_fill);
  EXPECT_EQ(read.address, reinterpret_cast<std::uint64_t>(matrix.data()));
  EXPECT_EQ(read.dims[1], 8);
  EXPECT_EQ(read.strides[0], 256);
  EXPECT_EQ(read.box[1], 4);
  map.type = 11;
  EXPECT_THAT(bad(braid_tensor_map_encode(world_, &map, encoded.data())),
              HasSubstr("found 11; expected 0 to 9"));
  map.type = 7;
  map.swizzle = 4;
  EXPECT_THAT(bad(braid_tensor_map_encode(world_, &map, encoded.data())), HasSubstr("swizzle"));
  map.swizzle = 3;
  map.rank = 6;
  EXPECT_THAT(bad(braid_tensor_map_encode(world_, &map, encoded.data())), HasSubstr("1 to 5"));
}

TEST_F(Kernels, MistakesAreErrors) {
  open("all", true);
  braid_kernel kernel = nullptr;
  braid_kernel_source source{
      .bytes = sizeof(braid_kernel_source), .ptx = kPtx, .entry = "subtract"};
  EXPECT_THAT(bad(braid_kernel_load(world_, 0, &source, &kernel)), HasSubstr("subtract"));
  EXPECT_EQ(kernel, nullptr);
  source.bytes = 8;
  EXPECT_THAT(bad(braid_kernel_load(world_, 0, &source, &kernel)), HasSubstr("`bytes` is 8"));
  source.bytes = sizeof source;
  source.ptx = nullptr;
  EXPECT_THAT(bad(braid_kernel_load(world_, 0, &source, &kernel)), HasSubstr("ptx: is null"));

  kernel = load("add");
  EXPECT_THAT(bad(launch(kernel, {})), HasSubstr("takes 3 parameters, not 0"));
  EXPECT_THAT(bad(launch(kernel, {nullptr, nullptr, nullptr})), HasSubstr("argument: is null"));

  braid_memory memory = nullptr;
  lend(x_.data(), sizeof x_, "x");
  EXPECT_THAT(bad(braid_memory_lend(world_, 0, &x_[3], 4, "part", &memory)),
              HasSubstr("part: some of its bytes are known"));
  EXPECT_THAT(bad(braid_memory_lend(world_, 0, y_.data(), 0, "y", &memory)),
              HasSubstr("y: no bytes to lend"));
  EXPECT_EQ(memory, nullptr);

  braid_device_info info{};
  good(braid_describe_device("H100", &info));
  EXPECT_EQ(info.architecture, 90);
  EXPECT_EQ(info.shared_bytes, 227 * 1024);
  EXPECT_THAT(bad(braid_describe_device("abacus", &info)), HasSubstr("\"abacus\" is unknown"));
}

}  // namespace
