#include <gmock/gmock.h>

#include <regex>

#include "braid/error.h"
#include "lowering/lowering_testing.h"
#include "lowering/random_tp_graph.h"

namespace braid::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Program a_program() {
  PassContext context = sm80();
  return lower(
      graph_of(input("x", R"("T", 6)") + "," +
                   input("w", "6, 6", R"(, "kind": "parameter", "per_rank": true)"),
               node("p", "mm", R"("x", "w")") + "," + all_reduce("c", "p") + "," +
                   node("s", "wait_tensor", R"("c")") + "," + node("y", "softmax", R"("s")"),
               R"("y")", 2),
      context);
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

std::string problem(const std::string& text) {
  try {
    (void)parse_program(text, "p.json");
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument) << error.what();
    EXPECT_THAT(error.what(), Not(HasSubstr("\n")));
    return error.what();
  }
  return "";
}

TEST(ReadProgram, WhatIsWrittenIsReadBack) {
  const std::string text = to_json(a_program());
  EXPECT_TRUE(is_program(text));
  EXPECT_FALSE(is_program(R"({"braid": 1})"));
  EXPECT_EQ(to_json(parse_program(text)), text);
  for (std::uint64_t seed = 300; seed < 310; ++seed) {
    SCOPED_TRACE(seed);
    PassContext context = sm80();
    const std::string written = to_json(lower(random_graph(seed, 40, 1 + seed % 3), context));
    EXPECT_EQ(to_json(parse_program(written)), written);
  }
}

TEST(ReadProgram, DamageIsToldWithItsPlace) {
  const std::string good = to_json(a_program());
  const std::string hash = R"( "hash": ")";
  const auto broken = [&](const std::string& from, const std::string& to) {
    return problem(replaced(good, from, to));
  };
  EXPECT_THAT(broken(hash, R"( "hash": "0)"), HasSubstr("p.json:/hash: found the string"));
  EXPECT_THAT(broken(R"("name": "test")", R"("name": "tset")"), HasSubstr("p.json:/hash: found"));
  EXPECT_THAT(broken(R"("braid_program": 1)", R"("braid_program": 2)"),
              HasSubstr("p.json:/braid_program: found 2; expected version 1"));
  EXPECT_THAT(broken(R"("threads": )", R"("threads": 1)"),
              HasSubstr("p.json:/kernels/0/threads: found 1"));
  EXPECT_THAT(broken(R"("arena": 0)", R"("arena": 77)"), HasSubstr("lies in no arena"));
  EXPECT_THAT(broken(R"("offset": 0)", R"("offset": -256)"), HasSubstr("leaves arena"));
  EXPECT_THAT(broken(R"("bytes": )", R"("bytes": 9)"), HasSubstr("p.json:"));
  EXPECT_THAT(broken(R"("kernel": 0)", R"("kernel": 9)"), HasSubstr("launches no kernel"));
  EXPECT_THAT(broken(R"("stream": 0)", R"("stream": 9999)"), HasSubstr("is on stream 9999"));
  EXPECT_THAT(broken(R"("world": 2)", R"("world": 3)"),
              HasSubstr("p.json:/world: found 3; expected 2, as the groups say"));
  EXPECT_THAT(broken(R"("target": "sm_80")", R"("target": "sm_x")"), HasSubstr("p.json:/target: "));
  EXPECT_THAT(broken(R"("num_warps": )", R"("num_warps": 9)"), HasSubstr("p.json:/kernels/0"));
  EXPECT_THAT(broken(R"("kind": "launch")", R"("kind": "lunch")"),
              HasSubstr(R"(p.json:/steps/0/kind: found the string "lunch"; expected one of)"));
  EXPECT_THAT(broken(R"("shape": ["T", 6])", R"("shape": ["U", 6])"),
              HasSubstr("/buffers/0/shape"));
  EXPECT_THAT(problem(good.substr(0, good.size() / 2)), HasSubstr("p.json: not JSON"));
}

TEST(ReadProgram, LaunchAttributesAreWrittenWhereThereAreAny) {
  Program program = a_program();
  const std::string without = to_json(program, /*with_hash=*/false);
  EXPECT_THAT(without, Not(HasSubstr("attributes")));
  program.kernels[0].needs.attributes = {.cluster = {2}, .programmatic = true};
  const std::string with = to_json(program, /*with_hash=*/false);
  const std::string attributes = R"("attributes": {"cluster": [2, 1, 1], "programmatic": true}, )";
  EXPECT_EQ(replaced(with, attributes, ""), without);
  EXPECT_NE(hash_of(program), hash_of(a_program()));
  // They are what the kernel's template says, not what the file does.
  EXPECT_THAT(problem(with), HasSubstr("p.json:/kernels/0/attributes: found an object"));
}

TEST(ReadProgram, WhatAKernelClobbersIsItsOwnToSay) {
  Program program = a_program();
  program.kernels[0].needs.clobbered = {{.output = false, .index = 0}};
  const std::string text = to_json(program, /*with_hash=*/false);
  EXPECT_THAT(text, HasSubstr(R"("clobbered": [{"input": 0}])"));
  EXPECT_THAT(problem(text), HasSubstr("p.json:/kernels/0/clobbered: found a list; expected none"));
}

TEST(ReadProgram, BytesByValueAreWrittenWithTheirSize) {
  Program program = a_program();
  KernelParam& param = program.kernels[0].needs.params[0];
  EXPECT_THAT(to_json(program), Not(HasSubstr(R"("alignment")")));
  param = {.kind = KernelParam::Kind::kBytes, .size = 128, .alignment = 64};
  EXPECT_THAT(to_json(program), HasSubstr(R"({"kind": "bytes", "index": 0, "expr": "0", "group": )"
                                          R"("", "size": 128, "alignment": 64})"));
}

/// Whatever number is written over, the answer is an error; without the hash it may also be another
/// plan that is sound.
TEST(ReadProgram, NoNumberIsBelieved) {
  const Program program = a_program();
  for (const bool with_hash : {true, false}) {
    const std::string text = to_json(program, with_hash);
    const std::regex number(R"([ \[]-?\d+)");
    for (auto it = std::sregex_iterator(text.begin(), text.end(), number);
         it != std::sregex_iterator(); ++it) {
      const auto at = static_cast<std::size_t>(it->position()) + 1;
      const std::string old = it->str().substr(1);
      for (const char* other : {"-1", "3", "257", "1099511627776", "9223372036854775807"}) {
        if (old == other) continue;
        std::string damaged = text;
        damaged.replace(at, old.size(), other);
        SCOPED_TRACE(damaged.substr(at > 40 ? at - 40 : 0, 80));
        const std::string told = problem(damaged);
        if (with_hash) {
          EXPECT_NE(told, "");
        }
      }
    }
  }
}

}  // namespace
}  // namespace braid::testing
