#include "runtime/output_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <csignal>
#include <deque>
#include <thread>
#include <vector>

#include "braid/error.h"
#include "runtime/child.h"
#include "runtime/temporary_directory.h"

namespace braid {
namespace {

namespace fs = std::filesystem;

struct stat file_status(const fs::path& path) {
  struct stat info {};
  EXPECT_EQ(::lstat(path.c_str(), &info), 0) << path;
  return info;
}

std::size_t count_files(const fs::path& directory) {
  return static_cast<std::size_t>(std::distance(fs::directory_iterator(directory), {}));
}

// 0, or 1 + the code of the error.
int outcome(const fs::path& path, std::string_view content) {
  try {
    write_output_file(path, content);
    return 0;
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find(path.string()), std::string::npos) << error.what();
    return 1 + static_cast<int>(error.code());
  }
}
constexpr int kRefused = 1 + static_cast<int>(ErrorCode::kInvalidArgument);
constexpr int kFailed = 1 + static_cast<int>(ErrorCode::kEnvironment);

class OutputFileTest : public ::testing::Test {
 protected:
  TemporaryDirectory temporary_;
  fs::path folder_ = temporary_.path();
  fs::path file_ = folder_ / "out.json";
};

TEST_F(OutputFileTest, AModeAsOfAnyNewFileAndTheModeOfTheOldOne) {
  const mode_t old = ::umask(027);
  write_output_file(file_, "one");
  ::umask(old);
  EXPECT_EQ(file_status(file_).st_mode & 07777, 0640U);
  ::chmod(file_.c_str(), 0604);
  const ino_t inode = file_status(file_).st_ino;
  const std::string_view parts[] = {"two", " ", "parts"};
  write_output_file(file_, parts);
  EXPECT_EQ(read_file(file_), "two parts");
  EXPECT_EQ(file_status(file_).st_mode & 07777, 0604U);
  EXPECT_NE(file_status(file_).st_ino, inode) << "it was not replaced as a whole";
  EXPECT_EQ(count_files(folder_), 1U);
}

TEST_F(OutputFileTest, NothingTakesItsPlaceBeforeItIsPublished) {
  write_file(file_, "old");
  {
    const std::string_view content = "new";
    const OutputFile file(file_, {&content, 1});
    EXPECT_EQ(read_file(file_), "old");
  }
  EXPECT_EQ(read_file(file_), "old");
  EXPECT_EQ(count_files(folder_), 1U);
}

TEST_F(OutputFileTest, NoNameThatCanBeForeseenIsFollowed) {
  const fs::path victim = folder_ / "victim";
  write_file(victim, "precious");
  fs::create_symlink(victim, file_.string() + ".tmp" + std::to_string(::getpid()));
  write_output_file(file_, "new");
  EXPECT_EQ(read_file(victim), "precious");
}

TEST_F(OutputFileTest, LinksAreWrittenThrough) {
  fs::create_directory(folder_ / "far");
  write_file(folder_ / "far" / "target", "old");
  fs::create_symlink("far/target", folder_ / "first");
  fs::create_symlink("first", file_);
  write_output_file(file_, "new");
  EXPECT_TRUE(fs::is_symlink(file_));
  EXPECT_TRUE(fs::is_symlink(folder_ / "first"));
  EXPECT_EQ(read_file(folder_ / "far" / "target"), "new");

  fs::create_symlink("far/made", folder_ / "dangling");
  write_output_file(folder_ / "dangling", "made");
  EXPECT_TRUE(fs::is_symlink(folder_ / "dangling"));
  EXPECT_EQ(read_file(folder_ / "far" / "made"), "made");
  EXPECT_EQ(count_files(folder_ / "far"), 2U);

  fs::create_symlink("loop", folder_ / "loop");
  EXPECT_EQ(outcome(folder_ / "loop", "x"), kFailed);

  fs::create_hard_link(folder_ / "far" / "made", folder_ / "second_name");
  write_output_file(folder_ / "second_name", "both");
  EXPECT_EQ(read_file(folder_ / "far" / "made"), "both");
}

TEST_F(OutputFileTest, DevicesStayDevices) {
  const fs::path null = folder_ / "null", full = folder_ / "full";
  if (::mknod(null.c_str(), S_IFCHR | 0666, ::makedev(1, 3)) != 0 ||
      ::mknod(full.c_str(), S_IFCHR | 0666, ::makedev(1, 7)) != 0 || outcome(null, "") != 0) {
    GTEST_SKIP() << "this user may not make devices";
  }
  EXPECT_EQ(outcome(null, "x"), 0);
  EXPECT_TRUE(S_ISCHR(file_status(null).st_mode));
  fs::create_symlink("null", folder_ / "link");
  EXPECT_EQ(outcome(folder_ / "link", "x"), 0);
  EXPECT_TRUE(S_ISCHR(file_status(null).st_mode));
  EXPECT_EQ(outcome(full, "x"), kFailed);
  EXPECT_TRUE(S_ISCHR(file_status(full).st_mode));
  EXPECT_EQ(count_files(folder_), 3U);
}

TEST_F(OutputFileTest, APipeIsWrittenInto) {
  ASSERT_EQ(::mkfifo(file_.c_str(), 0600), 0);
  std::string got;
  std::thread reader([&] { got = read_file(file_); });
  const std::string content(200'000, 'x');
  write_output_file(file_, content);
  reader.join();
  EXPECT_EQ(got, content);
  EXPECT_TRUE(S_ISFIFO(file_status(file_).st_mode));
  EXPECT_EQ(count_files(folder_), 1U);
}

TEST_F(OutputFileTest, StandardOutputGoesOnWhereItStands) {
  const fs::path link = folder_ / "stdout";  // as /dev/stdout is one
  fs::create_symlink("/proc/self/fd/1", link);
  EXPECT_EQ(in_child([&] {
              const int out = ::open(file_.c_str(), O_WRONLY | O_CREAT, 0600);
              if (::dup2(out, STDOUT_FILENO) < 0 || ::write(STDOUT_FILENO, "a", 1) != 1) return 9;
              const int code = outcome(link, "b");
              return ::write(STDOUT_FILENO, "c", 1) == 1 ? code : 9;
            }),
            0);
  EXPECT_EQ(read_file(file_), "abc");
  EXPECT_TRUE(fs::is_symlink(link));
}

TEST_F(OutputFileTest, StandardOutputMayBeThePipeOfAnotherUser) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs a second user";
  const fs::path link = folder_ / "stdout";
  ::chmod(folder_.c_str(), 0755);
  fs::create_symlink("/proc/self/fd/1", link);
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  EXPECT_EQ(in_child([&] {
              if (::dup2(ends[1], STDOUT_FILENO) < 0 || ::setuid(65534) != 0) return 9;
              return outcome(link, "x");
            }),
            0);
  char byte = 0;
  ::close(ends[1]);
  EXPECT_EQ(::read(ends[0], &byte, 1), 1);
  EXPECT_EQ(byte, 'x');
  ::close(ends[0]);
}

TEST_F(OutputFileTest, WhatCannotBeWrittenIsRefused) {
  EXPECT_EQ(outcome(folder_, "x"), kRefused);
  EXPECT_EQ(outcome(folder_ / "none" / "x", "x"), kFailed);
  EXPECT_EQ(outcome("/proc/version/x", "x"), kFailed);
  EXPECT_EQ(count_files(folder_), 0U);
}

TEST_F(OutputFileTest, PermissionsHold) {
  ::chmod(folder_.c_str(), 0755);
  write_file(file_, "old");
  ::chmod(file_.c_str(), 0444);
  write_file(folder_ / "open", "a long old text");
  ::chmod((folder_ / "open").c_str(), 0666);
  fs::create_directory(folder_ / "own");
  write_file(folder_ / "own" / "file", "old");
  ::chmod((folder_ / "own" / "file").c_str(), 0444);
  ::chmod((folder_ / "own").c_str(), 0777);
  if (::geteuid() != 0) GTEST_SKIP() << "needs a second user";
  EXPECT_EQ(in_child([&] {
              if (::setgid(65534) != 0 || ::setuid(65534) != 0) return 9;
              // A file that may not be written is not replaced either.
              if (outcome(file_, "x") != kFailed) return 10;
              if (outcome(folder_ / "own" / "file", "x") != kFailed) return 11;
              if (outcome(folder_ / "new", "x") != kFailed) return 12;
              // In place, where the folder takes no new file.
              return outcome(folder_ / "open", "new");
            }),
            0);
  EXPECT_EQ(read_file(file_), "old");
  EXPECT_EQ(read_file(folder_ / "own" / "file"), "old");
  EXPECT_EQ(read_file(folder_ / "open"), "new");
  EXPECT_EQ(count_files(folder_), 3U);

  // Root does not take a file away from its owner.
  ASSERT_EQ(::chown((folder_ / "open").c_str(), 65534, 65534), 0);
  write_output_file(folder_ / "open", "of root");
  EXPECT_EQ(file_status(folder_ / "open").st_uid, 65534U);
}

/// Runs `body` as another user, in that group and none else.
template <class Body>
int as_another_user(gid_t group, Body body) {
  return in_child([&] {
    if (::setgroups(0, nullptr) != 0 || ::setgid(group) != 0 || ::setuid(65534) != 0) return 9;
    return body();
  });
}

TEST_F(OutputFileTest, WhatMayBeWrittenButNotReplacedIsWrittenInPlace) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs a second user";
  ::chmod(folder_.c_str(), 01777);  // as /tmp: only owners remove names
  write_file(file_, "a long old text");
  ASSERT_EQ(::chown(file_.c_str(), 0, 65534), 0);
  ::chmod(file_.c_str(), 0666);
  EXPECT_EQ(as_another_user(65534, [&] { return outcome(file_, "new"); }), 0);
  EXPECT_EQ(read_file(file_), "new");
  EXPECT_EQ(file_status(file_).st_uid, 0U);
  EXPECT_EQ(count_files(folder_), 1U);
}

