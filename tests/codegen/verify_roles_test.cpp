// Each rule of roles, rings and asynchronous products, broken in a program that keeps all of them.

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "braid/error.h"
#include "codegen/tile/text.h"
#include "codegen/tile/verify.h"

namespace braid::tile {
namespace {

std::string probe(const std::string& name) {
  std::ifstream in(std::string(BRAID_SOURCE_DIR) + "/tests/codegen/probes/" + name + ".tile");
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

/// What verify says of the program with `from` replaced once.
std::string verdict(const std::string& from, const std::string& to,
                    const std::string& name = "warp_specialised_gemm") {
  std::string text = probe(name);
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  text.replace(at, from.size(), to);
  try {
    verify(parse_text(text));
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(VerifyRoles, TheProgramAsItStands) { EXPECT_EQ(verdict("kernel k", "kernel k"), ""); }

TEST(VerifyRoles, NameTheRuleThatIsBroken) {
  struct Case {
    std::string from, to, says;
  };
  const Case cases[] = {
      {"acquire 49152", "acquire 32768", "found 32768 bytes, and copies of 49152"},
      {"role 232 warps 8", "role 230 warps 8", "24 to 240, a multiple of 8"},
      {"role 40 warps 4", "role 40 warps 2", "found 10 warps of all roles"},
      {"role 232 warps 8", "role 232 warps 4", "the 8 that compute"},
      {"role 40 warps 4", "role 240 warps 4", "registers of all roles, expected at most 64512"},
      {"settled %sums", "round.bf16 %sums", "a product that is under way"},
      {"%start = undefined", "%start = constant 0", ""},
      {"push_tile.bf16 %sc, %c, %m0, %n0, %total", "push_tile.bf16 %sc, %c, %m0, %n0, %sums",
       "a product that is under way"},
      {"      push_tile", "      acquire 0, %ring, %end\n      push_tile", "another role"},
      {"        copy_tile.bf16 %ring, %at2, %sb", "        copy_tile.bf16 %ring, %next2, %sb",
       "defined before it"},
      {"      %m2 =", "      %t = constant 1 : f32[8, 8]\n      %m2 =", "a role of one thread"},
      {"  role 40", "  await %ring, %none\n  role 40", "expected roles alone there"},
      {"  role 232", "  await %ring, %none\n  role 232", "outside of a role"},
      {"shared[128, 64] {stages 4, row_step 128}", "shared[128, 64] {stages 4, row_step 1}",
       "of row_step 128"},
      {"shared[256, 64] {stages 4", "shared[256, 64] {stages 3", "slots of the tile"},
      {"%sc, %c, %m0", "%sc, %block, %m0", "a parameter of bytes"},
      {"ring {stages 4}", "i64 {stages 4}", "expected a ring"},
  };
  for (const Case& c : cases) {
    const std::string said = verdict(c.from, c.to);
    EXPECT_NE(said.find(c.says), std::string::npos) << c.to << "\n  says: " << said;
    EXPECT_EQ(said.empty(), c.says.empty()) << c.to;
  }
}

TEST(VerifyRoles, NameTheRuleOfSumsThatIsBroken) {
  struct Case {
    std::string from, to, says;
  };
  const Case cases[] = {
      {"kernel k", "kernel k", ""},
      {"sums[128, 256] {stages 1}", "sums[64, 256] {stages 1}", "multiples of 128 rows"},
      {"sums[128, 256] {stages 1}", "sums[128, 256] {stages 4}", "32 to 512 columns in all"},
      {"  %sc = alloc", "  %more = alloc_sums : sums[128, 512] {stages 1}\n  %sc = alloc",
       "found 768 columns of sums in all"},
      {"load_sums 128, %sums, %slot", "load_sums 160, %sums, %slot", "from column 160"},
      {"load_sums 0, %sums", "load_sums 0, %sc", "slots of sums"},
      {"dot_to_sums.bf16 %sa, %sb, %sums, %from, %to, %adds {trans_b}",
       "dot_to_sums.bf16 %sa, %sb, %sums, %from, %to, %adds", "[M, K] x [K, N]"},
      {"dot_to_sums.bf16 %sa", "dot_to_sums.bf16 %sb", "[M, K] x [K, N]"},
      {"role 56 warps 3", "role 56 warps 4", "13 warps of all roles"},
      {"role 56 warps 3", "role 48 warps 3", "56, as others of its four warps have"},
      {"      release %of_sums, %n", "      publish %of_sums, %n", "another role"},
      {"        acquire 49152, %ring, %at2",
       "        release %ring, %at2\n        acquire 49152, "
       "%ring, %at2",
       "two roles that read"},
      {"      acquire 0, %of_sums, %s4", "      acquire 0, %ring, %s4", "two roles that fill"},
  };
  for (const Case& c : cases) {
    const std::string said = verdict(c.from, c.to, "products_in_sums");
    EXPECT_NE(said.find(c.says), std::string::npos) << c.to << "\n  says: " << said;
    EXPECT_EQ(said.empty(), c.says.empty()) << c.to;
  }
}

}  // namespace
}  // namespace braid::tile
