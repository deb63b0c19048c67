#include <dlfcn.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pmmintrin.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

#include "braid/error.h"
#include "cpu/cpu_harness.h"
#include "findings.h"
#include "runtime/compile/disk_cache.h"
#include "runtime/cpu/cpu_device.h"
#include "runtime/cpu/translate/build_id.h"

namespace braid::cpu_test {
namespace {

using testing::HasSubstr;

TEST(Device, DescribesItself) {
  const auto device = create_cpu_device({.world = 4, .threads = 2});
  EXPECT_EQ(device->kind(), "cpu");
  EXPECT_EQ(device->target(), "sm_80");
  EXPECT_EQ(device->world(), 4);
  EXPECT_THAT(device->description(), HasSubstr("4 virtual ranks on 2 threads"));
  EXPECT_THAT(error_of([&] { (void)device->allocate(4, 8); }), HasSubstr("rank 4 of 4"));
  EXPECT_EQ(device->allocate(0, 100)->address() % 256, 0U);
}

TEST(Device, TellsTheVersionOfLlvm) {
  EXPECT_THAT(braid_cpu_llvm_version(), testing::MatchesRegex("[0-9]+[.][0-9]+[.][0-9]+.*"));
}

TEST(Device, ChecksLaunches) {
  Bench bench(
      "extern \"C\" __global__ void k(int* p) { extern __shared__ int s[]; s[threadIdx.x] = 1; "
      "p[0] = s[0]; }");
  const std::uint64_t p = bench.upload(std::vector<int>(1));
  EXPECT_THAT(error_of([&] { bench.run({1}, {1025}, 0, p); }), HasSubstr("1 to 1024 threads"));
  EXPECT_THAT(error_of([&] { bench.run({0}, {32}, 0, p); }),
              HasSubstr("x 65535 blocks, not 0 x 1 x 1"));
  EXPECT_THAT(error_of([&] { bench.run({1}, {32}, 100000, p); }),
              HasSubstr("set_max_dynamic_shared"));
  EXPECT_THAT(error_of([&] { bench.function().set_max_dynamic_shared(300000); }),
              HasSubstr("above the limit"));
  EXPECT_THAT(error_of([&] { bench.run({1}, {32}, 128); }), HasSubstr("takes 1 parameters"));
  bench.function().set_max_dynamic_shared(227 * 1024);
  bench.run({1}, {32}, 227 * 1024, p);
  EXPECT_EQ(bench.download<int>(p, 1)[0], 1);
}

TEST(Device, TrapAndDeadlockBecomeErrors) {
  Bench bench(
      "extern \"C\" __global__ void k(int mode) { if (mode == 1 && threadIdx.x == 40) __trap(); "
      "if (mode == 2) { if (threadIdx.x < 32) asm volatile(\"bar.sync 1, 64;\"); else asm "
      "volatile(\"bar.sync 2, 64;\"); } __syncthreads(); }");
  int mode = 1;
  EXPECT_THAT(error_of([&] { bench.run({3}, {64}, 0, mode); }), HasSubstr("kernel k: trap"));
  mode = 2;
  EXPECT_THAT(error_of([&] { bench.run({3}, {64}, 0, mode); }), HasSubstr("kernel k: deadlock"));
  mode = 0;
  EXPECT_EQ(error_of([&] { bench.run({3}, {64}, 0, mode); }), "");
}

/// Every rank signals all others and waits for all: once per round, with release and acquire.
constexpr const char* kBarrier =
    R"(extern "C" __global__ void k(unsigned** flags, unsigned* data, unsigned** peers, int rank, int world, int rounds) {
  int t = threadIdx.x; for (int r = 1; r <= rounds; ++r) {
    if (t == 0) data[blockIdx.x] = r * 100 + rank; __syncthreads();
    if (t < world) { unsigned* to = flags[t] + blockIdx.x * 8 + rank; asm volatile("st.release.sys.global.u32 [%0], %1;" :: "l"(to), "r"(2 * r - 1) : "memory");
      unsigned* from = flags[rank] + blockIdx.x * 8 + t; unsigned v; do { asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(v) : "l"(from) : "memory"); } while ((int)(v - (2 * r - 1)) < 0);
      if (peers[t][blockIdx.x] != r * 100 + t) __trap(); }
    __syncthreads();
    if (t < world) { unsigned* to = flags[t] + blockIdx.x * 8 + rank; asm volatile("st.release.sys.global.u32 [%0], %1;" :: "l"(to), "r"(2 * r) : "memory");
      unsigned* from = flags[rank] + blockIdx.x * 8 + t; unsigned v; do { asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(v) : "l"(from) : "memory"); } while ((int)(v - 2 * r) < 0); }
    __syncthreads(); } })";

