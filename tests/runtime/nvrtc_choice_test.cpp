// Which NVRTC is used beside which driver, with stand-ins for both.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>

#include "braid/error.h"
#include "braid/executable.h"
#include "runtime/compile/nvrtc_api.h"
#include "runtime/doctor.h"
#include "runtime/dynamic_library.h"
#include "runtime/fake_libcuda.h"
#include "runtime/temporary_directory.h"

namespace braid {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;

class NvrtcChoice : public ::testing::Test {
 protected:
  NvrtcChoice() {
    ::setenv("BRAID_LIBCUDA", BRAID_FAKE_LIBCUDA, 1);
    library_ = DynamicLibrary({BRAID_FAKE_LIBCUDA});
    std::string missing;
    bind_symbol(library_, "fake_cuda", control_, missing);
    if (control_ == nullptr) throw std::runtime_error(library_.failure());
    *control_() = {};
  }
  ~NvrtcChoice() override {
    *control_() = {};
    for (const auto& [name, value] : before_) {
      value.empty() ? ::unsetenv(name) : ::setenv(name, value.c_str(), 1);
    }
  }

  /// Makes this one, and those installed so before, the first that are found.
  std::string install(const std::string& major) {
    std::filesystem::create_directories(home_.path() / "lib64");
    ::setenv("BRAID_CUDA_HOME", home_.path().c_str(), 1);
    ::unsetenv("BRAID_NVRTC");
    const auto file = home_.path() / "lib64" / ("libnvrtc.so." + major);
    std::filesystem::copy_file(BRAID_FAKE_NVRTC, file);
    return file.string();
  }
  static std::string choose() { return NvrtcApi::load().version; }

  const std::map<const char*, std::string> before_{
      {"BRAID_CUDA_HOME", environment("BRAID_CUDA_HOME")},
      {"BRAID_NVRTC", environment("BRAID_NVRTC")}};
  TemporaryDirectory home_;
  DynamicLibrary library_;
  decltype(&::fake_cuda) control_ = nullptr;
};

TEST_F(NvrtcChoice, IsNeverNewerThanTheDriverWhereThereIsAnother) {
  install("13");
  install("12");
  EXPECT_EQ(choose(), "13.4");
  control_()->driver_version = 13020;
  EXPECT_EQ(choose(), "13.4");
  // Within a major version old drivers load what new compilers make.
  control_()->driver_version = 12020;
  EXPECT_EQ(choose(), "12.4");
  ::setenv("BRAID_LIBCUDA", "/nonexistent/libcuda.so.1", 1);
  EXPECT_EQ(choose(), "13.4");
}

TEST_F(NvrtcChoice, AFileThatOnlyBearsTheNameIsPassedOver) {
  const std::string foreign = install("13");
  install("12");
  std::filesystem::copy_file(BRAID_FAKE_LIBCUDA, foreign,
                             std::filesystem::copy_options::overwrite_existing);
  EXPECT_EQ(choose(), "12.4");
  ::setenv("BRAID_NVRTC", foreign.c_str(), 1);
  try {
    (void)choose();
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kEnvironment);
    EXPECT_THAT(error.what(), AllOf(HasSubstr("NVRTC: not found; install"),
                                    EndsWith(foreign + " lacks nvrtcVersion, " +
                                             "nvrtcCreateProgram, nvrtcDestroyProgram, "
                                             "nvrtcCompileProgram, nvrtcGetPTXSize, nvrtcGetPTX, "
                                             "nvrtcGetCUBINSize, nvrtcGetCUBIN, "
                                             "nvrtcGetProgramLogSize, nvrtcGetProgramLog, "
                                             "nvrtcGetErrorString")));
  }
}

TEST_F(NvrtcChoice, OneThatIsTooNewServesTheCpuDeviceOnly) {
  const std::string file = install("13");
  ::setenv("BRAID_NVRTC", file.c_str(), 1);
  control_()->driver_version = 12040;
  const NvrtcApi api = NvrtcApi::load();
  EXPECT_EQ(api.version, "13.4");
  EXPECT_THAT(api.driver_problem(),
              AllOf(HasSubstr("version 13.4 (" + file), HasSubstr("CUDA 12.4"),
                    HasSubstr("nvidia-cuda-nvrtc-cu12"), EndsWith("or a driver of CUDA 13")));
  control_()->driver_version = 11080;  // nothing as old as that is looked for
  EXPECT_THAT(api.driver_problem(), EndsWith("cannot load; install a driver of CUDA 13"));
  control_()->driver_version = 13000;
  EXPECT_EQ(api.driver_problem(), "");
  ::setenv("BRAID_LIBCUDA", "/nonexistent/libcuda.so.1", 1);
  EXPECT_EQ(api.driver_problem(), "");
}

TEST_F(NvrtcChoice, AWorldOfGpusIsRefusedBeforeAnythingIsCompiled) {
  // The NVRTC of this machine, whatever its version, beside a driver older than it.
  const NvrtcApi& api = NvrtcApi::get();
  control_()->driver_version = (api.major - 1) * 1000 + 20;
  WorldOptions options;
  options.device = DeviceKind::kCuda;
  options.use_cache = false;
  try {
    (void)World::open(options);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kEnvironment);
    EXPECT_THAT(error.what(), AllOf(HasSubstr("NVRTC: version " + api.version),
                                    HasSubstr("which runs CUDA"), HasSubstr("install")));
  }
  const auto findings = diagnose(home_.path());
  ASSERT_FALSE(findings.empty());
  EXPECT_TRUE(findings[0].found);
  EXPECT_THAT(findings[0].how_to_get, HasSubstr("which runs CUDA"));
  control_()->driver_version = 99000;
  EXPECT_NO_THROW((void)World::open(options));
  EXPECT_EQ(diagnose(home_.path())[0].how_to_get, "");
}

}  // namespace
}  // namespace braid
