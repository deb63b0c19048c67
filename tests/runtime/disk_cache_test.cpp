#include "runtime/compile/disk_cache.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <random>
#include <stdexcept>
#include <thread>
#include <vector>

#include "runtime/child.h"
#include "runtime/temporary_directory.h"

namespace braid {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

std::vector<fs::path> files(const fs::path& directory) {
  std::vector<fs::path> result;
  std::error_code error;
  for (const auto& file : fs::directory_iterator(directory, error)) result.push_back(file.path());
  return result;
}

class DiskCacheTest : public ::testing::Test {
 protected:
  TemporaryDirectory temporary_;
  fs::path directory_ = temporary_.path() / "cache";
  DiskCache cache_{directory_};
};

TEST_F(DiskCacheTest, MissThenHit) {
  EXPECT_FALSE(cache_.get({"key"}).has_value());
  EXPECT_FALSE(fs::exists(directory_));
  const std::string payload("a\0b", 3);
  cache_.put({"key"}, payload);
  EXPECT_EQ(cache_.get({"key"}), payload);
  EXPECT_FALSE(cache_.get({"other"}).has_value());
  cache_.put({"key"}, "");
  EXPECT_EQ(cache_.get({"key"}), "");
  struct stat info {};
  ASSERT_EQ(::stat(directory_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0700);
  EXPECT_EQ(cache_.usage().entries, 1);
}

TEST_F(DiskCacheTest, KeyMaterialIsCompared) {
  cache_.put({"first"}, "1");
  const fs::path first = files(directory_).at(0);
  cache_.put({"second"}, "2");
  for (const fs::path& file : files(directory_)) {
    // As if both keys had the same hash.
    if (file != first) fs::copy_file(first, file, fs::copy_options::overwrite_existing);
  }
  EXPECT_EQ(cache_.get({"first"}), "1");
  EXPECT_FALSE(cache_.get({"second"}).has_value());
}

TEST_F(DiskCacheTest, EveryFlippedBitIsAMiss) {
  cache_.put({"key"}, "payload");
  const fs::path file = files(directory_).at(0);
  const std::string good = read_file(file);
  for (std::size_t bit = 0; bit < good.size() * 8; ++bit) {
    std::string bad = good;
    bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ (1 << (bit % 8)));
    write_file(file, bad);
    ASSERT_FALSE(cache_.get({"key"}).has_value()) << "bit " << bit;
    ASSERT_FALSE(fs::exists(file)) << "bit " << bit;
  }
  for (std::size_t size = 0; size < good.size(); ++size) {
    write_file(file, good.substr(0, size));
    ASSERT_FALSE(cache_.get({"key"}).has_value()) << "truncated to " << size;
    ASSERT_FALSE(fs::exists(file)) << "truncated to " << size;
  }
  write_file(file, good + "x");
  EXPECT_FALSE(cache_.get({"key"}).has_value());
  write_file(file, good);
  EXPECT_EQ(cache_.get({"key"}), "payload");
}

TEST_F(DiskCacheTest, SomethingElseInTheWayIsAMiss) {
  cache_.put({"key"}, "payload");
  const fs::path file = files(directory_).at(0);
  fs::remove(file);
  ASSERT_EQ(::mkfifo(file.c_str(), 0600), 0);
  EXPECT_FALSE(cache_.get({"key"}).has_value());
  cache_.put({"key"}, "payload");
  EXPECT_EQ(cache_.get({"key"}), "payload");
}

TEST_F(DiskCacheTest, LinksAndFilesOfOthersAreMisses) {
  cache_.put({"key"}, "payload");
  const fs::path file = files(directory_).at(0);
  fs::rename(file, temporary_.path() / "elsewhere");
  fs::create_symlink(temporary_.path() / "elsewhere", file);
  EXPECT_FALSE(cache_.get({"key"}).has_value());
  EXPECT_FALSE(fs::is_symlink(file));
  EXPECT_TRUE(fs::exists(temporary_.path() / "elsewhere"));
  cache_.put({"key"}, "payload");
  ::chmod(file.c_str(), 0666);
  EXPECT_FALSE(cache_.get({"key"}).has_value());
  cache_.put({"key"}, "payload");
  if (::chown(file.c_str(), 65534, 65534) == 0) {
    EXPECT_FALSE(cache_.get({"key"}).has_value());
  }
}

TEST_F(DiskCacheTest, ADirectoryThatOthersCanChangeIsNotUsed) {
  EXPECT_EQ(cache_.problem(), "");
  cache_.put({"key"}, "payload");
  EXPECT_EQ(cache_.problem(), "");
  const auto expect_unused = [&] {
    EXPECT_FALSE(cache_.get({"key"}).has_value());
    EXPECT_FALSE(cache_.get_of_any_maker("key").has_value());
    bool hit = true;
    EXPECT_EQ(cache_.get_or_create(
                  {"other"}, [] { return "made"; }, &hit),
              "made");
    EXPECT_FALSE(hit);
    EXPECT_EQ(cache_.usage().entries, 0);
    EXPECT_TRUE(cache_.list().empty());
    EXPECT_EQ(cache_.prune(0).entries, 0);
    EXPECT_EQ(files(directory_).size(), 1);
  };
  for (const mode_t mode : {0770, 0720, 0702, 0777, 01777}) {
    SCOPED_TRACE(mode);
    ::chmod(directory_.c_str(), mode);
    EXPECT_THAT(cache_.problem(), ::testing::HasSubstr("others may write to it"));
    expect_unused();
  }
  ::chmod(directory_.c_str(), 0755);
  EXPECT_EQ(cache_.problem(), "");
  EXPECT_EQ(cache_.get({"key"}), "payload");
  if (::chown(directory_.c_str(), 65534, 65534) == 0) {
    EXPECT_THAT(cache_.problem(), ::testing::HasSubstr("belongs to user 65534"));
    expect_unused();
    ::chown(directory_.c_str(), ::geteuid(), ::getegid());
  }
  EXPECT_EQ(cache_.get({"key"}), "payload");
}

TEST_F(DiskCacheTest, ALockThatIsSomethingElseIsTakenAway) {
  cache_.put({"key"}, "payload");
  fs::path lock = files(directory_).at(0);
  fs::remove(lock);
  lock.replace_extension(".lock");
  const fs::path victim = temporary_.path() / "victim";
  const auto expect_made = [&](const char* what) {
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_EQ(cache_.get_or_create({"key"}, [] { return "made"; }), "made") << what;
    EXPECT_LT(std::chrono::steady_clock::now() - begin, 5s) << what;
    EXPECT_EQ(files(directory_).size(), 1) << what;
    cache_.prune(0);
  };
  fs::create_symlink(victim, lock);
  expect_made("a dangling link");
  EXPECT_FALSE(fs::exists(victim));
  write_file(victim, "x");
  fs::create_symlink(victim, lock);
  const int held = ::open(victim.c_str(), O_RDONLY);
  ASSERT_EQ(::flock(held, LOCK_EX), 0);
  expect_made("a link to a file that is locked");
  ::close(held);
  ASSERT_EQ(::mkfifo(lock.c_str(), 0600), 0);
  expect_made("a pipe");
  fs::create_directory(lock);
  EXPECT_EQ(cache_.get_or_create({"key"}, [] { return "made"; }), "made");
}

TEST_F(DiskCacheTest, SizesAreLookedAtBeforeAnythingIsRead) {
  cache_.put({"key"}, "payload");
  cache_.put({"other"}, "other");
  const auto grow = [&](std::string_view key, std::uintmax_t size) {
    for (const fs::path& file : files(directory_)) {
      if (read_file(file).find(key) != std::string::npos) fs::resize_file(file, size);
    }
  };
  constexpr std::uintmax_t kHuge = 50'000'000'000;
  grow("payload", kHuge);  // sparse: it takes no space
  EXPECT_EQ(cache_.list().size(), 2);
  EXPECT_FALSE(cache_.get({"key"}).has_value());
  EXPECT_EQ(cache_.usage().entries, 1);
  EXPECT_EQ(cache_.get({"other"}), "other");
  // One that nobody asks for does not push the others out.
  cache_.put({"key"}, "payload");
  grow("payload", kHuge);
  const DiskCache another(directory_);
  another.put({"third"}, "third");  // the first store looks at the whole directory
  EXPECT_EQ(another.usage().entries, 2);
  EXPECT_EQ(another.get({"other"}), "other");
  EXPECT_EQ(another.get({"third"}), "third");
  // Nor is memory taken for one of zeros that is not too large.
  grow("", 0);
  for (const fs::path& file : files(directory_)) fs::resize_file(file, 900'000'000);
  EXPECT_EQ(in_child([&] {
              rlim_t pages = 0;
              std::ifstream("/proc/self/statm") >> pages;
              const rlim_t most =
                  pages * static_cast<rlim_t>(::sysconf(_SC_PAGESIZE)) + (256 << 20);
              const rlimit limit{most, most};
              if (::setrlimit(RLIMIT_AS, &limit) != 0) return 9;
              if (cache_.get({"other"})) return 10;
              return cache_.list().at(0).intact ? 11 : 0;
            }),
            0);
}

TEST_F(DiskCacheTest, WhatAnyMakerMade) {
  EXPECT_FALSE(cache_.get_of_any_maker("key").has_value());
  cache_.put({"key", "tool 1"}, "by 1");
  cache_.put({"key", "tool 2"}, "by 2");
  cache_.put({"other", "tool 1"}, "other");
  EXPECT_EQ(cache_.get({"key", "tool 1"}), "by 1");
  EXPECT_EQ(cache_.get({"key", "tool 2"}), "by 2");
  EXPECT_FALSE(cache_.get({"key", "tool 3"}).has_value());
  EXPECT_FALSE(cache_.get({"key"}).has_value());
  EXPECT_EQ(cache_.usage().entries, 3);
  // The one that was used last.
  for (const std::string tool : {"1", "2", "1"}) {
    for (const fs::path& file : files(directory_)) {
      fs::last_write_time(file, fs::last_write_time(file) - 1s);
    }
    EXPECT_TRUE(cache_.get({"key", "tool " + tool}).has_value());
    EXPECT_EQ(cache_.get_of_any_maker("key"), "by " + tool);
  }
  EXPECT_FALSE(cache_.get_of_any_maker("ke").has_value());
}

TEST_F(DiskCacheTest, AnyMakersKeyIsComparedToo) {
  cache_.put({"first", "tool"}, "1");
  const fs::path first = files(directory_).at(0);
  cache_.put({"second", "tool"}, "2");
  for (const fs::path& file : files(directory_)) {
    if (file != first) fs::copy_file(first, file, fs::copy_options::overwrite_existing);
  }
  EXPECT_FALSE(cache_.get_of_any_maker("second").has_value());
}

TEST(DiskCache, DirectoryThatCannotBeWritten) {
  TemporaryDirectory temporary;
  write_file(temporary.path() / "file", "");
  for (const fs::path& directory :
       {temporary.path() / "file" / "cache", fs::path("/proc/braid"), fs::path("/dev/null")}) {
    const DiskCache cache(directory);
    cache.put({"key"}, "payload");
    EXPECT_FALSE(cache.get({"key"}).has_value()) << directory;
    bool hit = true;
    EXPECT_EQ(cache.get_or_create(
                  {"key"}, [] { return "made"; }, &hit),
              "made")
        << directory;
    EXPECT_FALSE(hit) << directory;
    EXPECT_EQ(cache.usage().entries, 0) << directory;
  }
}

TEST_F(DiskCacheTest, FullDiskLeavesNothingBehind) {
  const int status = in_child([&] {
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{1000, 1000};  // a write past it fails, as on a full disk
    if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) return 1;
    const std::string payload(5000, 'x');
    if (cache_.get_or_create({"key"}, [&] { return payload; }) != payload) return 2;
    return cache_.get({"key"}) ? 3 : 0;
  });
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(files(directory_).empty());
}

