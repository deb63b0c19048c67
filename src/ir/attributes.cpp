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

/// What is known of an AttrType.
struct TypeRow {
  std::size_t alternative;  ///< of AttrValue, that holds it; a number's may be an integer, too
  std::string_view description, schema;
};
/// In the order of the enumerators.
constexpr TypeRow kTypes[] = {
    {0, "true or false", R"("type": "boolean")"},
    {1, "an integer", R"("type": "integer")"},
    {2, "a number", R"("type": "number")"},
    {3, "a string", R"("type": "string")"},
    {4, "a dtype: f32, f16, bf16, f8e4m3, f8e5m2, i32, i64, i8, u8 or bool",
     R"("$ref": "#/$defs/dtype")"},
    {5, "an integer or a list of integers",
     R"("anyOf": [{"type": "integer"}, {"type": "array", "items": {"type": "integer"}}])"},
    {6, "a list of integers and expressions of symbols", R"("$ref": "#/$defs/shape")"},
    {7, "an object of integers",
     R"("type": "object", "additionalProperties": {"type": "integer"})"},
    {8, "a graph", R"("$ref": "#/$defs/body")"},
    {3, "the name of a group", R"("type": "string")"},
    {2, "a number, true, false, \"inf\", \"-inf\" or \"nan\"", R"("$ref": "#/$defs/number")"},
    {3, "an integer or an expression of symbols", R"("$ref": "#/$defs/extent")"},
    {6, "an integer, an expression of symbols, or a list of these",
     R"("anyOf": [{"$ref": "#/$defs/extent"}, {"type": "array", "items": {"$ref": "#/$defs/extent"}}])"},
};
const TypeRow& row_of(AttrType type) { return kTypes[static_cast<std::size_t>(type)]; }

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
  if (value.index() != row_of(def.type).alternative && !(is_integer && takes_both)) {
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

std::string_view describe_attr_type(AttrType type) { return row_of(type).description; }
std::string_view schema_of(AttrType type) { return row_of(type).schema; }

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
