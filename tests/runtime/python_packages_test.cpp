#include "runtime/compile/python_packages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include "runtime/dynamic_library.h"
#include "runtime/temporary_directory.h"

namespace braid {
namespace {

using ::testing::Contains;
using ::testing::Not;
namespace fs = std::filesystem;

TEST(PythonPackages, OfTheActiveEnvironmentAndTheUser) {
  const TemporaryDirectory temporary;
  const auto make = [&](const char* folder) {
    fs::create_directories(temporary.path() / folder / "nvidia");
    return temporary.path() / folder / "nvidia";
  };
  const fs::path active = make("venv/lib/python3.11/site-packages");
  const fs::path user = make("home/.local/lib/python3.12/site-packages");
  make("venv/lib/ruby/site-packages");
  fs::create_directories(temporary.path() / "venv/lib/python3.9/site-packages");  // has no wheels
  const std::string before = environment("VIRTUAL_ENV");
  ::setenv("VIRTUAL_ENV", (temporary.path() / "venv").c_str(), 1);
  const std::string home = environment("HOME");
  ::setenv("HOME", (temporary.path() / "home").c_str(), 1);
  const std::vector<fs::path> found = cuda_wheels();
  ::setenv("HOME", home.c_str(), 1);
  before.empty() ? ::unsetenv("VIRTUAL_ENV") : ::setenv("VIRTUAL_ENV", before.c_str(), 1);
  ASSERT_FALSE(found.empty());
  EXPECT_EQ(found.front(), active);
  EXPECT_THAT(found, Contains(user));
  EXPECT_THAT(cuda_wheels(), Not(Contains(active)));
}

TEST(PythonPackages, NothingIsLoadedFromBesideAnInstalledLibrary) {
  const TemporaryDirectory temporary;
  const fs::path libraries = temporary.path() / "stage" / "lib";
  fs::create_directories(libraries);
  fs::create_directories(temporary.path() / "venv/lib/python3.11/site-packages/nvidia");
  EXPECT_EQ(build_environment(libraries), "");
  EXPECT_EQ(build_environment(""), "");
  write_file(temporary.path() / "stage" / "CMakeCache.txt", "");
  EXPECT_EQ(build_environment(libraries), temporary.path() / "venv");
}

TEST(PythonPackages, APackageKnowsItsEnvironment) {
  const fs::path packages = "/venv/lib/python3.11/site-packages";
  EXPECT_EQ(packages_around(packages / "braid/lib"), packages);
  EXPECT_EQ(packages_around("/usr/lib/braid/lib"), "");
  EXPECT_EQ(packages_around(packages / "other/lib"), "");
  EXPECT_EQ(packages_around(""), "");
}

TEST(PythonPackages, TheCodeKnowsItsFolder) {
  EXPECT_EQ(library_folder(), fs::canonical(fs::path(BRAID_BINARY_DIR) / "bin"));
}

}  // namespace
}  // namespace braid
