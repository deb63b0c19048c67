// Wild accesses of kernels that nothing checks: errors, and a process that goes on.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <malloc.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csetjmp>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <new>
#include <thread>

#include "braid/error.h"
#include "cpu/cpu_harness.h"
#include "findings.h"

namespace braid::cpu_test {
namespace {

using testing::HasSubstr;
using testing::MatchesRegex;
using testing::Not;

/// Every thread does `body` with %rd1 = the pointer and %rd2 = the offset it was given, in kernels
/// that run their warps in each of the ways there are.
std::string text(const std::string& body, const std::string& before_end = "") {
  return R"(.version 9.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 p, .param .u64 offset)
{
  .reg .b32 %r<8>; .reg .b64 %rd<8>; .reg .pred %p<2>;
  .shared .align 16 .b8 sm[256]; .local .align 16 .b8 loc[32];
  ld.param.u64 %rd1, [p]; ld.param.u64 %rd2, [offset]; add.u64 %rd3, %rd1, %rd2;
  cvt.u32.u64 %r2, %rd2; mov.u32 %r1, %laneid; mul.wide.u32 %rd4, %r1, 4;
  )" + body +
         "\n  " + before_end + "\n  ret;\n}\n";
}

constexpr const char* kWays[] = {
    "", "bar.sync 0;",
    // A loop that may wait for others.
    "WAIT: ld.volatile.global.u32 %r7, [%rd1]; setp.ne.u32 %p1, %r7, 0; @%p1 bra WAIT;"};

std::string error_of(Bench& bench, std::uint64_t pointer, std::uint64_t offset,
                     unsigned blocks = 1) {
  try {
    bench.run({blocks}, {64}, 0, pointer, offset);
    return "";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInternal);
    return error.what();
  }
}

TEST(Fault, EndsTheKernelAndNothingElse) {
  for (const char* way : kWays) {
    Bench bench = Bench::from_ptx(text("st.global.u32 [%rd3], %r2;", way));
    const std::uint64_t p =
        bench.upload(std::vector<std::uint32_t>(100));  // 512 bytes with its end
    for (int round = 0; round < 3; ++round) {
      EXPECT_EQ(error_of(bench, p, 64), "");
      EXPECT_THAT(error_of(bench, p, 512),
                  MatchesRegex("kernel k: an access to 0x[0-9a-f]+, 112 bytes after 400 bytes of "
                               "memory: rank 0, block \\(0, 0, 0\\)"))
          << way;
      EXPECT_THAT(error_of(bench, p, 1U << 20), HasSubstr("1048176 bytes after 400 bytes"));
      EXPECT_THAT(error_of(bench, p, ~0ULL << 20), HasSubstr("1048576 bytes before 400 bytes"));
      EXPECT_THAT(error_of(bench, p, 0 - p, 50),
                  HasSubstr("an access to 0x0, which is not the device's memory: rank 0"));
      EXPECT_THAT(error_of(bench, p, 1ULL << 62), HasSubstr("that no memory can have"));
    }
    // No address is near an allocation of zero bytes.
    const std::uint64_t none = bench.upload(std::vector<std::uint32_t>());
    EXPECT_THAT(error_of(bench, p, none + 4096 - p), HasSubstr(" bytes of memory"));
    EXPECT_THAT(error_of(bench, p, none + 4096 - p), Not(HasSubstr(" 0 bytes of memory")));
    EXPECT_EQ(bench.download<std::uint32_t>(p, 17)[16], 64U);
  }
}

// What its warps did is over when the next kernel of the stream begins: block 0 writes in the one
// that is stopped, block 1 in the other one.
TEST(Fault, ACheckedKernelThatIsStoppedRacesWithNoLaterOne) {
  for (const char* way : kWays) {
    Bench bench =
        Bench::from_ptx(text("mov.u32 %r3, %ctaid.x; shr.u64 %rd4, %rd2, 20; cvt.u32.u64 %r4, %rd4;"
                             "setp.ne.u32 %p1, %r3, %r4; @%p1 st.global.u32 [%rd1+8], %r3;"
                             "@%p1 st.global.u32 [%rd3], %r1;",
                             way),
                        {.threads = 1, .checks = kCheckRace | kCheckBounds});
    const std::uint64_t p = bench.upload(std::vector<std::uint32_t>(100));
    const auto run = [&](std::uint64_t offset) { bench.run({2}, {1}, 0, p, offset); };
    EXPECT_NE(cpu_test::error_of([&] { run(1U << 20); }), "");
    bench.device().inspector()->forget();
    run(64);
    for (const Finding& finding : found_by(bench.device())) ADD_FAILURE() << finding.text();
  }
}

TEST(Fault, OfEveryKindOfAccess) {
  for (const char* body : {
           "ld.global.u32 %r3, [%rd3]; st.global.u32 [%rd1], %r3;",
           "add.u64 %rd3, %rd3, %rd4; st.global.u32 [%rd3], %r1;",
           "mul.lo.u64 %rd4, %rd4, %rd4; add.u64 %rd3, %rd3, %rd4; st.global.u32 [%rd3], %r1;",
           "mul.lo.u64 %rd4, %rd4, %rd4; add.u64 %rd3, %rd3, %rd4; ld.global.u32 %r3, [%rd3];"
           "st.global.u32 [%rd1], %r3;",
           "atom.global.add.u32 %r3, [%rd3], 1;",
           "ld.acquire.sys.global.u32 %r3, [%rd3];",
           "mov.u32 %r4, sm; cp.async.ca.shared.global [%r4], [%rd3], 16; cp.async.wait_all;",
           "mov.u32 %r4, sm; add.u32 %r4, %r4, %r2; st.shared.u32 [%r4], %r1;",
           "mov.u32 %r4, sm; sub.u32 %r4, %r4, %r2; ld.shared.u32 %r3, [%r4];"
           "st.global.u32 [%rd1], %r3;",
           "mov.u64 %rd5, loc; add.u64 %rd5, %rd5, %rd2; st.local.u32 [%rd5], %r1;",
       }) {
    Bench bench = Bench::from_ptx(text(body, "bar.sync 0;"));
    const std::uint64_t p = bench.upload(std::vector<std::uint32_t>(4096));
    EXPECT_EQ(error_of(bench, p, 0), "") << body;
    EXPECT_THAT(error_of(bench, p, 1U << 20), HasSubstr("an access to 0x")) << body;
    EXPECT_EQ(error_of(bench, p, 0), "") << body;
  }
}

/// An access that is not aligned is an error on a GPU; here only where the host minds.
TEST(Fault, OfMatricesThatAreNotAligned) {
  Bench bench = Bench::from_ptx(
      text("mov.u32 %r4, sm; add.u32 %r4, %r4, %r2;"
           "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r3}, [%r4]; st.global.u32 [%rd1], %r3;"));
  const std::uint64_t p = bench.upload(std::vector<std::uint32_t>(4096));
  EXPECT_EQ(error_of(bench, p, 16), "");
  EXPECT_THAT(error_of(bench, p, 2), HasSubstr("not aligned"));
}

TEST(Fault, NamesTheRankAndSparesTheOthers) {
  const auto device = create_cpu_device({.world = 2, .threads = 2});
  const std::string ptx = text("st.global.u32 [%rd3], %r2;");
  std::vector<std::unique_ptr<Memory>> memory;
  std::vector<std::unique_ptr<Module>> modules;
  std::vector<std::unique_ptr<Stream>> streams;
  for (int rank = 0; rank < 2; ++rank) {
    memory.push_back(device->allocate(rank, 256));
    modules.push_back(device->load(rank, {"k", ptx, {}}));
    streams.push_back(device->create_stream(rank));
    const std::uint64_t p = memory.back()->address();
    const std::uint64_t offset = rank == 1 ? 256 : 4;
    const void* arguments[] = {&p, &offset};
    streams.back()->launch(modules.back()->function("k"), {{1000}, {64}}, arguments);
  }
  streams[0]->synchronize();
  EXPECT_EQ(reinterpret_cast<const std::uint32_t*>(memory[0]->address())[1], 4U);
  try {
    streams[1]->synchronize();
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("0 bytes after 256 bytes of memory: rank 1, block"));
  }
  streams[1]->fill(memory[1]->address(), 1, 256);
  streams[1]->synchronize();
}

