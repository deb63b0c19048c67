#include "lowering/remark.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/fail.h"

namespace braid {
namespace {

/// A field of a format: the `text` before it, the argument's name, and its format.
struct Field {
  std::string_view text, name, spec;
};

/// Splits the first field off the format; without a name it is the rest of the text.
Field next_field(std::string_view& format) {
  const std::size_t open = format.find('{');
  const std::size_t close = format.find('}', open == format.npos ? format.size() : open);
  Field field{.text = format.substr(0, open), .name = {}, .spec = {}};
  if (close == format.npos) {
    format = {};
    return field;
  }
  field.name = format.substr(open + 1, close - open - 1);
  format.remove_prefix(close + 1);
  if (const std::size_t colon = field.name.find(':'); colon != field.name.npos) {
    field.spec = field.name.substr(colon + 1);
    field.name = field.name.substr(0, colon);
  }
  return field;
}

std::string print(const Argument& argument, std::string_view spec) {
  if (const auto* text = std::get_if<std::string>(&argument.value)) return *text;
  if (const auto* number = std::get_if<double>(&argument.value)) {
    return fmt::format(fmt::runtime(fmt::format("{{:{}}}", spec)), *number);
  }
  if (const auto* number = std::get_if<std::int64_t>(&argument.value)) {
    return std::to_string(*number);
  }
  std::string text;
  for (const Reason& reason : std::get<std::vector<Reason>>(argument.value)) text += reason.text();
  return text;
}

Json to_json_value(const Argument& argument) {
  if (const auto* text = std::get_if<std::string>(&argument.value)) return *text;
  if (const auto* number = std::get_if<double>(&argument.value)) return *number;
  if (const auto* number = std::get_if<std::int64_t>(&argument.value)) return *number;
  Json reasons = Json::array();
  for (const Reason& reason : std::get<std::vector<Reason>>(argument.value)) {
    Json object = Json::object();
    reason.add_to(object);
    reasons.push_back(std::move(object));
  }
  return reasons;
}

/// The fields of the format; the last one is only text. A name may occur more than once.
std::vector<Field> fields_of(const ReasonCode& code) {
  std::vector<Field> fields;
  std::string_view rest = code.format;
  do {
    fields.push_back(next_field(rest));
  } while (!fields.back().name.empty());
  return fields;
}

/// The names of the arguments, in order.
std::vector<std::string_view> names_of(const ReasonCode& code, std::size_t arguments) {
  std::vector<std::string_view> names;
  for (const Field& field : fields_of(code)) {
    const bool known = std::ranges::find(names, field.name) != names.end();
    if (!field.name.empty() && !known) names.push_back(field.name);
  }
  if (names.size() != arguments) {
    throw_internal(std::string(code.id), "{} arguments for {} names", arguments, names.size());
  }
  return names;
}

}  // namespace

std::string Reason::text() const {
  std::string text;
  if (empty()) return text;
  const std::vector<std::string_view> names = names_of(*code_, arguments_.size());
  for (const Field& field : fields_of(*code_)) {
    text += field.text;
    const auto name = std::ranges::find(names, field.name);
    if (name != names.end()) text += print(arguments_[name - names.begin()], field.spec);
  }
  return text;
}

void Reason::add_to(Json& object) const {
  Json arguments = Json::object();
  if (!empty()) {
    const std::vector<std::string_view> names = names_of(*code_, arguments_.size());
    for (std::size_t i = 0; i < names.size(); ++i) {
      arguments.set(std::string(names[i]), to_json_value(arguments_[i]));
    }
  }
  object.set("code", id());
  object.set("arguments", std::move(arguments));
}

}  // namespace braid
