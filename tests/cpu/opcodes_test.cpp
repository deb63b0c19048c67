// The table of instructions: what its texts say, and that each entry can be meant.

#include "runtime/cpu/ptx/opcodes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "braid/error.h"

namespace braid::cpu {
namespace {

using ptx::Choices;
using ptx::Instruction;
using ptx::Op;
using ptx::Opcode;

Instruction spelled(const std::string& text) {
  Instruction result;
  std::size_t at = text.find('.');
  result.name = text.substr(0, at);
  while (at < text.size()) {
    const std::size_t end = std::min(text.find('.', at + 1), text.size());
    result.modifiers.push_back(text.substr(at + 1, end - at - 1));
    at = end;
  }
  result.entry = find_opcode(result);
  return result;
}

/// One spelling with nothing that may be left out.
std::string shortest(const Opcode& entry, const Opcode::Name& name) {
  std::string text(name.opcode);
  for (const std::string_view head : name.head) text += "." + std::string(head);
  for (const Opcode::Group& group : entry.groups) {
    if (group.need != Opcode::Group::Need::kOne) continue;
    text += ".";
    switch (group.types) {
      case Opcode::Group::Types::kNone:
        for (const char c : group.names.front()) text += c == '#' ? '8' : c;
        break;
      case Opcode::Group::Types::kFloat:
        text += "f32";
        break;
      case Opcode::Group::Types::kBits:
        text += "b32";
        break;
      default:
        text += "s32";
    }
  }
  return text;
}

/// An entry that one before it hides, or whose text does not say what was meant, is not found.
TEST(Opcodes, EachEntryIsFoundByItsNames) {
  for (const Opcode& entry : ptx::opcodes()) {
    ASSERT_FALSE(entry.names.empty());
    for (const Opcode::Name& name : entry.names) {
      const std::string text = shortest(entry, name);
      EXPECT_EQ(spelled(text).entry, &entry) << text;
    }
    EXPECT_LE(entry.groups.size(), Choices::kMaxGroups) << entry.names.front().opcode;
    bool optional = false;
    for (const Opcode::OperandUse& operand : entry.operands) {
      EXPECT_FALSE(optional && !operand.optional) << entry.names.front().opcode;
      optional = operand.optional;
    }
  }
}

TEST(Opcodes, NamesTypesAndOrder) {
  EXPECT_TRUE(spelled("add.cc.u32").is(Op::kAdd));
  EXPECT_TRUE(spelled("add.rn.f32").is(Op::kFloatAdd));
  EXPECT_EQ(spelled("add.rn.u32").entry, nullptr);
  EXPECT_TRUE(spelled("mul.wide.u16").is(Op::kMul));
  EXPECT_EQ(Choices(spelled("mul.wide.u16")).name(), 2);
  EXPECT_EQ(spelled("mul.u16.wide").entry, nullptr) << "it belongs to the name";
  EXPECT_TRUE(spelled("cp.async.cg.shared::cta.L2::128B.L2::256B.global").is(Op::kCpAsync));
  EXPECT_EQ(spelled("cp.async.cg.global.shared::cta").entry, nullptr);
  EXPECT_TRUE(spelled("ld.acquire.gpu.global.b32").is(Op::kStrongLd));
  EXPECT_EQ(spelled("ld.gpu.global.b32").entry, nullptr) << "a scope is for strong ones";
  const Choices cvt(spelled("cvt.f32.rzi.u8"));
  EXPECT_EQ(cvt.type(0).bits, 32);
  EXPECT_EQ(cvt.type(1).bits, 8);
  EXPECT_EQ(cvt.of("rni"), 1);
  const Choices mma(spelled("mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e5m2.f32"));
  EXPECT_EQ(mma.of("e4m3", 0), 0);
  EXPECT_EQ(mma.of("e4m3", 1), 1);
  EXPECT_EQ(mma.of("e4m3", 2), -1);
  EXPECT_TRUE(spelled("wgmma.mma_async.sync.aligned.m64n256k8.f32.tf32.tf32").is(Op::kWgmmaTf32));
  EXPECT_EQ(spelled("wgmma.mma_async.sync.aligned.m64nk8.f32.tf32.tf32").entry, nullptr);
  EXPECT_EQ(spelled("wgmma.mma_async.sync.aligned.m64n2xk8.f32.tf32.tf32").entry, nullptr);
}

std::string joined(const std::vector<std::string_view>& parts, const char* between) {
  std::string text;
  for (const std::string_view part : parts) {
    text += (text.empty() ? "" : between) + std::string(part);
  }
  return text;
}

/// ".rn/.rz", in brackets where it may be left out.
std::string group_text(const Opcode::Group& group) {
  using Types = Opcode::Group::Types;
  std::string text = group.types == Types::kNumber  ? "NUMBER"
                     : group.types == Types::kBits  ? "BITS"
                     : group.types == Types::kInt   ? "INT"
                     : group.types == Types::kFloat ? "FLOAT"
                     : group.types == Types::kAny   ? "TYPE"
                                                    : joined(group.names, "/.");
  text = "." + text;
  if (group.need == Opcode::Group::Need::kOne) return text;
  return "[" + text + (group.need == Opcode::Group::Need::kMany ? "..." : "") + "]";
}

/// docs/ptx.md.
std::string page() {
  std::string text = R"(# PTX on the `cpu` device

What the `cpu` device knows of PTX ISA 9.0: its table of instructions, written down by a test. One kernel
that needs something else is refused, with the line; the others of its module run.

Modifiers stand in any order, but for those of one kind: the types of a `cvt`, of a product, or the two spaces
of a copy. `[.x]` may be left out, of `.x/.y` there is one, and of `[.x/.y...]` any number. `.INT`, `.FLOAT`
and `.TYPE` are fundamental types, `.NUMBER` the integers of 16 bits or more but for `.b16` to `.b64`, which are
`.BITS`; # is any number that the manual has there; combinations that mean nothing are refused where the kernel
is translated.

| Instruction | Modifiers |
|---|---|
)";
  for (const Opcode& entry : ptx::opcodes()) {
    std::string names;
    for (const Opcode::Name& name : entry.names) {
      names += (names.empty() ? "`" : ", `") + std::string(name.opcode);
      for (const std::string_view head : name.head) names += "." + std::string(head);
      names += "`";
    }
    std::string modifiers = entry.any_modifiers ? "any" : "";
    for (const Opcode::Group& group : entry.groups) {
      modifiers += (modifiers.empty() ? "`" : " ") + group_text(group);
    }
    if (!entry.groups.empty()) modifiers += "`";
    text += "| " + names + " | " + modifiers + " |\n";
  }
  text += R"(
Tensor copies are those of tiles, of four rows and of `im2col` columns: not there is `im2col::w`. Their maps are
this device's own 128 bytes. Not there are `multimem` of 8-bit floats, textures and surfaces,
`istypep`, `alloca`, and functions that CUDA's run time has on the device (`vprintf`, `malloc`, `free`): a kernel
that names one is refused, whether it comes there or not. Registers of 128 bits are moved, loaded, stored and exchanged. Hints (`prefetch`,
policies, `griddepcontrol`, `cta_group`) do nothing, and fences between proxies are for the
sanitizer. A warp that asks for registers (`setmaxnreg.inc`) waits until others of its block have given as many back:
each thread begins with what `.maxnreg`, or its part of 65,536, leaves it.

`clusterlaunchcontrol.try_cancel` always answers that nothing was canceled, which a GPU may do, too: each block
runs, and one that would go on with the work of another finds none. `multimem` copies in bulk are of PTX ISA 9.1.
A third operand of a video instruction without `.add` and the like, which ptxas takes, is not looked at, and a
`mapa.u32` or `getctarank.u32` without a space is one of shared memory, whose addresses are the low halves of generic
ones.

Addresses of parameters and of local memory may be kept in 32 bits, and extended again before `cvta`. The low 24 bits
of a generic address of shared memory are that address there: the window begins at a multiple of 16 MiB.

Of `tcgen05` there are no sparse products (`.sp`), `.ws`, `.ashift`, `.shift`, `ld.red`, a copy that widens elements of 4
or 6 bits, 96 of k, the swizzle with atoms of 32 bytes, and A of 4 or 6 bits beside other types in tensor memory. A block
has a tensor memory of its own; an `alloc` that would wait ends the kernel, and so does a block that keeps what it
allocated. Columns that nobody wrote have all bits set. Products and moves are done when they are issued; that they must
be waited for is for the sanitizer. Their layouts are drawn in the manual alone, and no GPU has confirmed them here.

A call by address is a choice of the functions it may be: its `.calltargets`, or those of its `.callprototype`
whose address is taken in the module. Calls are put in place of themselves, so none may be recursive.

Products with scales (`block_scale`, of `tcgen05`, too) are summed in f64 and rounded once, as f32 holds neither the
scales' products nor those of elements with them. Which bits of a sparse A's metadata stand for which elements the
manual only draws; here they are where CUTLASS puts them.

`cvt.rs` adds its random bits to what is cut off, beginning with the highest bit of both; the four-element forms
use 16 bits for two elements, each of which takes all of them. The manual draws these layouts without saying so
in words, and no GPU has confirmed them here.

## Special registers

)";
  std::string line;
  for (const std::string& name : ptx::special_names()) {
    const std::string next = (line.empty() ? "`" : ", `") + name + "`";
    if (line.size() + next.size() > 105) {
      text += line + ",\n";
      line = next.substr(2);
    } else {
      line += next;
    }
  }
  return text + line + R"(.

`%tid`, `%ctaid` and their like have parts `.x` to `.w`, and are vectors without one. Performance counters
read as zero, `%envreg1` and `%envreg2` as the address of a word of the grid that is zero when it starts. Kernels that
name the reserved shared memory have 1024 bytes of it.
)";
}