/// Rank 1 waits for what rank 0 does not come to write, launched before it or after.
TEST(Fault, EndsWaitsOfOtherRanks) {
  const auto device = create_cpu_device({.world = 2, .threads = 2});
  const std::string wild = text("st.global.u32 [%rd3], %r2;");
  const std::string waits = text("", kWays[2]);
  for (const int first : {0, 1, 0}) {
    std::vector<std::unique_ptr<Memory>> memory;
    std::vector<std::unique_ptr<Module>> modules;
    std::vector<std::unique_ptr<Stream>> streams;
    for (int rank = 0; rank < 2; ++rank) {
      memory.push_back(device->allocate(rank, 256));
      modules.push_back(device->load(rank, {"k", rank == 0 ? wild : waits, {}}));
      streams.push_back(device->create_stream(rank));
      streams[static_cast<std::size_t>(rank)]->fill(memory.back()->address(), 1, 256);
    }
    for (const int rank : {first, 1 - first}) {
      const auto r = static_cast<std::size_t>(rank);
      const std::uint64_t p = memory[r]->address();
      const std::uint64_t offset = rank == 0 ? 256 : 0;
      const void* arguments[] = {&p, &offset};
      streams[r]->launch(modules[r]->function("k"), {{40}, {64}}, arguments);
      if (rank == 0) std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    try {
      streams[1]->synchronize();
      FAIL();
    } catch (const Error& error) {
      EXPECT_THAT(error.what(),
                  MatchesRegex("kernel k: polls, and another kernel failed: k: an access .*"
                               "256 bytes of memory: rank 0, block .*"));
    }
    EXPECT_THROW(streams[0]->synchronize(), Error);
    // A wait that ends is none of this.
    const std::uint64_t p = memory[1]->address();
    const std::uint64_t offset = 0;
    const void* arguments[] = {&p, &offset};
    streams[1]->launch(modules[1]->function("k"), {{1}, {64}}, arguments);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    streams[0]->fill(p, 0, 4);
    streams[1]->synchronize();
  }
}

TEST(Fault, OfFreedMemory) {
  Bench bench = Bench::from_ptx(text("st.global.u32 [%rd3], %r2;"));
  auto memory = bench.device().allocate(0, 4096);
  const std::uint64_t p = memory->address();
  EXPECT_EQ(error_of(bench, p, 8), "");
  memory.reset();
  EXPECT_THAT(error_of(bench, p, 8), HasSubstr("an access to 0x"));
}

sigjmp_buf back;
void host_handler(int /*signal*/) { siglongjmp(back, 1); }

void touch_nothing() { *reinterpret_cast<volatile int*>(8) = 1; }

/// The host's own faults are its own, before, with and after a device.
int faults_of_the_host() {
  struct sigaction own {};
  own.sa_handler = &host_handler;
  own.sa_flags = SA_NODEFER;
  sigaction(SIGSEGV, &own, nullptr);
  int caught = 0;
  const auto fault = [&] {
    if (sigsetjmp(back, 1) == 0) {
      touch_nothing();
    } else {
      ++caught;
    }
  };
  {
    Bench bench = Bench::from_ptx(text("st.global.u32 [%rd3], %r2;"));
    fault();
    const std::uint64_t p = bench.upload(std::vector<std::uint32_t>(100));
    if (error_of(bench, p, 512).empty()) return -1;
    fault();
  }
  fault();
  struct sigaction after {};
  sigaction(SIGSEGV, nullptr, &after);
  return after.sa_handler == &host_handler ? caught : -2;
}

/// In a process of its own: other tests keep devices open.
TEST(FaultDeathTest, LeavesThoseOfTheHostAlone) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(std::_Exit(faults_of_the_host()), testing::ExitedWithCode(3), "");
}

