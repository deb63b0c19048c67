#include "runtime/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "braid/error.h"
#include "braid/safetensors.h"
#include "cli/process.h"

namespace braid {
namespace {

using testing::HasSubstr;

std::string file_bytes(const std::string& header, const std::string& data) {
  std::string bytes(8, '\0');
  for (std::size_t i = 0; i < 8; ++i) bytes[i] = static_cast<char>(header.size() >> (8 * i) & 0xff);
  return bytes + header + data;
}

// The reader's error for a file, or "" if it accepts the file.
std::string error_of(const std::string& bytes) {
  const test::TemporaryDirectory directory;
  test::write_file(directory / "t.safetensors", bytes);
  try {
    read_safetensors(directory / "t.safetensors", [](std::string_view, const HostTensor&) {});
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    EXPECT_THAT(error.what(), HasSubstr("t.safetensors"));
    return error.what();
  }
  return "";
}

std::string error_of(const std::string& header, const std::string& data) {
  return error_of(file_bytes(header, data));
}

TEST(Safetensors, WritesWhatItReads) {
  const test::TemporaryDirectory directory;
  std::map<std::string, HostTensor, std::less<>> tensors;
  for (DType dtype : {DType::kF32, DType::kF16, DType::kBF16, DType::kI32, DType::kI64, DType::kI8,
                      DType::kU8, DType::kBool}) {
    const std::vector<double> values = {0, 1, 1, 0, 1, 1};
    tensors.emplace(dtype_name(dtype), HostTensor::from_doubles(dtype, {2, 3}, values));
  }
  tensors.emplace("scalar", HostTensor::from_doubles(DType::kF32, {}, {2.5}));
  tensors.emplace("empty", HostTensor::from_doubles(DType::kF32, {0, 4}, {}));
  tensors.emplace("a \"quoted\"\nname", HostTensor::from_doubles(DType::kU8, {1}, {7}));

  write_safetensors(directory / "t.safetensors", tensors);
  const SafetensorsFile file(directory / "t.safetensors");
  std::map<std::string, HostTensor, std::less<>> all;
  read_safetensors(directory / "t.safetensors",
                   [&](std::string_view name, const HostTensor& read) { all.emplace(name, read); });
  ASSERT_EQ(all.size(), tensors.size());
  for (const auto& [name, tensor] : tensors) {
    const HostTensor& read = all.at(name);
    EXPECT_EQ(read.dtype, tensor.dtype) << name;
    EXPECT_EQ(read.shape, tensor.shape) << name;
    EXPECT_EQ(read.data, tensor.data) << name;
    EXPECT_EQ(file.entries().find(name)->second.begin % dtype_size(tensor.dtype), 0U) << name;
  }
}

TEST(Safetensors, LeavesNothingBehindWhenTheFileCannotBeWritten) {
  const test::TemporaryDirectory directory;
  std::filesystem::create_directory(directory / "taken");  // a rename onto a directory fails
  const std::map<std::string, HostTensor, std::less<>> nothing;
  EXPECT_THROW(write_safetensors(directory / "taken", nothing), Error);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(directory.path()), {}), 1);
}

TEST(Safetensors, HoldsNoDescriptorOfAFile) {
  const test::TemporaryDirectory directory;
  const std::map<std::string, HostTensor, std::less<>> tensors = {
      {"x", HostTensor::from_doubles(DType::kU8, {1}, {7})}};
  write_safetensors(directory / "t.safetensors", tensors);
  const auto open_descriptors = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {});
  };
  const auto before = open_descriptors();
  const SafetensorsFile file(directory / "t.safetensors");
  EXPECT_EQ(open_descriptors(), before);
  EXPECT_EQ(file.read("x").to_doubles(), (std::vector<double>{7}));
  EXPECT_EQ(open_descriptors(), before);
  // Another file in its place has another header.
  write_safetensors(directory / "t.safetensors", tensors);
  EXPECT_THROW((void)file.read("x"), Error);
}

TEST(Safetensors, AcceptsMetadataAndPadding) {
  EXPECT_EQ(error_of(R"({"__metadata__":{"format":"pt"},)"
                     R"("a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}}   )",
                     "xy"),
            "");
  EXPECT_EQ(error_of("{}", ""), "");
}