class CrossRank : public testing::TestWithParam<std::pair<int, int>> {};

TEST_P(CrossRank, FlagsMakeProgress) {
  const auto [world, threads] = GetParam();
  static const std::string kPtx = compile_cuda(kBarrier);
  const auto device = create_cpu_device({.world = world, .threads = threads});
  const unsigned blocks = 5;
  std::vector<std::unique_ptr<Memory>> flags;
  std::vector<std::unique_ptr<Memory>> data;
  std::vector<std::unique_ptr<Module>> modules;
  std::vector<std::unique_ptr<Stream>> streams;
  const auto flag_table = device->allocate(0, 64);
  const auto data_table = device->allocate(0, 64);
  for (int r = 0; r < world; ++r) {
    flags.push_back(device->allocate(r, blocks * 32));
    data.push_back(device->allocate(r, blocks * 4));
    modules.push_back(device->load(r, {"k", kPtx, {}}));
    streams.push_back(device->create_stream(r));
    streams[r]->fill(flags[r]->address(), 0, blocks * 32);
    streams[r]->synchronize();
    const std::uint64_t f = flags[r]->address();
    const std::uint64_t d = data[r]->address();
    std::memcpy(reinterpret_cast<std::uint64_t*>(flag_table->address()) + r, &f, 8);
    std::memcpy(reinterpret_cast<std::uint64_t*>(data_table->address()) + r, &d, 8);
  }
  for (int r = 0; r < world; ++r) {
    const std::uint64_t f = flag_table->address();
    const std::uint64_t own = data[r]->address();
    const std::uint64_t p = data_table->address();
    const int rounds = 20;
    const void* args[] = {&f, &own, &p, &r, &world, &rounds};
    streams[r]->launch(modules[r]->function("k"), {{blocks}, {64}}, args);
  }
  for (auto& stream : streams) stream->synchronize();
}

INSTANTIATE_TEST_SUITE_P(Worlds, CrossRank,
                         testing::Values(std::pair{2, 1}, std::pair{2, 2}, std::pair{3, 1},
                                         std::pair{5, 2}, std::pair{8, 1}, std::pair{8, 3}));

TEST(Device, AWaitingGridLargerThanTheLimitStillStartsItsPartner) {
  // 600 blocks wait for the one behind them.
  Bench bench(
      "extern \"C\" __global__ void k(volatile int* f, int* done) { if (blockIdx.x == gridDim.x - "
      "1) { if (threadIdx.x == 0) f[0] = 1; } else while (f[0] == 0) {} if (threadIdx.x == 0) "
      "atomicAdd(done, 1); }",
      {.threads = 1});
  const std::uint64_t f = bench.upload(std::vector<int>(1));
  const std::uint64_t done = bench.upload(std::vector<int>(1));
  bench.run({600}, {32}, 0, f, done);
  EXPECT_EQ(bench.download<int>(done, 1)[0], 600);
}