TEST_F(DiskCacheTest, ProcessesMakeOnce) {
  const fs::path log = temporary_.path() / "log";
  std::vector<pid_t> children;
  for (int i = 0; i < 8; ++i) {
    children.push_back(start_child([&] {
      const auto make = [&] {
        std::ofstream(log, std::ios::app) << 'x';
        std::this_thread::sleep_for(200ms);
        return std::string("payload");
      };
      return cache_.get_or_create({"key"}, make) == "payload" ? 0 : 1;
    }));
  }
  for (const pid_t child : children) EXPECT_EQ(exit_status(child), 0);
  EXPECT_EQ(read_file(log), "x");
  EXPECT_EQ(files(directory_).size(), 1);  // and no lock is left
}

TEST_F(DiskCacheTest, ThreadsMakeOnce) {
  std::atomic<int> made = 0, hits = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 6; ++i) {
    threads.emplace_back([&] {
      bool hit = false;
      const auto make = [&] {
        ++made;
        std::this_thread::sleep_for(100ms);
        return std::string("payload");
      };
      EXPECT_EQ(cache_.get_or_create({"key"}, make, &hit), "payload");
      hits += hit ? 1 : 0;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(made, 1);
  EXPECT_EQ(hits, 5);
}

TEST_F(DiskCacheTest, KilledHolderLetsGo) {
  const fs::path started = temporary_.path() / "started";
  const pid_t child = start_child([&] {
    cache_.get_or_create({"key"}, [&] {
      write_file(started, "x");
      std::this_thread::sleep_for(60s);
      return std::string("never");
    });
    return 0;
  });
  while (!fs::exists(started)) std::this_thread::sleep_for(1ms);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(cache_.get_or_create({"key"}, [] { return "made"; }), "made");
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 5s);
}

// kill -9 at random moments of writing: what is found afterwards is whole, and nothing else is ever
// given out. The soak sets BRAID_KILLS=1000.
TEST_F(DiskCacheTest, KilledWritersLeaveNoCorruptEntry) {
  const char* wanted = std::getenv("BRAID_KILLS");
  const int kills = wanted == nullptr ? 20 : std::atoi(wanted);
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const auto payload = [](int key) {
    return std::string(static_cast<std::size_t>(1 + key * 4099), static_cast<char>('a' + key % 26));
  };
  constexpr int kKeys = 60;
  int found = 0;
  for (int i = 0; i < kills; ++i) {
    const fs::path started = temporary_.path() / ("started" + std::to_string(i));
    const unsigned first = random();
    const pid_t child = start_child([&] {
      write_file(started, "x");
      for (unsigned k = first;; ++k) {
        const int key = static_cast<int>(k % kKeys);
        cache_.put({"key " + std::to_string(key)}, payload(key));
      }
      return 0;
    });
    while (!fs::exists(started)) std::this_thread::sleep_for(1ms);
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 5000));
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    for (const DiskCache::Entry& entry : cache_.list()) EXPECT_TRUE(entry.intact) << entry.name;
    for (int key = 0; key < kKeys; ++key) {
      const auto got = cache_.get({"key " + std::to_string(key)});
      if (!got) continue;
      ++found;
      ASSERT_EQ(*got, payload(key)) << key;
    }
  }
  EXPECT_GT(found, 0);
}