TEST(Safetensors, RefusesWhatIsNoSafetensorsFile) {
  EXPECT_THAT(error_of(""), HasSubstr("shorter than 8 bytes"));
  EXPECT_THAT(error_of("abc"), HasSubstr("shorter than 8 bytes"));
  EXPECT_THAT(error_of(std::string(100, 'x')), HasSubstr("at most 100000000"));
  EXPECT_THAT(error_of(file_bytes(std::string(100, ' '), "").substr(0, 50)),
              HasSubstr("truncated"));
  EXPECT_THAT(error_of("", ""), HasSubstr("does not begin with '{'"));
  EXPECT_THAT(error_of("{\"a\":", ""), HasSubstr("not JSON"));
  EXPECT_THAT(error_of("{} {}", ""), HasSubstr("not JSON"));
  EXPECT_THAT(error_of(std::string("{}") + '\0' + "nonsense", ""), HasSubstr("byte 2 is 0"));
  EXPECT_THAT(error_of("{\"a\":" + std::string(100'000, '['), ""), HasSubstr("tensor 'a'"));
}

TEST(Safetensors, ErrorsSayTheBeginningOfALongName) {
  const std::string name(5000, 'x');
  for (const char* entry : {R"({"dtype":"U8","shape":[2],"data_offsets":[0,1]})", R"({"dtype":1})",
                            R"({"dtype":"X9","shape":[1],"data_offsets":[0,1]})"}) {
    const std::string error = error_of("{\"" + name + "\":" + entry + "}", "y");
    EXPECT_THAT(error, HasSubstr("tensor 'xxx"));
    EXPECT_LT(error.size(), 500U) << error;
  }
}

TEST(Safetensors, RefusesABoolThatIsNone) {
  const std::string header = R"({"a":{"dtype":"BOOL","shape":[2,2],"data_offsets":[0,4]}})";
  EXPECT_EQ(error_of(header, std::string("\0\1\1\0", 4)), "");
  EXPECT_THAT(error_of(header, std::string("\0\1\2\0", 4)),
              HasSubstr("t.safetensors: tensor 'a': element 2 is 2; expected 0 or 1"));
}

TEST(Safetensors, RefusesMalformedEntries) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {R"({"a":1})", "wrong type"},
      {R"({"a":{}})", "needs dtype, shape and data_offsets"},
      {R"({"a":{"dtype":"U8","shape":[2]}})", "needs dtype, shape and data_offsets"},
      {R"({"a":{"dtype":8,"shape":[2],"data_offsets":[0,2]}})", "'dtype' is of the wrong type"},
      {R"({"a":{"dtype":"U8","shape":2,"data_offsets":[0,2]}})", "'shape' is of the wrong type"},
      {R"({"a":{"dtype":"U8","shape":[-2],"data_offsets":[0,2]}})", "'shape' is of the wrong type"},
      {R"({"a":{"dtype":"U8","shape":[2.0],"data_offsets":[0,2]}})", "'shape' is of the wrong"},
      {R"({"a":{"dtype":"U8","shape":[[2]],"data_offsets":[0,2]}})", "a list where none"},
      {R"({"a":{"dtype":"U8","shape":[{}],"data_offsets":[0,2]}})", "an object where none"},
      {R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0]}})", "needs two numbers"},
      {R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2],"x":1}})", "unknown key 'x'"},
      {R"({"a":{"dtype":"U8","dtype":"U8","shape":[2],"data_offsets":[0,2]}})", "stands twice"},
      {R"({"a":{"dtype":"U9","shape":[2],"data_offsets":[0,2]}})", "unknown dtype 'U9'"},
      {R"({"a":{"dtype":"F64","shape":[],"data_offsets":[0,2]}})", "needs 8 bytes"},
      {R"({"a":{"dtype":"I16","shape":[1],"data_offsets":[0,2]}})", "braid has no dtype I16"},
      {R"({"a":{"dtype":"U8","shape":[3],"data_offsets":[0,2]}})", "needs 3 bytes"},
      {R"({"a":{"dtype":"U8","shape":[3],"data_offsets":[0,3]}})", "truncated?"},
      {R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[2,1]}})", "outside"},
      {R"({"a":{"dtype":"U8","shape":[9223372036854775807,4],"data_offsets":[0,2]}})", "too large"},
      {R"({"a":{"dtype":"U8","shape":[18446744073709551615],"data_offsets":[0,2]}})", "too large"},
      {R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})", "no overlap, no gap"},
      {R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})", "belong to no tensor"},
      {R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},)"
       R"("b":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})",
       "no overlap, no gap"},
      {R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},)"
       R"("a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}})",
       "named twice"},
      {R"({"__metadata__":{"a":1}})", "wrong type"},
      {R"({"__metadata__":[]})", "a list where none"},
  };
  for (const auto& [header, expected] : cases) {
    EXPECT_THAT(error_of(header, "xy"), HasSubstr(expected)) << header;
  }
}

TEST(Safetensors, SurvivesEveryTruncationAndEveryFlippedByteOfTheHeader) {
  const std::string good = file_bytes(
      R"({"a":{"dtype":"BF16","shape":[2,3],"data_offsets":[0,12]}})", std::string(12, 'x'));
  ASSERT_EQ(error_of(good), "");
  for (std::size_t size = 0; size < good.size(); ++size) {
    EXPECT_NE(error_of(good.substr(0, size)), "") << size;
  }
  for (std::size_t i = 0; i < good.size() - 12; ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string flipped = good;
      flipped[i] = static_cast<char>(flipped[i] ^ (1 << bit));
      (void)error_of(flipped);  // an error or another valid file, never a crash
    }
  }
}

}  // namespace
}  // namespace braid
