// What a driver does that a plain stand-in would not show: each model of the stand-in fails host
// code that disregards it, and braid's own passes or says what is wrong.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "braid/error.h"
#include "runtime/compile/compiler.h"
#include "runtime/cuda/cuda_api.h"
#include "runtime/cuda/cuda_device.h"
#include "runtime/dynamic_library.h"
#include "runtime/error_of.h"
#include "runtime/fake_libcuda.h"

namespace braid {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// A kernel of that PTX version that takes what the meeting kernel takes. The stand-in knows that
// one by its name, and runs it.
std::string ptx(const std::string& version, const std::string& body = "") {
  return ".version " + version +
         "\n.target sm_80\n.address_size 64\n"
         ".visible .entry braid_meet(.param .u64 mine, .param .u64 other,\n"
         "  .param .u64 timeout_ns, .param .u32 token)\n{\n" +
         body + "ret;\n}\n";
}

class DriverModels : public ::testing::Test {
 protected:
  DriverModels() {
    ::setenv("BRAID_LIBCUDA", BRAID_FAKE_LIBCUDA, 1);
    library_ = DynamicLibrary({BRAID_FAKE_LIBCUDA});
    std::string missing;
    bind_symbol(library_, "fake_cuda", control_, missing);
    if (control_ == nullptr) throw std::runtime_error(library_.failure());
    *control_() = {};
    (void)cuda::Api::get(true);
  }
  ~DriverModels() override {
    EXPECT_EQ(fake().live_handles, 0);
    *control_() = {};
  }
  FakeCuda& fake() { return *control_(); }

  static std::unique_ptr<Module> load(Device& device, const std::string& text) {
    return device.load(0, {"braid_meet", text, {}, {}});
  }

  DynamicLibrary library_;
  decltype(&::fake_cuda) control_ = nullptr;
};

// Two ranks on GPU 0 that launch kernels that wait for each other, in an order that a test chooses.
class Pair {
 public:
  Pair() : device_(create_cuda_device(3)) {
    for (const int rank : {0, 2}) {
      modules_.push_back(device_->load(rank, {"braid_meet", ptx("7.0"), {}, {}}));
      memories_.push_back(device_->allocate(rank, 256));
      streams_.push_back(device_->create_stream(rank));
      streams_.back()->fill(memories_.back()->address(), 0, 256);
      streams_.back()->synchronize();
    }
  }
  Stream& stream(std::size_t rank) { return *streams_[rank]; }
  [[nodiscard]] std::uint64_t words(std::size_t rank) const { return memories_[rank]->address(); }

  void launch(std::size_t rank, std::uint64_t round = 0) {
    const std::uint64_t mine = words(rank) + 64 * round;
    const std::uint64_t other = words(1 - rank) + 64 * round;
    const std::uint64_t timeout_ns = 200'000'000;
    const std::uint32_t token = 7;
    const std::array<const void*, 4> args{&mine, &other, &timeout_ns, &token};
    streams_[rank]->launch(modules_[rank]->function("braid_meet"), {{1}, {32}}, args);
  }
  /// Whether both kernels of a round saw each other in time.
  bool met(std::uint64_t round = 0) {
    bool both = true;
    for (std::size_t rank = 0; rank < 2; ++rank) {
      std::uint32_t met = 0;
      streams_[rank]->synchronize();
      streams_[rank]->copy_to_host(&met, words(rank) + 64 * round + 4, sizeof met);
      streams_[rank]->synchronize();
      both = both && met == 1;
    }
    return both;
  }

