#include "codegen/target.h"

#include <gtest/gtest.h>

#include "braid/error.h"
#include "codegen/device_model.h"

namespace braid {
namespace {

TEST(Target, ReadsWhatItPrints) {
  for (const char* text : {"sm_80", "sm_86", "sm_90a", "sm_100a", "sm_120"}) {
    EXPECT_EQ(Target::parse(text).str(), text);
  }
}

TEST(Target, ADeviceIsCompiledForItsArchitecture) {
  for (const DeviceModel& device : all_devices()) {
    const Target target = Target::parse(device.name);
    EXPECT_EQ(target.str(), device.name);
    EXPECT_EQ(&device_model(target), &device);
    EXPECT_EQ(target.sm, device.sm);
  }
  EXPECT_EQ(Target::parse("A100").arch(), "sm_80");
  EXPECT_EQ(Target::parse("H200").arch(), "sm_90a");
  EXPECT_EQ(device_model(Target::parse("sm_90a")).name, "H100");
}

TEST(Target, AGpuIsKnownByItsName) {
  const auto model = [](std::string_view gpu, int sm) {
    const DeviceModel* const device = device_model_of_gpu(gpu, sm);
    return device == nullptr ? std::string_view("none") : device->name;
  };
  EXPECT_EQ(model("NVIDIA H200", 90), "H200");
  EXPECT_EQ(model("NVIDIA H100 80GB HBM3", 90), "H100");
  EXPECT_EQ(model("NVIDIA A100-SXM4-80GB", 80), "A100");
  EXPECT_EQ(model("NVIDIA A100-SXM4-40GB", 80), "A100-40");
  EXPECT_EQ(model("NVIDIA RTX A6000", 86), "RTX A6000");
  EXPECT_EQ(model("NVIDIA L40S", 89), "L40S");
  EXPECT_EQ(model("NVIDIA GeForce RTX 4090", 89), "RTX 4090");
  EXPECT_EQ(model("NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition", 120),
            "RTX PRO 6000 Max-Q");
  EXPECT_EQ(model("NVIDIA H200", 100), "none");
  EXPECT_EQ(model("NVIDIA L40", 89), "none");
  EXPECT_EQ(model("", 90), "none");
}

// CUDA C++ Programming Guide, technical specifications per compute capability.
TEST(Target, SharedMemoryOfABlock) {
  for (const auto& [text, kib] : {std::pair{"sm_80", 163},
                                  {"sm_86", 99},
                                  {"sm_89", 99},
                                  {"sm_90a", 227},
                                  {"sm_100a", 227},
                                  {"sm_120", 99},
                                  {"L40S", 99}}) {
    EXPECT_EQ(Target::parse(text).max_shared_bytes(), kib << 10) << text;
  }
}

TEST(Target, RefusesOthers) {
  for (const char* text :
       {"", "sm_", "sm_a", "sm_75", "80", "sm_80b", "sm_9999", "compute_80", "H300", "h100"}) {
    EXPECT_THROW(static_cast<void>(Target::parse(text)), Error) << text;
  }
}

}  // namespace
}  // namespace braid