TEST(Device, StreamsAndEvents) {
  Bench bench(
      "extern \"C\" __global__ void k(int* p, int a, int b) { int i = blockIdx.x * blockDim.x + "
      "threadIdx.x; p[i] = p[i] * a + b; }");
  const int n = 4096;
  const std::uint64_t p = bench.upload(std::vector<int>(n, 1));
  auto second = bench.device().create_stream(0);
  auto forth = bench.device().create_event(0);
  auto back = bench.device().create_event(0);
  const auto launch = [&](Stream& stream, int a, int b) {
    const void* args[] = {&p, &a, &b};
    stream.launch(bench.function(), {{n / 128}, {128}}, args);
  };
  int want = 1;
  for (int round = 0; round < 50; ++round) {
    launch(bench.stream(), 3, round);
    bench.stream().record(*forth);
    second->wait(*forth);
    launch(*second, 5, -round);
    second->record(*back);
    bench.stream().wait(*back);
    want = static_cast<int>((static_cast<unsigned>(want) * 3U + static_cast<unsigned>(round)) * 5U -
                            static_cast<unsigned>(round));
  }
  std::vector<int> host(n);
  bench.stream().copy_to_host(host.data(), p, n * sizeof(int));
  bench.stream().synchronize();
  for (const int value : host) ASSERT_EQ(value, want);
  second->synchronize();
}

TEST(Device, ValuesOrderStreams) {
  for (const int threads : {1, 2}) {
    const auto device = create_cpu_device({.world = 2, .threads = threads});
    const auto words = device->allocate(0, 8);
    const std::uint64_t word = words->address();
    const auto first = device->create_stream(0);
    const auto second = device->create_stream(1);
    first->wait_value(word, 3);
    first->fill(word + 4, 1, 4);
    second->write_value(word, 2);
    second->synchronize();
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    const auto* done = reinterpret_cast<const volatile std::uint32_t*>(word + 4);
    EXPECT_EQ(*done, 0U);
    second->write_value(word, 4);  // past it
    first->synchronize();
    EXPECT_EQ(*done, 0x01010101U);
    second->write_value(word, 0xfffffff0U);
    second->synchronize();
    first->wait_value(word, 5);
    second->write_value(word, 6);  // past it, and past zero
    first->synchronize();
    EXPECT_THAT(error_of([&] { first->wait_value(word + 2, 5); }), HasSubstr("multiple of 4"));
  }
}

/// A launch of few instructions runs on the calling thread, where nothing is before it; in its
/// turn, where something is.
TEST(Device, SmallLaunchesRunInPlaceButInTheirTurn) {
  Bench bench("extern \"C\" __global__ void k(int* p) { *p = 7; }");
  const auto words = bench.device().allocate(0, 8);
  const std::uint64_t wait_for = words->address();
  const std::uint64_t out = words->address() + 4;
  const auto* done = reinterpret_cast<const volatile int*>(out);
  const void* const args[] = {&out};
  bench.stream().launch(bench.function(), {{1}, {32}}, args);
  EXPECT_EQ(*done, 7);
  bench.stream().fill(out, 0, 4);
  bench.stream().wait_value(wait_for, 1);
  bench.stream().launch(bench.function(), {{1}, {32}}, args);
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_EQ(*done, 0);
  const auto other = bench.device().create_stream(0);
  other->write_value(wait_for, 1);
  bench.stream().synchronize();
  EXPECT_EQ(*done, 7);
}

/// Servers run with subnormals off, and threads have what the one that starts them has.
TEST(Device, KernelsComputeAsTheyDoWhateverTheHostSet) {
  constexpr unsigned kOfTheHost = 0x1f80 | _MM_FLUSH_ZERO_ON | 0x40 /* DAZ */ | _MM_ROUND_UP;
  const unsigned before = _mm_getcsr();
  _mm_setcsr(kOfTheHost);
  Bench bench(
      "extern \"C\" __global__ void k(float* p, int n) {\n"
      "  for (int i = threadIdx.x; i < n; i += 32) p[i] = p[i] * 0.5f + 1e-39f; }",
      {.threads = 1});
  Bench brief(
      "extern \"C\" __global__ void k(float* p, int n) {\n"
      "  int i = threadIdx.x; if (i < n) p[i] = p[i] * 0.5f + 1e-39f; }");
  for (Bench* const one : {&bench, &brief}) {
    const std::uint64_t p = one->upload(std::vector<float>(32, 3e-39F));
    const std::uint64_t ones = one->upload(std::vector<float>(32, 2.0F));
    one->run({1}, {32}, 0, p, 32);
    one->run({1}, {32}, 0, ones, 32);
    EXPECT_EQ(_mm_getcsr() & ~_MM_EXCEPT_MASK, kOfTheHost);
    _mm_setcsr(before);
    EXPECT_EQ(one->download<float>(p, 32), std::vector<float>(32, 3e-39F * 0.5F + 1e-39F));
    EXPECT_EQ(one->download<float>(ones, 32), std::vector<float>(32, 1.0F));
    _mm_setcsr(kOfTheHost);
  }
  _mm_setcsr(before);
}