TEST_F(DiskCacheTest, FailureOfMakeIsTheCallers) {
  EXPECT_THROW(
      cache_.get_or_create({"key"}, []() -> std::string { throw std::runtime_error("no"); }),
      std::runtime_error);
  EXPECT_TRUE(files(directory_).empty());
  EXPECT_EQ(cache_.get_or_create({"key"}, [] { return "made"; }), "made");
}

TEST_F(DiskCacheTest, EvictsLeastRecentlyUsed) {
  const DiskCache cache(directory_, 10'000);
  const std::string payload(900, 'x');
  const auto now = fs::file_time_type::clock::now();
  for (int i = 0; i < 10; ++i) {
    cache.put({"key " + std::to_string(i)}, payload);
    for (const fs::path& file : files(directory_)) {
      fs::last_write_time(file, fs::last_write_time(file) - 1s);  // time goes on
    }
  }
  EXPECT_EQ(cache.usage().entries, 10);
  EXPECT_TRUE(cache.get({"key 0"}).has_value());  // used just now
  // Left behind by processes that were killed, and by one that is alive.
  write_file(directory_ / "00.entry.tmp.abc", "x");
  fs::last_write_time(directory_ / "00.entry.tmp.abc", now - 2h);
  write_file(directory_ / "01.entry.tmp.def", "x");
  cache.put({"key 10"}, payload);
  EXPECT_LE(cache.usage().bytes, 9'000);
  EXPECT_TRUE(cache.get({"key 0"}).has_value());
  EXPECT_FALSE(cache.get({"key 1"}).has_value());
  EXPECT_TRUE(cache.get({"key 9"}).has_value());
  EXPECT_TRUE(cache.get({"key 10"}).has_value());
  EXPECT_FALSE(fs::exists(directory_ / "00.entry.tmp.abc"));
  EXPECT_TRUE(fs::exists(directory_ / "01.entry.tmp.def"));
  cache.put({"too large"}, std::string(20'000, 'x'));
  EXPECT_FALSE(cache.get({"too large"}).has_value());
}

TEST(DiskCache, DefaultDirectory) {
  ::setenv("BRAID_CACHE_DIR", "/a/b", 1);
  EXPECT_EQ(DiskCache::default_directory(), "/a/b");
  ::unsetenv("BRAID_CACHE_DIR");
  ::setenv("XDG_CACHE_HOME", "/c", 1);
  EXPECT_EQ(DiskCache::default_directory(), "/c/braid");
  ::unsetenv("XDG_CACHE_HOME");
  ::setenv("HOME", "/d", 1);
  EXPECT_EQ(DiskCache::default_directory(), "/d/.cache/braid");
}

}  // namespace
}  // namespace braid