/// The host puts in a handler of its own while a device is there: the next one is as good as the
/// first, and the host's handlers are asked in their order.
struct sigaction theirs {};
int asked = 0;
void later_handler(int signal, siginfo_t* info, void* context) {
  if (++asked > 9) std::_Exit(9);
  theirs.sa_sigaction(signal, info, context);
}

int faults_behind_a_later_handler(bool calls_ours) {
  struct sigaction own {};
  own.sa_handler = &host_handler;
  own.sa_flags = SA_NODEFER;
  sigaction(SIGSEGV, &own, nullptr);
  const auto kernel_faults = [](Bench& bench) {
    return !error_of(bench, bench.upload(std::vector<std::uint32_t>(100)), 512).empty();
  };
  const auto fault = [&] {
    if (sigsetjmp(back, 1) == 0) touch_nothing();
  };
  {
    Bench bench = Bench::from_ptx(text("st.global.u32 [%rd3], %r2;"));
    struct sigaction later {};
    later.sa_sigaction = &later_handler;
    later.sa_flags = SA_NODEFER | SA_SIGINFO | SA_ONSTACK;
    sigaction(SIGSEGV, calls_ours ? &later : &own, &theirs);
  }
  for (int round = 0; round < 2; ++round) {
    Bench bench = Bench::from_ptx(text("st.global.u32 [%rd3], %r2;"));
    if (!kernel_faults(bench)) return 50;
    fault();
    fault();
    if (!kernel_faults(bench)) return 51;
  }
  fault();
  return asked;
}