/// A failed kernel ends the wait for a value that it does not come to write, and the error goes on
/// with events.
TEST(Device, AFailureEndsWaitsForValuesAndFollowsEvents) {
  Bench bench("extern \"C\" __global__ void k() { __trap(); }");
  const auto word = bench.device().allocate(0, 4);
  const auto waiting = bench.device().create_stream(0);
  const auto behind = bench.device().create_stream(0);
  const auto event = bench.device().create_event(0);
  waiting->wait_value(word->address(), 1);
  bench.stream().launch(bench.function(), {{1}, {32}}, {});
  bench.stream().write_value(word->address(), 1);
  bench.stream().record(*event);
  behind->wait(*event);
  EXPECT_THAT(error_of([&] { waiting->synchronize(); }),
              HasSubstr("waits for a value, and another kernel failed: k: trap"));
  EXPECT_THAT(error_of([&] { behind->synchronize(); }), HasSubstr("k: trap"));
  EXPECT_THAT(error_of([&] { bench.stream().synchronize(); }), HasSubstr("k: trap"));
  EXPECT_EQ(*reinterpret_cast<const std::uint32_t*>(word->address()), 0U);
  behind->fill(word->address(), 7, 4);
  behind->synchronize();
}

// Blocks may wait for another process that needs the cores. Two threads that never slept would take
// two cores all the time. A loaded machine may charge sleepers much in one window, so one of many
// windows must show it.
TEST(Device, BlocksThatSpinLeaveTheCoresToOthers) {
  Bench bench("extern \"C\" __global__ void k(volatile int* p) { while (*p == 0) {} }",
              {.threads = 2});
  const std::uint64_t word = bench.upload(std::vector<int>{0});
  const void* const args[] = {&word};
  const auto used = [] { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; };
  bench.stream().launch(bench.function(), {{3}, {64}}, args);
  double least = 2;
  for (int window = 0; window < 100 && least > 0.5; ++window) {
    const double before = used();
    const auto start = std::chrono::steady_clock::now();
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - start;
    least = std::min(least, (used() - before) / wall.count());
  }
  EXPECT_LT(least, 0.5) << "cores in use, of 2";
  *reinterpret_cast<volatile int*>(word) = 1;
  bench.stream().synchronize();
}

