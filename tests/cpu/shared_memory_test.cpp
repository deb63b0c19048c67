// Memory of one cpu device that another one maps, in another process as a rule.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <filesystem>
#include <iterator>

#include "braid/error.h"
#include "runtime/bytes.h"
#include "runtime/child.h"
#include "runtime/cpu/cpu_device.h"
#include "runtime/error_of.h"
#include "runtime/exec/import_peer.h"

namespace braid {
namespace {

using ::testing::HasSubstr;

std::unique_ptr<Device> open() { return create_cpu_device({.world = 2, .threads = 1}); }

std::uint32_t* words(const Memory& memory) {
  return reinterpret_cast<std::uint32_t*>(memory.address());
}

std::string import_error(Device& device, const std::string& handle) {
  try {
    (void)device.import_memory(1, handle);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

/// A way for a line of bytes between processes.
class Pipe {
 public:
  Pipe() { EXPECT_EQ(::pipe(ends_.data()), 0); }
  ~Pipe() {
    for (const int end : ends_) ::close(end);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  void put(const std::string& bytes) const {
    EXPECT_EQ(::write(ends_[1], bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
  }
  [[nodiscard]] std::string take() const {
    std::array<char, 4096> bytes{};
    const ssize_t count = ::read(ends_[0], bytes.data(), bytes.size());
    return {bytes.data(), static_cast<std::size_t>(std::max<ssize_t>(count, 0))};
  }

 private:
  std::array<int, 2> ends_{};
};

long open_files() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {});
}

constexpr std::size_t kBytes = 3 * 4096 + 512;

TEST(SharedMemory, IsOneMemoryInTwoProcesses) {
  const Pipe handle, answer;
  const pid_t child = start_child([&] {
    const auto device = open();
    const std::string bytes = handle.take();
    const auto memory = device->import_memory(1, bytes);
    const bool kept = memory->size() == kBytes && words(*memory)[3000] == 17;
    words(*memory)[1] = 18;
    answer.put(kept ? "written" : "lost");
    (void)handle.take();  // the other one has freed it by now
    return words(*memory)[1] == 18 ? 0 : 2;
  });
  const auto device = open();
  auto memory = device->allocate(0, kBytes);
  const std::uint64_t address = memory->address();
  words(*memory)[3000] = 17;
  const std::string bytes = memory->export_handle();
  EXPECT_EQ(memory->address(), address);
  EXPECT_EQ(words(*memory)[3000], 17U);
  EXPECT_EQ(memory->export_handle(), bytes);
  handle.put(bytes);
  EXPECT_EQ(answer.take(), "written");
  EXPECT_EQ(words(*memory)[1], 18U);
  memory.reset();
  EXPECT_THAT(import_error(*open(), bytes), HasSubstr("does not have it (any more)"));
  handle.put("freed");
  EXPECT_EQ(exit_status(child), 0);
}

TEST(SharedMemory, OutlivesAProcessThatIsKilled) {
  const Pipe handle, never;
  const pid_t child = start_child([&] {
    const auto device = open();
    const auto memory = device->allocate(0, kBytes);
    words(*memory)[7] = 70;
    handle.put(memory->export_handle());
    (void)never.take();
    return 0;
  });
  const auto device = open();
  const std::string bytes = handle.take();
  const auto memory = device->import_memory(1, bytes);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_EQ(words(*memory)[7], 70U);
  words(*memory)[8] = 80;
  EXPECT_EQ(import_error(*device, bytes),
            fmt::format("memory: process {} does not have it (any more) on this machine; expected "
                        "ranks that run together on one machine",
                        child));
  const auto [code, text] = error_of([&] { (void)import_peer(*device, 1, 2, bytes); });
  EXPECT_THAT(text, testing::StartsWith("rank 2 cannot be reached: memory: process"));
  EXPECT_EQ(code, ErrorCode::kEnvironment);
}

TEST(SharedMemory, OfTwoDevicesOfOneProcessIsOne) {
  const long before = open_files();
  {
    const auto device = open(), other = open();
    const auto memory = device->allocate(0, kBytes);
    const auto imported = other->import_memory(1, memory->export_handle());
    EXPECT_NE(imported->address(), memory->address());
    words(*memory)[9] = 90;
    EXPECT_EQ(words(*imported)[9], 90U);
    const auto again = device->import_memory(1, imported->export_handle());  // by a third party
    EXPECT_EQ(words(*again)[9], 90U);
  }
  EXPECT_EQ(open_files(), before);
}

TEST(SharedMemory, OfAnotherUserIsRefused) {
  if (::getuid() != 0) GTEST_SKIP() << "needs two users";
  const auto device = open();
  const auto memory = device->allocate(0, kBytes);
  const std::string bytes = memory->export_handle();
  EXPECT_EQ(in_child([&] {
              const auto mine = open();
              if (::setgid(65534) != 0 || ::setuid(65534) != 0) return 1;
              return import_error(*mine, bytes).find("is another user's") != std::string::npos ? 0
                                                                                               : 2;
            }),
            0);
}

TEST(SharedMemory, BadHandlesAreRefused) {
  const auto device = open(), other = open();
  const auto memory = device->allocate(0, kBytes);
  const std::string handle = memory->export_handle();
  EXPECT_THAT(import_error(*other, ""), HasSubstr("no handle of a cpu device's memory"));
  for (std::size_t size = 1; size < handle.size(); ++size) {
    EXPECT_NE(import_error(*other, handle.substr(0, size)), "no error") << size;
  }
  for (std::size_t at = 0; at < handle.size(); ++at) {
    std::string damaged = handle;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x41);
    // Ignored fields: what distinguishes devices of one process, if there are two, and after 70
    // bytes the id of the answering process. Sizes are in pages.
    const std::string error = import_error(*other, damaged);
    EXPECT_EQ(error.find('\n'), std::string::npos);
    EXPECT_TRUE(error != "no error" || (at >= 22 && at <= 46) || (at >= 70 && at < 78)) << at;
  }
  std::string format = handle;
  format[18] = 9;
  EXPECT_THAT(import_error(*other, format),
              HasSubstr("format 9; expected 3: the same version of braid on all ranks"));
}

TEST(SharedMemory, IsNothingForADeviceThatChecks) {
  const auto device = open();
  for (const auto& checked : {create_cpu_device({.world = 2, .checks = kCheckAll}),
                              create_cpu_device({.world = 2, .count = true})}) {
    const auto memory = device->allocate(0, kBytes), its = checked->allocate(0, kBytes);
    EXPECT_THAT(import_error(*checked, memory->export_handle()), HasSubstr("checks or counts"));
    EXPECT_THAT(import_error(*device, its->export_handle()), HasSubstr("checks or counts"));
    EXPECT_EQ(checked->import_memory(1, its->export_handle())->address(), its->address());
  }
}

}  // namespace
}  // namespace braid
