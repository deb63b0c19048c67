// Registers of 128 bits against the statements of the PTX manual.

#include <gtest/gtest.h>

#include "cpu/semantics.h"

namespace braid::cpu_test {
namespace {

using namespace semantics;

/// Registers of 128 bits; the result is the exclusive or of the halves that come back.
TEST(SemanticsPairs, MovedLoadedStoredAndExchanged) {
  const auto text = [](const std::string& body) {
    return "{ .reg .b128 %x, %y, %z; mov.b128 %x, {%A, %B}; " + body +
           " mov.b128 {%T0, %T1}, %z; mul.lo.u64 %T1, %T1, 3; xor.b64 %D, %T0, %T1; }";
  };
  const auto joined = [](u64 low, u64 high) { return low ^ 3 * high; };
  std::vector<Row> rows;
  rows.push_back(row(text("mov.b128 %z, %x;"), [=](u64 a, u64 b) { return joined(a, b); }));
  for (const std::string order : {"", ".volatile", ".relaxed.cta"}) {
    rows.push_back(
        row(text("st" + order + ".shared.b128 [%m], %x; ld" + order + ".shared.b128 %z, [%m];"),
            [=](u64 a, u64 b) { return joined(a, b); }));
  }
  rows.push_back(row(text("st.local.b128 [L+16], %x; ld.local.v2.b64 {%T2, %T3}, [L+16]; "
                          "mov.b128 %z, {%T3, %T2};"),
                     [=](u64 a, u64 b) { return joined(b, a); }));
  // The old value, then the new one.
  const std::string before = "mov.b128 %y, {%B, %C}; st.shared.b128 [%m], %y; ";
  rows.push_back(row(text(before + "atom.shared.exch.b128 %z, [%m], %x;"),
                     [=](u64, u64 b, u64 c) { return joined(b, c); }));
  rows.push_back(row(text(before + "atom.shared.exch.b128 %z, [%m], %x; ld.shared.b128 %z, [%m];"),
                     [=](u64 a, u64 b, u64) { return joined(a, b); }));
  for (const bool other : {false, true}) {
    const std::string expected =
        other ? "xor.b64 %T2, %C, 1; mov.b128 %z, {%B, %T2}; " : "mov.b128 %z, {%B, %C}; ";
    const std::string swap = "atom.relaxed.cta.shared.cas.b128 %z, [%m], %z, %x;";
    rows.push_back(
        row(text(before + expected + swap), [=](u64, u64 b, u64 c) { return joined(b, c); }));
    rows.push_back(row(text(before + expected + swap + " ld.shared.b128 %z, [%m];"),
                       [=](u64 a, u64 b, u64 c) { return other ? joined(b, c) : joined(a, b); }));
  }
  check(rows, make_inputs(integer_edges(), 71));
}

}  // namespace
}  // namespace braid::cpu_test