// The process has no other thread that could write what they wait for.
TEST(Device, PollsThatNobodyEndsAreAnError) {
  const std::filesystem::directory_iterator threads("/proc/self/task");
  if (std::distance(begin(threads), end(threads)) != 1) GTEST_SKIP() << "there are other threads";
  constexpr const char* kPolls = R"(
extern "C" __global__ void k(volatile int* p, int how) {
  __shared__ alignas(8) unsigned long long bar;
  const unsigned at = __cvta_generic_to_shared(&bar);
  if (how == 0) while (*p == 0) {}
  if (how == 1) while (p[threadIdx.x % 2] == 0) __nanosleep(100);
  if (how == 2) {
    if (threadIdx.x == 0) asm volatile("mbarrier.init.shared.b64 [%0], 2;" :: "r"(at));
    __syncthreads();
    if (threadIdx.x == 0) asm volatile("mbarrier.arrive.shared.b64 _, [%0];" :: "r"(at));
    asm volatile("{ .reg .pred p; L: mbarrier.try_wait.parity.shared.b64 p, [%0], 0;\n @!p bra L; }" :: "r"(at) : "memory");
  }
  if (how == 3) for (int i = 0; i < 200 && *p == 0; ++i) {}
  if (how == 4) for (const long long end = clock64() + 10000000; clock64() < end && *p == 0;) {}
  if (how == 5) while (atomicAdd((int*)p, 1) < 2000) {}
  p[2] = 1;
}
)";
  for (const int threads_of_device : {1, 2}) {
    Bench bench(kPolls, {.threads = threads_of_device});
    const std::uint64_t word = bench.upload(std::vector<int>(3));
    const auto deadlock = [&](int how, unsigned blocks, const std::string& what) {
      SCOPED_TRACE(how);
      EXPECT_THAT(
          error_of([&] { bench.run({blocks}, {64}, 0, word, how); }),
          testing::AllOf(HasSubstr("kernel k: deadlock: rank 0, block ("), HasSubstr(what),
                         HasSubstr("1 more of its warps wait"),
                         HasSubstr(blocks == 1 ? "; nothing is left" : "; 4 more blocks wait")));
    };
    deadlock(0, 1, "polls memory, ");
    deadlock(0, 5, "polls memory, ");
    deadlock(1, 5, "polls memory, ");
    deadlock(2, 1, "polls an mbarrier, ");
    // They end by themselves.
    for (const int how : {3, 4, 5}) {
      EXPECT_EQ(error_of([&] { bench.run({5}, {64}, 0, word, how); }), "") << how;
      bench.stream().fill(word, 0, 12);
    }
    // Another thread may still come.
    const int how = 0;
    std::thread later([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(300));
      *reinterpret_cast<volatile int*>(word) = 1;
    });
    EXPECT_EQ(error_of([&] { bench.run({5}, {64}, 0, word, how); }), "");
    later.join();
  }
}

// As on a GPU, whose shared window begins at a multiple of 16 MiB.
TEST(Device, TheLowBitsOfAGenericAddressAreThatOfSharedMemory) {
  Bench bench(R"(
extern "C" __global__ void k(unsigned long long* out) {
  extern __shared__ __align__(1024) char box[];
  __shared__ int words[96];
  const void* const places[] = {box, box + 40, &words[threadIdx.x]};
  for (int i = 0; i < 3; ++i) {
    out[2 * i] = (unsigned long long)places[i];
    out[2 * i + 1] = __cvta_generic_to_shared(places[i]);
  }
})",
              {.threads = 1});
  const std::uint64_t out = bench.upload(std::vector<std::uint64_t>(6));
  for (const unsigned shared : {1024U, 40U << 10U, 64U}) {
    bench.run({1}, {1}, shared, out);
    const auto places = bench.download<std::uint64_t>(out, 6);
    for (std::size_t i = 0; i < 6; i += 2) EXPECT_EQ(places[i] & 0xffffff, places[i + 1]);
  }
}

TEST(Device, LaunchAttributes) {
  Bench bench("extern \"C\" __global__ void k(int* p, int by) { *p += by; }");
  const std::uint64_t word = bench.upload(std::vector<int>{1});
  const int two = 2;
  const void* const args[] = {&word, &two};
  EXPECT_EQ(error_of([&] {
              bench.stream().launch(bench.function(), {{4}, {32}, 0, {.cluster = {3}}}, args);
            }),
            "k: a grid of 4 x 1 x 1 blocks is launched in clusters of 3 x 1 x 1; expected whole "
            "clusters");
  // One after the other is one of the orders that overlap allows.
  for (int i = 0; i < 3; ++i) {
    bench.stream().launch(bench.function(), {{1}, {1}, 0, {.programmatic = true}}, args);
  }
  bench.stream().synchronize();
  EXPECT_EQ(bench.download<int>(word, 1)[0], 7);
}