TEST(FaultDeathTest, SurvivesAHandlerThatComesLater) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(std::_Exit(faults_behind_a_later_handler(false)), testing::ExitedWithCode(0), "");
  EXPECT_EXIT(std::_Exit(faults_behind_a_later_handler(true)), testing::ExitedWithCode(5), "");
}

/// SA_SIGINFO says how a handler is called, and there is none.
TEST(FaultDeathTest, AnActionThatIsNoHandlerIsNotCalled) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  const auto raised = [] {
    struct sigaction none {};
    none.sa_handler = SIG_IGN;
    none.sa_flags = SA_SIGINFO;
    sigaction(SIGSEGV, &none, nullptr);
    Bench bench = Bench::from_ptx(text("st.global.u32 [%rd3], %r2;"));
    raise(SIGSEGV);
    std::_Exit(0);
  };
  EXPECT_EXIT(raised(), testing::ExitedWithCode(0), "");
}

TEST(FaultDeathTest, WithoutAHandlerTheProcessEnds) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_DEATH(
      {
        Bench bench = Bench::from_ptx(text("st.global.u32 [%rd3], %r2;"),
                                      {.threads = 1, .catch_faults = false});
        error_of(bench, bench.upload(std::vector<std::uint32_t>(100)), 512);
      },
      "");
  EXPECT_DEATH(
      {
        Bench bench = Bench::from_ptx(text("st.global.u32 [%rd3], %r2;"));
        touch_nothing();
      },
      "");
}

std::uint64_t addresses_in_use() {
  std::uint64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

void limit_addresses(std::uint64_t more) {
  rlimit limit{addresses_in_use() + more, RLIM_INFINITY};
  setrlimit(RLIMIT_AS, &limit);
}

/// Says what was thrown, and ends the process.
template <class F>
[[noreturn]] void tell(F&& body) {
  try {
    body();
    std::fputs("nothing was thrown\n", stderr);
  } catch (const Error& error) {
    std::fprintf(stderr, "[%d] %s\n", static_cast<int>(error.code()), error.what());
  } catch (const std::bad_alloc&) {
    std::fputs("out of memory\n", stderr);
  }
  std::_Exit(0);
}

TEST(LimitsDeathTest, AThreadThatCannotStartIsAnError) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(tell([] {
                limit_addresses(std::uint64_t{2} << 30);
                create_cpu_device({.threads = 4096});
              }),
              testing::ExitedWithCode(0),
              "\\[1\\] cpu: cannot start worker thread [0-9]+ of 4096: Resource temporarily");
}

TEST(LimitsDeathTest, AStackThatCannotBeMappedIsAnError) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(tell([] {
                Bench bench = Bench::from_ptx(text("", kWays[2]), {.threads = 1});
                const std::uint64_t p = bench.upload(std::vector<std::uint32_t>(4));
                const std::uint64_t none = 0;
                bench.run({1}, {32}, 0, p, none);
                limit_addresses(std::uint64_t{1} << 20);
                bench.run({1}, {1024}, 0, p, none);
              }),
              testing::ExitedWithCode(0),
              "\\[4\\] kernel k: cpu: cannot map the stack of a warp: Cannot allocate memory");
}

std::ptrdiff_t mappings() {
  std::ifstream maps("/proc/self/maps");
  return std::count(std::istreambuf_iterator<char>(maps), {}, '\n');
}

TEST(Limits, RanksShareTheirCode) {
  const auto device = create_cpu_device({.world = 200, .threads = 1});
  const std::string ptx = text("st.global.u32 [%rd3], %r2;");
  std::vector<std::unique_ptr<Module>> modules;
  const std::ptrdiff_t before = mappings();
  for (int rank = 0; rank < 200; ++rank) modules.push_back(device->load(rank, {"k", ptx, {}}));
  EXPECT_LT(mappings() - before, 50);
}

