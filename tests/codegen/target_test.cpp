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