// As a tensor map is passed to an instruction: by its aligned address.
TEST(Device, AParameterByValueHasAnAddress) {
  struct Table {
    float values[48];
  };
  for (const unsigned checks : {0U, unsigned{kCheckAll}}) {
    Bench bench(R"(
      struct __align__(64) Table { float values[48]; };
      extern "C" __global__ void k(const float* x, const __grid_constant__ Table table, float* y,
                                   int which, unsigned long long* at) {
        const float* from = which ? table.values : x;
        y[threadIdx.x] = from[threadIdx.x];
        if (threadIdx.x == 0) *at = (unsigned long long)&table;
      })",
                {.threads = 1, .checks = checks});
    const std::uint64_t x = bench.upload(std::vector<float>(32, 7));
    const std::uint64_t y = bench.upload(std::vector<float>(32));
    const std::uint64_t at = bench.upload(std::vector<std::uint64_t>(1));
    bench.stream().fill(x, 0, 128);
    Table table{};
    for (int i = 0; i < 48; ++i) table.values[i] = static_cast<float>(i);
    for (const int which : {1, 0}) {
      bench.run({1}, {32}, 0, x, table, y, which, at);
      for (std::size_t i = 0; i < 32; ++i) {
        EXPECT_EQ(bench.download<float>(y, 32)[i], which == 1 ? static_cast<float>(i) : 0);
      }
      EXPECT_EQ(bench.download<std::uint64_t>(at, 1)[0] % 64, 0U);
    }
    for (const Finding& finding : found_by(bench.device())) ADD_FAILURE() << finding.text();
  }
}

TEST(Device, MemoryIsSharedWithinTheDevice) {
  const auto device = create_cpu_device({.world = 2, .threads = 1});
  auto memory = device->allocate(0, 256);
  const std::uint64_t address = memory->address();
  const std::string handle = memory->export_handle();
  auto imported = device->import_memory(1, handle);
  EXPECT_EQ(imported->address(), address);
  EXPECT_EQ(imported->size(), 256U);
  memory.reset();
  *reinterpret_cast<std::uint32_t*>(address) = 7;  // it is still there
  imported.reset();
  EXPECT_THAT(error_of([&] { (void)device->import_memory(1, handle); }), HasSubstr("was freed"));
  EXPECT_THAT(error_of([&] { (void)device->import_memory(1, "x"); }), HasSubstr("no handle"));
  EXPECT_THAT(error_of([&] { (void)device->wrap_stream(0, nullptr); }),
              HasSubstr("no raw streams"));
}

TEST(Device, CopiesKeepStreamOrder) {
  Bench bench(
      "extern \"C\" __global__ void k(int* p) { for (int r = 0; r < 200; ++r) p[threadIdx.x] += 1; "
      "}");
  const std::uint64_t p = bench.upload(std::vector<int>(64));
  const std::uint64_t q = bench.upload(std::vector<int>(64));
  std::vector<int> values(64, 7);
  std::vector<int> host(64);
  Stream& stream = bench.stream();
  const void* args[] = {&p};
  stream.launch(bench.function(), {{1}, {64}}, args);
  stream.copy_from_host(p, values.data(), 256);
  std::fill(values.begin(), values.end(), 0);
  stream.launch(bench.function(), {{1}, {64}}, args);
  stream.copy(q, p, 256);
  stream.fill(p, 0xff, 256);
  stream.copy_to_host(host.data(), q, 256);
  stream.synchronize();
  for (const int value : host) EXPECT_EQ(value, 207);
  EXPECT_EQ(bench.download<int>(p, 1)[0], -1);
}

TEST(Device, GlobalTimerAndVolatileVectors) {
  Bench bench(
      R"(extern "C" __global__ void k(unsigned* o, unsigned long long* t) { unsigned long long a, b; asm volatile("mov.u64 %0, %globaltimer;" : "=l"(a));
    int i = threadIdx.x; asm volatile("st.volatile.global.v4.u32 [%0], {%1, %2, %3, %4};" :: "l"(o + i * 4), "r"(i), "r"(7), "r"(i + 1), "r"(9) : "memory");
    unsigned x, y, z, w; asm volatile("ld.volatile.global.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(x), "=r"(y), "=r"(z), "=r"(w) : "l"(o + i * 4) : "memory");
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(b)); t[i] = (x == i && y == 7 && z == i + 1 && w == 9 && b >= a) ? 1 : 0; })");
  const std::uint64_t o = bench.upload(std::vector<unsigned>(256));
  const std::uint64_t t = bench.upload(std::vector<std::uint64_t>(64));
  bench.run({1}, {64}, 0, o, t);
  for (const auto value : bench.download<std::uint64_t>(t, 64)) EXPECT_EQ(value, 1U);
}