TEST_F(OutputFileTest, AMountPointIsWrittenInPlace) {
  const fs::path real = folder_ / "real", bound = folder_ / "bound";
  write_file(real, "a long old text");
  write_file(bound, "");
  const int code = in_child([&] {
    if (::unshare(CLONE_NEWNS) != 0 ||
        ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::mount(real.c_str(), bound.c_str(), nullptr, MS_BIND, nullptr) != 0) {
      return 77;
    }
    return outcome(bound, "new");
  });
  if (code == 77) GTEST_SKIP() << "this machine lets no test mount a file";
  EXPECT_EQ(code, 0);
  EXPECT_EQ(read_file(real), "new");
  EXPECT_EQ(count_files(folder_), 2U);
}

TEST_F(OutputFileTest, TheGroupStays) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs a second user";
  ::chmod(folder_.c_str(), 0777);
  const auto make = [&](gid_t group) {
    fs::remove(file_);
    write_file(file_, "a long old text");
    ASSERT_EQ(::chown(file_.c_str(), 0, group), 0);
    ::chmod(file_.c_str(), 0666);
  };
  make(12345);
  const auto write = [&] {
    const gid_t shared = 12345;
    if (::setgroups(1, &shared) != 0 || ::setgid(65534) != 0 || ::setuid(65534) != 0) return 9;
    return outcome(file_, "new");
  };
  EXPECT_EQ(in_child(write), 0);
  EXPECT_EQ(read_file(file_), "new");
  EXPECT_EQ(file_status(file_).st_gid, 12345U);
  // One that a new file cannot have: the old one is written.
  make(0);
  const ino_t inode = file_status(file_).st_ino;
  EXPECT_EQ(as_another_user(65534, [&] { return outcome(file_, "new"); }), 0);
  EXPECT_EQ(read_file(file_), "new");
  EXPECT_EQ(file_status(file_).st_ino, inode);
  EXPECT_EQ(file_status(file_).st_gid, 0U);
  EXPECT_EQ(count_files(folder_), 1U);
}

