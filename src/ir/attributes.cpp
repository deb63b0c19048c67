#include "ir/attributes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

#include "braid/error.h"
#include "ir/collective.h"
#include "ir/ops.h"
#include "ir/place.h"
#include "ir/text.h"

namespace braid {
namespace {

/// Which alternative of AttrValue holds an attribute of this type; a number's may be an integer,
/// too.
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
    case AttrType::kReduceOp:
      return 3;
    case AttrType::kDType:
      return 4;
    case AttrType::kInts:
      return 5;
    case AttrType::kShape:
      return 6;
    case AttrType::kConfig:
      return 7;
    case AttrType::kGraph:
      return 8;
  }
  throw_internal("attributes", "unknown type");
}

void check_value(const Graph& graph, const AttrDef& def, AttrValue& value) {
  const auto place = [&] { return "/attrs/" + def.name; };
  if (const auto* integer = std::get_if<std::int64_t>(&value)) {
    if (def.type == AttrType::kDouble) value = static_cast<double>(*integer);
    if (def.type == AttrType::kInts) value = std::vector<std::int64_t>{*integer};
  }
  const bool is_integer = std::holds_alternative<std::int64_t>(value);
  if (value.index() != alternative(def.type) && !(is_integer && def.type == AttrType::kNumber)) {
    fail(place(), fmt::format("wrong type; expected {}", describe_attr_type(def.type)));
  }
  if (const auto* text = std::get_if<std::string>(&value); text && !is_utf8(*text)) {
    fail(place(), fmt::format("{} is not UTF-8", quote(*text)));
  }
  if (const auto* number = std::get_if<double>(&value); number && !std::isfinite(*number)) {
    fail(place(), fmt::format("{} is not a finite number", *number));
  }
  if (def.type == AttrType::kGroup) {
    const auto& group = std::get<std::string>(value);
    if (graph.groups().find(group) == graph.groups().end()) {
      fail(place(),
           fmt::format("unknown group {}; expected {}", quote(group), list_names(graph.groups())));
    }
  }
  if (def.type == AttrType::kReduceOp) {
    const auto& name = std::get<std::string>(value);
    if (!parse_reduce_op(name)) {
      fail(place(), fmt::format("unknown reduction {}; expected {}", quote(name),
                                fmt::join(kReduceOpNames, ", ")));
    }
  }
  if (const auto* shape = std::get_if<Shape>(&value)) {
    for (std::size_t i = 0; i < shape->size(); ++i) {
      for (const Dim::Term& term : (*shape)[i].terms()) {
        if (graph.symbols().find(term.symbol) != graph.symbols().end()) continue;
        fail(fmt::format("{}/{}", place(), i),
             fmt::format("unknown symbol {}; expected {}", quote(term.symbol),
                         list_names(graph.symbols())));
      }
    }
  }
  if (def.type == AttrType::kGraph && std::get<std::shared_ptr<const Graph>>(value) == nullptr) {
    fail(place(), "null; expected a graph");
  }
}

}  // namespace

std::string_view describe_attr_type(AttrType type) {
  switch (type) {
    case AttrType::kBool:
      return "true or false";
    case AttrType::kInt:
      return "an integer";
    case AttrType::kDouble:
    case AttrType::kNumber:
      return "a number";
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
    case AttrType::kReduceOp:
      return "the name of a reduction";
  }
  return "";
}

const AttrDef& find_attribute(const OpDef& op, std::string_view key) {
  for (const AttrDef& def : op.attrs) {
    if (def.name == key) return def;
  }
  std::vector<std::string_view> known;
  for (const AttrDef& def : op.attrs) known.push_back(def.name);
  fail("/attrs" + pointer_step(key),
       fmt::format("{} has no attribute {}; expected {}", op.name, quote(key),
                   known.empty() ? "none" : fmt::format("{}", fmt::join(known, ", "))));
}

Attrs complete_attributes(const Graph& graph, const OpDef& op, Attrs attrs) {
  for (auto& [key, value] : attrs) check_value(graph, find_attribute(op, key), value);
  for (const AttrDef& def : op.attrs) {
    if (attrs.count(def.name) != 0) continue;
    if (def.optional) continue;
    if (!def.fallback) {
      fail("/attrs/" + def.name,
           fmt::format("missing; {} needs it: {}", op.name, describe_attr_type(def.type)));
    }
    attrs.emplace(def.name, *def.fallback);
  }
  return attrs;
}

}  // namespace braid