/// Uses up the mappings of the process, but leaves malloc enough in one that it has.
void use_up_mappings() {
  mallopt(M_MMAP_MAX, 0);
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
  std::free(std::malloc(std::size_t{256} << 20));
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const std::size_t pages = 1 << 19;
  auto* const memory = static_cast<std::uint8_t*>(
      mmap(nullptr, pages * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
  std::size_t p = 1;
  while (p < pages && mprotect(memory + p * page, page, PROT_READ) == 0) p += 2;
  if (p >= pages) std::_Exit(77);  // there are too many
}

TEST(LimitsDeathTest, MappingsThatRunOutAreNamed) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  std::size_t limit = 0;
  std::ifstream("/proc/sys/vm/max_map_count") >> limit;
  if (limit == 0 || limit > 200'000) GTEST_SKIP() << "as many mappings as one likes";
  const auto load = [] {
    const auto device = create_cpu_device({.threads = 1});
    std::vector<std::unique_ptr<Module>> modules;
    use_up_mappings();
    for (int i = 0; i < 64; ++i) {
      modules.push_back(
          device->load(0, {"k", text("mov.u32 %r3, " + std::to_string(i) + ";"), {}}));
    }
  };
  EXPECT_EXIT(
      tell(load), testing::ExitedWithCode(0),
      testing::MatchesRegex("\\[1\\] cpu: no room for the code of a kernel: Cannot allocate "
                            "memory; .*vm.max_map_count.*\n"));
  const auto allocate = [] {
    const auto device = create_cpu_device({.threads = 1});
    use_up_mappings();
    std::vector<std::unique_ptr<Memory>> memory;
    for (;;) memory.push_back(device->allocate(0, 4096));
  };
  EXPECT_EXIT(tell(allocate), testing::ExitedWithCode(0),
              "\\[1\\] cpu: cannot allocate 4096 bytes: Cannot allocate .*vm.max_map_count");
}

/// Wherever the memory ends in a translation, the process does not. With the last it is enough.
TEST(LimitsDeathTest, MemoryThatRunsOutInLlvmIsAnError) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  std::string body;
  for (int i = 0; i < 4000; ++i) body += "add.u32 %r3, %r2, %r1; st.global.u32 [%rd1], %r3;\n";
  // A thread's heap may reserve 64 for the last size.
  for (const std::uint64_t mib : {2, 6, 7, 8, 9, 10, 11, 256}) {
    EXPECT_EXIT(tell([&] {
                  const auto device = create_cpu_device({.threads = 1});
                  (void)device->load(0, {"k", text(""), {}});
                  limit_addresses(mib << 20);
                  (void)device->load(0, {"k", text(body), {}});
                }),
                testing::ExitedWithCode(0),
                mib == 256 ? "nothing" : "nothing|out of memory|Cannot allocate memory")
        << mib;
  }
}

TEST(LimitsDeathTest, FewAddressesAreEnough) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(tell([] {
                limit_addresses(std::uint64_t{2} << 30);
                Bench bench = Bench::from_ptx(text("st.global.u32 [%rd3], %r2;"), {.threads = 2});
                bench.run({1}, {32}, 0, bench.upload(std::vector<std::uint32_t>(100)),
                          std::uint64_t{4});
              }),
              testing::ExitedWithCode(0), "nothing was thrown");
  EXPECT_EXIT(tell([] {
                limit_addresses(std::uint64_t{64} << 20);
                create_cpu_device({.threads = 1});
              }),
              testing::ExitedWithCode(0), "\\[1\\] cpu: cannot reserve 256 MiB of addresses");
}

/// More values at one time than the stacks of warps had room for.
TEST(Stack, HasRoomForTheFrameOfAnyKernel) {
  constexpr std::uint32_t kValues = 1100;
  std::string body = fmt::format(".reg .b32 %v<{}>; add.u64 %rd5, %rd1, %rd4;\n", kValues);
  for (std::uint32_t v = 0; v < kValues; ++v) {
    body += fmt::format("ld.global.u32 %v{}, [%rd5+{}];\n", v, 4 * v + 4);
  }
  // A call that may write there, so that none is loaded just before it is used. It keeps no
  // register, so that all are spilled without a search for the best ones.
  body += "ld.volatile.global.u32 %r2, [%rd5+4];\n";
  // Twice each: whether a load may become a part of its only use takes long to find out.
  for (std::uint32_t v = 0; v < kValues; ++v) {
    body += fmt::format("mad.lo.u32 %r2, %r2, 3, %v{0}; add.u32 %r2, %r2, %v{0};\n", v);
  }
  body += "st.global.u32 [%rd5+4], %r2;\n";
  std::vector<std::uint32_t> words(kValues + 32);
  for (std::uint32_t w = 1; w < words.size(); ++w) words[w] = w * w + 3;
  for (const char* way : kWays) {
    Bench bench = Bench::from_ptx(text(body, way));
    const std::uint64_t memory = bench.upload(words);
    bench.run({1}, {32}, 0, memory, std::uint64_t{0});
    const auto got = bench.download<std::uint32_t>(memory, 33);
    for (std::uint32_t lane = 0; lane < 32; ++lane) {
      std::uint32_t expected = words[lane + 1];
      for (std::uint32_t v = 0; v < kValues; ++v) expected = expected * 3 + 2 * words[lane + v + 1];
      EXPECT_EQ(got[lane + 1], expected) << way;
    }
  }
}

}  // namespace
}  // namespace braid::cpu_test