TEST_F(OutputFileTest, NothingIsLeftOfAProcessThatIsKilled) {
  const int unnamed = ::open(folder_.c_str(), O_TMPFILE | O_WRONLY, 0600);
  if (unnamed < 0) GTEST_SKIP() << "this file system has no files without a name";
  ::close(unnamed);
  EXPECT_EQ(in_child([&] {
              const std::string_view content = "new";
              const OutputFile file(file_, {&content, 1});
              return ::raise(SIGKILL);
            }),
            -1);
  EXPECT_EQ(count_files(folder_), 0U);
}

TEST_F(OutputFileTest, ManyFilesAreWrittenBeforeTheFirstIsPublished) {
  constexpr int kFiles = 700;  // more than there are descriptors
  EXPECT_EQ(in_child([&] {
              const rlimit limit{600, 600};
              if (::setrlimit(RLIMIT_NOFILE, &limit) != 0) return 9;
              const std::string_view content = "new";
              std::deque<OutputFile> files;
              for (int i = 0; i < kFiles; ++i) {
                files.emplace_back(folder_ / std::to_string(i), std::span(&content, 1));
              }
              for (OutputFile& file : files) file.publish();
              return 0;
            }),
            0);
  EXPECT_EQ(count_files(folder_), static_cast<std::size_t>(kFiles));
  EXPECT_EQ(read_file(folder_ / "0"), "new");
  EXPECT_EQ(read_file(folder_ / "699"), "new");
}

TEST_F(OutputFileTest, AFullDiskLeavesTheOldFileAndNothingElse) {
  write_file(file_, "old");
  EXPECT_EQ(in_child([&] {
              ::signal(SIGXFSZ, SIG_IGN);
              const rlimit limit{1000, 1000};  // a write past it fails, as on a full disk
              if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) return 9;
              const std::string content(5000, 'x');
              if (outcome(folder_ / "new", content) != kFailed) return 10;
              return outcome(file_, content);
            }),
            kFailed);
  EXPECT_EQ(read_file(file_), "old");
  EXPECT_EQ(count_files(folder_), 1U);
}

}  // namespace
}  // namespace braid