 private:
  std::unique_ptr<Device> device_;
  std::vector<std::unique_ptr<Module>> modules_;
  std::vector<std::unique_ptr<Memory>> memories_;
  std::vector<std::unique_ptr<Stream>> streams_;
};

TEST_F(DriverModels, CodeThatIsNewerThanTheDriverIsNamed) {
  fake().driver_version = 12040;  // reads PTX 8.4
  const auto device = create_cuda_device(1);
  EXPECT_NO_THROW((void)load(*device, ptx("8.4")));
  const auto [code, text] = error_of([&] { (void)load(*device, ptx("8.5")); });
  EXPECT_EQ(code, ErrorCode::kEnvironment);
  EXPECT_THAT(text, AllOf(HasSubstr("222"), HasSubstr("newer than the driver"),
                          HasSubstr("update the driver")));
  // Machine code, as this machine's NVRTC makes it.
  KernelSource source;
  source.entry = "k";
  source.text = "extern \"C\" __global__ void k() {}";
  const KernelImage image = compile_kernel(source, Target::parse("sm_90a"), nullptr).image;
  const int major = std::stoi(nvrtc_version());
  fake().driver_version = 1000 * (major - 1) + 90;
  const auto refused = error_of([&] { (void)device->load(0, image); });
  EXPECT_EQ(refused.first, ErrorCode::kEnvironment);
  EXPECT_THAT(refused.second, AllOf(HasSubstr("200"), HasSubstr("a newer CUDA made it"),
                                    HasSubstr("braid cache clear")));
  fake().driver_version = 1000 * major;
  EXPECT_NO_THROW((void)device->load(0, image));
  fake().capability[0] = 80;
  EXPECT_THAT(error_of([&] { (void)device->load(0, image); }).second, HasSubstr("209"));
}

TEST_F(DriverModels, TheDriversCompilerHasTextsOfItsOwn) {
  const auto device = create_cuda_device(1);
  fake().fail = "cuModuleLoadDataEx";
  fake().error = 218;
  EXPECT_THAT(error_of([&] { (void)load(*device, ptx("7.0")); }),
              ::testing::Pair(ErrorCode::kInternal, HasSubstr("rejects this PTX")));
  fake().error = 221;
  EXPECT_THAT(error_of([&] { (void)load(*device, ptx("7.0")); }),
              ::testing::Pair(ErrorCode::kEnvironment, HasSubstr("libnvidia-ptxjitcompiler.so.1")));
  // Ranks whose kernels are machine code do not need it.
  EXPECT_NO_THROW((void)create_cuda_device(2));
}

TEST_F(DriverModels, LazyLoadingFailsAtTheLookUpAndKeepsItsMeaning) {
  fake().lazy_loading = true;
  const auto device = create_cuda_device(1);
  const auto module = load(*device, ptx("99.0"));
  const auto [code, text] = error_of([&] { (void)module->function("braid_meet"); });
  EXPECT_EQ(code, ErrorCode::kEnvironment);
  EXPECT_THAT(text, AllOf(HasSubstr("cuModuleGetFunction"), HasSubstr("222")));
  const auto good = load(*device, ptx("7.0"));
  EXPECT_THAT(error_of([&] { (void)good->function("other"); }),
              ::testing::Pair(ErrorCode::kInvalidArgument, HasSubstr("no such entry")));
}

TEST_F(DriverModels, LaunchesThatBlockAreRefusedWhenRanksNeedEachOther) {
  fake().launch_blocking = true;  // as under a profiler
  const auto [code, text] = error_of([] { (void)create_cuda_device(4); });
  EXPECT_EQ(code, ErrorCode::kEnvironment);
  EXPECT_THAT(text, HasSubstr("kernels run one after the other"));
  EXPECT_NO_THROW((void)create_cuda_device(1));
  fake().launch_blocking = false;
  ::setenv("CUDA_LAUNCH_BLOCKING", "1", 1);
  EXPECT_THAT(error_of([] { (void)create_cuda_device(2); }),
              ::testing::Pair(ErrorCode::kEnvironment, HasSubstr("CUDA_LAUNCH_BLOCKING: is 1")));
  EXPECT_NO_THROW((void)create_cuda_device(1));
  ::unsetenv("CUDA_LAUNCH_BLOCKING");
  EXPECT_NO_THROW((void)create_cuda_device(2));
}

TEST_F(DriverModels, GridsThatDoNotFitTogetherAreRefused) {
  fake().resident_blocks = 1;
  EXPECT_THAT(error_of([] { (void)create_cuda_device(3); }).second,
              HasSubstr("a kernel on GPU 0 that waits for one on GPU 0"));
  EXPECT_NO_THROW((void)create_cuda_device(2));  // on two GPUs
  fake().resident_blocks = 2;
  EXPECT_NO_THROW((void)create_cuda_device(3));
}

TEST_F(DriverModels, EveryGpuMeetsTheOthersWithOneModule) {
  EXPECT_NO_THROW((void)create_cuda_device(5));
  EXPECT_EQ(fake().modules, 3);  // on two GPUs, and on the first for a second rank there
}

TEST_F(DriverModels, StreamsThatShareAQueueNeedTheRanksInTurns) {
  fake().queues = 1;
  Pair pair;
  // Rank by rank: the second kernel of rank 0 waits for its first at the head of the queue.
  for (const std::uint64_t round : {0, 1}) pair.launch(0, round);
  for (const std::uint64_t round : {0, 1}) pair.launch(1, round);
  EXPECT_FALSE(pair.met(0));
  // As a plan runs them: kernel by kernel.
  for (const std::uint64_t round : {2, 3}) {
    for (const std::size_t rank : {0, 1}) pair.launch(rank, round);
  }
  EXPECT_TRUE(pair.met(2) && pair.met(3));
}

TEST_F(DriverModels, RanksWithQueuesOfTheirOwnMeetInAnyOrder) {
  fake().queues = 2;
  Pair pair;
  for (const std::size_t rank : {0, 1}) {
    for (const std::uint64_t round : {0, 1}) pair.launch(rank, round);
  }
  EXPECT_TRUE(pair.met(0) && pair.met(1));
}

TEST_F(DriverModels, ACopyToPageableMemoryBlocksTheHost) {
  Pair pair;
  std::uint32_t pageable = 0;
  pair.launch(0);
  pair.stream(0).copy_to_host(&pageable, pair.words(0), sizeof pageable);
  pair.launch(1);
  EXPECT_FALSE(pair.met());  // rank 1 was launched when rank 0 had given up
  pair.launch(0, 1);
  pair.launch(1, 1);
  pair.stream(0).copy_to_host(&pageable, pair.words(0), sizeof pageable);
  EXPECT_TRUE(pair.met(1));
}

TEST_F(DriverModels, WorkOfAnotherStreamIsOrderedByEventsOnly) {
  const auto device = create_cuda_device(1);
  const auto memory = device->allocate(0, 64);
  fake().delay_ms = 100;  // the caller's stream still has something to do
  const auto callers = device->create_stream(0);
  fake().delay_ms = 0;
  const auto ours = device->create_stream(0);
  std::uint8_t seen = 0;
  const auto read = [&] {
    ours->copy_to_host(&seen, memory->address(), 1);
    ours->synchronize();
    return seen;
  };
  ours->fill(memory->address(), 1, 64);
  ours->synchronize();
  callers->fill(memory->address(), 2, 64);
  EXPECT_EQ(read(), 1);  // without an event: too early
  const auto event = device->create_event(0);
  callers->fill(memory->address(), 3, 64);
  callers->record(*event);
  ours->wait(*event);
  EXPECT_EQ(read(), 3);
}

TEST_F(DriverModels, PeersThatDoNotReachEachOtherAreNamed) {
  for (const auto& pair : {std::pair{0, 1}, std::pair{1, 0}}) {
    fake().lossy = pair;
    const auto [code, text] = error_of([] { (void)create_cuda_device(2); });
    EXPECT_EQ(code, ErrorCode::kEnvironment);
    EXPECT_THAT(text,
                AllOf(HasSubstr("GPU " + std::to_string(pair.first) +
                                " cannot use the memory of GPU " + std::to_string(pair.second)),
                      HasSubstr("\"symmetric\": false"), HasSubstr("one GPU")));
  }
  fake().lossy = {-1, -1};
  fake().unlinked = {1, 0};
  EXPECT_THAT(error_of([] { (void)create_cuda_device(2); }).second,
              AllOf(HasSubstr("GPU 1 cannot use the memory of GPU 0"), HasSubstr("700")));
  fake().unlinked = {-1, -1};
  fake().peer_access = false;
  EXPECT_THAT(error_of([] { (void)create_cuda_device(2); }).second,
              HasSubstr("GPU 0 cannot use the memory of GPU 1"));
  fake().peer_access = true;
  fake().fail = "cuCtxEnablePeerAccess";
  fake().error = 217;
  EXPECT_THAT(error_of([] { (void)create_cuda_device(2); }).second,
              HasSubstr("GPU 0 cannot use the memory of GPU 1"));
}

TEST_F(DriverModels, AFaultStaysInItsContext) {
  const cuda::Api& api = cuda::Api::get(true);
  cuda::Context other = nullptr;
  cuda::Address foreign = 0;
  ASSERT_EQ(api.cuDevicePrimaryCtxRetain(&other, 1), 0);
  ASSERT_EQ(api.cuCtxPushCurrent(other), 0);
  ASSERT_EQ(api.cuMemAlloc(&foreign, 256), 0);
  {
    const auto device = create_cuda_device(1);  // GPU 0, which is not linked to GPU 1
    const auto memory = device->allocate(0, 256);
    const auto stream = device->create_stream(0);
    const auto module = load(*device, ptx("7.0"));
    const std::uint64_t mine = memory->address();
    const std::uint64_t timeout_ns = 1;
    const std::uint32_t token = 7;
    const std::array<const void*, 4> args{&mine, &foreign, &timeout_ns, &token};
    stream->launch(module->function("braid_meet"), {{1}, {32}}, args);
    EXPECT_THAT(error_of([&] { stream->synchronize(); }).second, HasSubstr("700"));
    // From now on every call fails so, whatever it asks.
    EXPECT_THAT(error_of([&] { (void)module->function("missing"); }).second, HasSubstr("700"));
    EXPECT_THAT(error_of([&] { (void)device->allocate(0, 1); }).second, HasSubstr("700"));
    EXPECT_THAT(error_of([&] { stream->fill(mine, 0, 256); }).second, HasSubstr("700"));
    cuda::Address more = 0;
    EXPECT_EQ(api.cuMemAlloc(&more, 256), 0);  // GPU 1 is well
    EXPECT_EQ(api.cuMemFree(more), 0);
  }
  EXPECT_NO_THROW((void)create_cuda_device(1)->allocate(0, 1));  // a new context
  EXPECT_EQ(api.cuMemFree(foreign), 0);
  EXPECT_EQ(api.cuCtxPopCurrent(&other), 0);
  EXPECT_EQ(api.cuDevicePrimaryCtxRelease(1), 0);
}

TEST_F(DriverModels, SharedMemoryIsBoundedByTheGpu) {
  const auto device = create_cuda_device(1);
  const auto stream = device->create_stream(0);
  const auto launch = [&](Function& function, std::uint32_t shared_bytes) {
    const auto memory = device->allocate(0, 256);
    const std::uint64_t mine = memory->address();
    const std::uint64_t timeout_ns = 1;
    const std::uint32_t token = 7;
    const std::array<const void*, 4> args{&mine, &mine, &timeout_ns, &token};
    stream->launch(function, {{1}, {32}, shared_bytes}, args);
    stream->synchronize();
  };
  const auto module = load(*device, ptx("7.0", ".shared .align 4 .b8 fixed[1024];\n"));
  Function& function = module->function("braid_meet");
  EXPECT_NO_THROW(launch(function, 47 << 10));
  EXPECT_THROW(launch(function, 48 << 10), Error);  // static memory counts
  function.set_max_dynamic_shared(226 << 10);
  EXPECT_NO_THROW(launch(function, 226 << 10));
  EXPECT_THROW(function.set_max_dynamic_shared(227 << 10), Error);
  fake().capability[0] = 86;
  EXPECT_THAT(error_of([&] { function.set_max_dynamic_shared(100 << 10); }),
              ::testing::Pair(ErrorCode::kEnvironment, HasSubstr("dynamic shared memory")));
  fake().fail = "cuFuncSetAttribute";
  fake().error = 700;
  EXPECT_THAT(error_of([&] { function.set_max_dynamic_shared(1); }).second, HasSubstr("700"));
}

}  // namespace
}  // namespace braid
