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
    case Kind::kRing:
    case Kind::kSums:
      break;
  }
  throw_internal("print", "a shared tile has no scalar type");
}

std::string_view memory_type(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return "float";
    case DType::kF16:
    case DType::kBF16:
      return "unsigned short";
    case DType::kF8E4M3:
    case DType::kF8E5M2:
      return "unsigned char";
    case DType::kI32:
      return "int";
    case DType::kI64:
      return "long long";
    case DType::kI8:
      return "signed char";
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
      {Fn::kWrapAdd, "(long long)((unsigned long long){0} + (unsigned long long){1})"},
      {Fn::kWrapSub, "(long long)((unsigned long long){0} - (unsigned long long){1})"},
      {Fn::kWrapMul, "(long long)((unsigned long long){0} * (unsigned long long){1})"},
      {Fn::kWrapNeg, "(long long)(0 - (unsigned long long){0})"},
      {Fn::kBitAnd, "{0} & {1}"},
      {Fn::kBitOr, "{0} | {1}"},
      {Fn::kBitXor, "{0} ^ {1}"},
      {Fn::kShiftLeft,
       "(unsigned long long){1} < 64 ? (long long)((unsigned long long){0} << {1}) : 0"},
      {Fn::kShiftRight, "{0} >> ((unsigned long long){1} < 63 ? {1} : 63)"},
      {Fn::kFma, "__fmaf_rn({0}, {1}, {2})"},
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
      {Fn::kAsF32, "__int_as_float((int){0})"},
  };
  for (const Spelling& spelling : kSpellings) {
    if (spelling.fn == fn) return spelling.format;
  }
  throw_internal("print", "unknown function");
}

std::string position_text(std::string_view base, std::uint32_t base_bits,
                          const std::vector<Term>& terms) {
  struct Part {
    std::string text;
    std::uint32_t bits;
  };
  std::vector<Part> parts;
  if (!base.empty()) parts.push_back({std::string(base), base_bits});
  for (const Term& term : terms) {
    if (term.index == "0") continue;
    for (const BitRun& run : bit_runs(term.map)) {
      std::string text(term.index);
      if (run.shift != 0) text = fmt::format("{} / {}", text, 1 << run.shift);
      text = fmt::format("{} % {}", text, run.mask + 1);
      if (run.out != 0) text = fmt::format("{} * {}", text, 1 << run.out);
      parts.push_back({std::move(text), static_cast<std::uint32_t>(run.mask) << run.out});
    }
  }
  std::vector<std::string> crossing;
  std::vector<std::string> apart;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    std::uint32_t others = 0;
    for (std::size_t j = 0; j < parts.size(); ++j) others |= j == i ? 0 : parts[j].bits;
    const bool crosses = (others & parts[i].bits) != 0;
    const bool is_name = parts[i].text.find(' ') == std::string::npos;
    if (crosses) crossing.push_back(is_name ? parts[i].text : "(" + parts[i].text + ")");
    if (!crosses) apart.push_back(parts[i].text);
  }
  std::string text = fmt::format("{}", fmt::join(crossing, " ^ "));
  if (!crossing.empty() && !apart.empty()) text = "(" + text + ") + ";
  text += fmt::format("{}", fmt::join(apart, " + "));
  return text.empty() ? "0" : text;
}

LinearMap rows_of(const std::vector<Coord>& basis) {
  LinearMap out;
  for (Coord c : basis) out.images.push_back(static_cast<std::uint32_t>(c.row));
  return out;
}
LinearMap cols_of(const std::vector<Coord>& basis) {
  LinearMap out;
  for (Coord c : basis) out.images.push_back(static_cast<std::uint32_t>(c.col));
  return out;
}

std::uint32_t reached(const LinearMap& map) {
  std::uint32_t out = 0;
  for (std::uint32_t image : map.images) out |= image;
  return out;
}

std::string_view ptx_name(DType dtype) {
  return dtype == DType::kF8E4M3 ? "e4m3" : dtype == DType::kF8E5M2 ? "e5m2" : dtype_name(dtype);
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