TEST(Opcodes, AreThoseOfThePage) {
  const std::string path = std::string(BRAID_SOURCE_DIR) + "/docs/ptx.md";
  if (std::getenv("BRAID_UPDATE_DOCS") != nullptr) std::ofstream(path) << page();
  std::stringstream written;
  written << std::ifstream(path).rdbuf();
  EXPECT_EQ(written.str(), page()) << "BRAID_UPDATE_DOCS=1 writes docs/ptx.md anew";
}

TEST(Opcodes, SaysWhatIsWrong) {
  const auto error_of = [](const std::string& text, std::size_t operands) -> std::string {
    Instruction instruction = spelled(text);
    instruction.line = 3;
    instruction.operands.resize(operands);
    try {
      require_known(instruction);
      return "";
    } catch (const Error& error) {
      return error.what();
    }
  };
  EXPECT_EQ(error_of("add.s32", 3), "");
  EXPECT_EQ(error_of("ad.s32", 3), "ptx:3: unknown opcode 'ad.s32'");
  EXPECT_EQ(error_of("add.approx.s32", 3), "ptx:3: unknown modifier '.approx' of 'add.approx.s32'");
  EXPECT_EQ(error_of("add", 3),
            "ptx:3: 'add' lacks a modifier, or is an unsupported combination of them");
  EXPECT_EQ(error_of("add.s32", 2), "ptx:3: 'add.s32': expected 3 operands, found 2");
  EXPECT_EQ(error_of("min.f32", 5), "ptx:3: 'min.f32': expected 4 operands, found 5");
  EXPECT_EQ(error_of("ld.b32", 2), "ptx:3: 'ld.b32': expected an address in brackets");
}

}  // namespace
}  // namespace braid::cpu
