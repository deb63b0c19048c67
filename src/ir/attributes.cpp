#include "ir/attributes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "ir/fail.h"
#include "ir/ops.h"
#include "ir/place.h"
#include "ir/text.h"

namespace braid {
namespace {

/// The alternative of AttrValue that holds an attribute of this type. A kNumber may also hold an
/// integer.
std::size_t alternative(AttrType type) {
  switch (type) {
    case AttrType::kBool:
      return 0;
    case AttrType::kInt:
      return 1;
    case AttrType::kDouble:
    case AttrType::kNumber:
      return 2;
    case AttrType::kString:
    case AttrType::kGroup:
    case AttrType::kExtent:
      return 3;
    case AttrType::kDType:
      return 4;
    case AttrType::kInts:
      return 5;
    case AttrType::kShape:
    case AttrType::kExtents:
      return 6;
    case AttrType::kConfig:
      return 7;
    case AttrType::kGraph:
      return 8;
  }
  throw_internal("attributes", "unknown type");
}

/// Converts the value to the canonical alternative of its type.
AttrValue normalized(AttrType type, AttrValue value) {
  if (const auto* list = std::get_if<std::vector<std::int64_t>>(&value);
      list && type == AttrType::kExtents) {
    return Shape(list->begin(), list->end());
  }
  if (const auto* text = std::get_if<std::string>(&value); text && type == AttrType::kExtent) {
    const std::optional<Dim> dim = Dim::parse(*text);
    return dim ? as_bound(*dim) : value;
  }
  const auto* integer = std::get_if<std::int64_t>(&value);
  if (!integer) return value;
  if (type == AttrType::kDouble) return static_cast<double>(*integer);
  if (type == AttrType::kInts) return std::vector<std::int64_t>{*integer};
  if (type == AttrType::kExtents) return Shape{*integer};
  return value;
}

void check_dim(const Graph& graph, const Dim& dim, const std::string& place) {
  for (const Dim::Term& term : dim.terms()) {
    if (graph.symbols().find(term.symbol) != graph.symbols().end()) continue;
    fail(place, "unknown symbol {}; expected {}", quote(term.symbol), list_names(graph.symbols()));
  }
}

/// Checks bounds and sizes, which need not show in a result's shape.
void check_whole(const Graph& graph, const Dim& dim, const std::string& place) {
  check_dim(graph, dim, place);
  if (dim.is_whole(graph.symbols())) return;
  fail(place,
       "{} is not whole for all values of its symbols; expected symbols whose multiple_of the "
       "divisors divide",
       dim.str());
}

void check_value(const Graph& graph, const AttrDef& def, AttrValue& value) {
  const auto place = [&] { return "/attrs/" + def.name; };
  value = normalized(def.type, std::move(value));
  const bool is_integer = std::holds_alternative<std::int64_t>(value);
  const bool takes_both = def.type == AttrType::kNumber || def.type == AttrType::kExtent;
  if (value.index() != alternative(def.type) && !(is_integer && takes_both)) {
    fail(place(), "wrong type; expected {}", describe_attr_type(def.type));
  }
  if (const auto* text = std::get_if<std::string>(&value); text && !is_utf8(*text)) {
    fail(place(), "{} is not UTF-8", quote(*text));
  }
  const auto* number = std::get_if<double>(&value);
  if (number && !std::isfinite(*number) && def.type != AttrType::kNumber) {
    fail(place(), "{} is not a finite number", *number);
  }
  if (def.type == AttrType::kGroup) {
    const auto& group = std::get<std::string>(value);
    if (graph.groups().find(group) == graph.groups().end()) {
      fail(place(), "unknown group {}; expected {}", quote(group), list_names(graph.groups()));
    }
  }
  if (!def.choices.empty()) {
    const auto& text = std::get<std::string>(value);
    if (std::ranges::find(def.choices, text) == def.choices.end()) {
      std::vector<std::string> choices;
      for (const std::string_view choice : def.choices) choices.push_back(quote(choice));
      fail(place(), "found {}; expected {}{}", quote(text), choices.size() > 1 ? "one of " : "",
           fmt::join(choices, ", "));
    }
  }
  if (def.type == AttrType::kExtent && !is_integer) {
    const auto& text = std::get<std::string>(value);
    if (!Dim::parse(text)) {
      fail(place(), "found {}; expected {}", quote(text), describe_attr_type(def.type));
    }
    check_whole(graph, bound_of(value), place());
  }
  if (const auto* shape = std::get_if<Shape>(&value)) {
    for (std::size_t i = 0; i < shape->size(); ++i) {
      const std::string at = fmt::format("{}/{}", place(), i);
      def.type == AttrType::kShape ? check_dim(graph, (*shape)[i], at)
                                   : check_whole(graph, (*shape)[i], at);
    }
  }
  if (def.type == AttrType::kGraph && std::get<std::shared_ptr<const Graph>>(value) == nullptr) {
    fail(place(), "null; expected a graph");
  }
}

}  // namespace

Dim bound_of(const AttrValue& value) {
  const auto* text = std::get_if<std::string>(&value);
  return text ? *Dim::parse(*text) : Dim(std::get<std::int64_t>(value));
}

AttrValue as_bound(const Dim& dim) {
  if (dim.is_constant()) return dim.constant();
  return dim.str();
}

std::string_view describe_attr_type(AttrType type) {
  switch (type) {
    case AttrType::kBool:
      return "true or false";
    case AttrType::kInt:
      return "an integer";
    case AttrType::kDouble:
      return "a number";
    case AttrType::kNumber:
      return "a number, true, false, \"inf\", \"-inf\" or \"nan\"";
    case AttrType::kString:
      return "a string";
    case AttrType::kDType:
      return "a dtype: f32, f16, bf16, f8e4m3, f8e5m2, i32, i64, u8 or bool";
    case AttrType::kInts:
      return "an integer or a list of integers";
    case AttrType::kShape:
      return "a list of integers and expressions of symbols";
    case AttrType::kConfig:
      return "an object of integers";
    case AttrType::kGraph:
      return "a graph";
    case AttrType::kGroup:
      return "the name of a group";
    case AttrType::kExtent:
      return "an integer or an expression of symbols";
    case AttrType::kExtents:
      return "an integer, an expression of symbols, or a list of these";
  }
  return "";
}

const AttrDef& find_attribute(const OpDef& op, std::string_view key) {
  for (const AttrDef& def : op.attrs) {
    if (def.name == key) return def;
  }
  std::vector<std::string_view> known;
  for (const AttrDef& def : op.attrs) known.push_back(def.name);
  fail("/attrs" + pointer_step(key), "{} has no attribute {}; expected {}", op.name, quote(key),
       known.empty() ? "none" : fmt::format("{}", fmt::join(known, ", ")));
}

Attrs complete_attributes(const Graph& graph, const OpDef& op, Attrs attrs) {
  for (auto& [key, value] : attrs) check_value(graph, find_attribute(op, key), value);
  for (const AttrDef& def : op.attrs) {
    if (attrs.count(def.name) != 0) continue;
    if (def.optional) continue;
    if (!def.fallback) {
      fail("/attrs/" + def.name, "missing; {} needs it: {}", op.name, describe_attr_type(def.type));
    }
    attrs.emplace(def.name, *def.fallback);
  }
  return attrs;
}

}  // namespace braid
