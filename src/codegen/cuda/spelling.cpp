#include "codegen/cuda/spelling.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <limits>

#include "braid/error.h"

namespace braid::tile {

std::string_view c_type(Kind kind) {
  switch (kind) {
    case Kind::kF32:
      return "float";
    case Kind::kI32:
      return "int";
    case Kind::kI64:
      return "long long";
    case Kind::kPred:
      return "bool";
    case Kind::kPtr:
      return "unsigned char*";
    case Kind::kShared:
      break;
  }
  throw_internal("print", "a shared tile has no scalar type");
}

std::string_view memory_type(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return "float";
    case DType::kF16:
      return "f16";
    case DType::kBF16:
      return "bf16";
    case DType::kF8E4M3:
      return "f8e4m3";
    case DType::kF8E5M2:
      return "f8e5m2";
    case DType::kI32:
      return "int";
    case DType::kI64:
      return "long long";
    case DType::kU8:
    case DType::kBool:
      return "unsigned char";
  }
  throw_internal("print", "unknown dtype");
}

std::string_view function_format(Fn fn) {
  struct Spelling {
    Fn fn;
    std::string_view format;
  };
  constexpr Spelling kSpellings[] = {
      {Fn::kAdd, "{0} + {1}"},
      {Fn::kSub, "{0} - {1}"},
      {Fn::kMul, "{0} * {1}"},
      {Fn::kDiv, "{0} / {1}"},
      {Fn::kRem, "{0} % {1}"},
      {Fn::kNeg, "-{0}"},
      {Fn::kAbs, "abs_of({0})"},
      {Fn::kWrapAdd, "(long long)((unsigned long long){0} + (unsigned long long){1})"},
      {Fn::kWrapSub, "(long long)((unsigned long long){0} - (unsigned long long){1})"},
      {Fn::kWrapMul, "(long long)((unsigned long long){0} * (unsigned long long){1})"},
      {Fn::kWrapNeg, "(long long)(0 - (unsigned long long){0})"},
      {Fn::kMin, "min_of({0}, {1})"},
      {Fn::kMax, "max_of({0}, {1})"},
#define BRAID_FUNCTION(Name, name, value, cuda) {Fn::k##Name, cuda},
      BRAID_SCALAR_FUNCTIONS(BRAID_FUNCTION, BRAID_FUNCTION)
#undef BRAID_FUNCTION
          {Fn::kLt, "{0} < {1}"},
      {Fn::kEq, "{0} == {1}"},
      {Fn::kAnd, "{0} && {1}"},
      {Fn::kNot, "!{0}"},
      {Fn::kSelect, "{0} ? {1} : {2}"},
      {Fn::kToI32, "(int){0}"},
      {Fn::kToI64, "(long long){0}"},
      {Fn::kToF32, "(float){0}"},
  };
  for (const Spelling& spelling : kSpellings) {
    if (spelling.fn == fn) return spelling.format;
  }
  throw_internal("print", "unknown function");
}

std::string field_text(std::string_view index, const std::vector<int>& images) {
  if (index == "0") return "0";
  std::string text;
  for (const BitRun& run : bit_runs(images)) {
    std::string part = std::string(index);
    if (run.shift != 0) part = fmt::format("{} / {}", part, 1 << run.shift);
    part = fmt::format("{} % {}", part, run.mask + 1);
    if (run.out != 0) part = fmt::format("{} * {}", part, 1 << run.out);
    text += (text.empty() ? "" : " + ") + part;
  }
  return text.empty() ? "0" : text;
}

std::vector<int> rows_of(const std::vector<Coord>& basis) {
  std::vector<int> out;
  out.reserve(basis.size());
  for (Coord c : basis) out.push_back(c.row);
  return out;
}
std::vector<int> cols_of(const std::vector<Coord>& basis) {
  std::vector<int> out;
  out.reserve(basis.size());
  for (Coord c : basis) out.push_back(c.col);
  return out;
}

std::vector<int> compress(const std::vector<int>& marks) {
  std::vector<int> out;
  int next = 1;
  for (int mark : marks) {
    out.push_back(mark == 0 ? 0 : next);
    if (mark != 0) next *= 2;
  }
  return out;
}
int bits_where(const std::vector<Coord>& basis, bool (*test)(Coord)) {
  int mask = 0;
  for (std::size_t i = 0; i < basis.size(); ++i) {
    if (test(basis[i])) mask |= 1 << i;
  }
  return mask;
}

std::string float_text(double value) {
  if (std::isinf(value))
    return value > 0 ? "__int_as_float(0x7f800000)" : "__int_as_float(0xff800000)";
  if (std::isnan(value)) return "__int_as_float(0x7fffffff)";
  std::string text = fmt::format("{:.9g}", value);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text + "f";
}

std::string integer_text(std::int64_t value) {
  using Limits = std::numeric_limits<std::int64_t>;
  if (value == Limits::min()) return fmt::format("({}LL - 1)", value + 1);
  return fmt::format("{}{}", value, std::abs(value) < std::int64_t{1} << 31 ? "" : "LL");
}

}  // namespace braid::tile