/// The one file of a cache directory. A new entry is a new file put in the place of the old one, so
/// its inode tells whether anything was compiled and stored.
struct Entry {
  std::filesystem::path path;
  std::uint64_t inode = 0;
  std::string bytes;
};

Entry only_entry(const std::filesystem::path& directory) {
  Entry entry;
  for (const auto& file : std::filesystem::directory_iterator(directory)) {
    if (file.path().extension() != ".entry") continue;
    EXPECT_TRUE(entry.path.empty()) << "a second entry";
    entry.path = file.path();
  }
  struct stat status {};
  EXPECT_EQ(stat(entry.path.c_str(), &status), 0);
  entry.inode = status.st_ino;
  std::ifstream in(entry.path, std::ios::binary);
  entry.bytes.assign(std::istreambuf_iterator<char>(in), {});
  return entry;
}

/// The id that the linker wrote into the library's file.
TEST(Device, TheBuildIdIsThatOfTheLibrary) {
  Dl_info library{};
  ASSERT_NE(dladdr(reinterpret_cast<const void*>(&braid_create_cpu_device), &library), 0);
  std::ifstream in(library.dli_fname, std::ios::binary);
  const std::string bytes(std::istreambuf_iterator<char>(in), {});
  const std::string header("\x04\0\0\0\x14\0\0\0\x03\0\0\0GNU\0", 16);
  const std::size_t at = bytes.find(header);
  ASSERT_NE(at, std::string::npos) << library.dli_fname;
  std::string id;
  for (const char byte : bytes.substr(at + header.size(), 20)) {
    id += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  }
  EXPECT_EQ(cpu::build_id(), id);
}

TEST(Device, CompiledCodeComesFromTheDiskCache) {
  constexpr const char* kStoresSeven = R"(.version 7.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 p) {
  .reg .b64 %rd<2>;
  ld.param.u64 %rd1, [p];
  st.global.u32 [%rd1], 7;
  ret;
})";
  std::string name = testing::TempDir() + "braid-cpu-cache-XXXXXX";
  ASSERT_NE(mkdtemp(name.data()), nullptr);
  const std::filesystem::path directory = name;
  const DiskCache cache(directory);
  const auto load_and_run = [&] {
    const auto device = create_cpu_device({.threads = 1, .cache = &cache});
    const auto module = device->load(0, {"k", kStoresSeven, {}});
    const auto stream = device->create_stream(0);
    const auto memory = device->allocate(0, 4);
    const std::uint64_t address = memory->address();
    const void* args[] = {&address};
    stream->launch(module->function("k"), {{1}, {32}}, args);
    int value = 0;
    stream->copy_to_host(&value, address, 4);
    stream->synchronize();
    EXPECT_EQ(value, 7);
  };
  load_and_run();
  const Entry first = only_entry(directory);
  EXPECT_THAT(first.bytes, HasSubstr("\nbuild " + cpu::build_id() + "\n"));
  load_and_run();
  EXPECT_EQ(only_entry(directory).inode, first.inode) << "the second load compiled";

  std::string damaged = first.bytes;
  damaged[damaged.size() / 2] = static_cast<char>(~damaged[damaged.size() / 2]);
  std::ofstream(first.path, std::ios::binary) << damaged;
  load_and_run();
  const Entry repaired = only_entry(directory);
  EXPECT_EQ(repaired.bytes, first.bytes) << "a damaged entry is compiled anew";
  std::filesystem::remove_all(directory);
}

}  // namespace
}  // namespace braid::cpu_test
