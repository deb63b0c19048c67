#include "ir/json_value.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace braid {

/// Converts a value to the library's type, for printing.
struct JsonPrinter {
  using Document = nlohmann::ordered_json;

  static Document document(const Json& value) { return std::visit(JsonPrinter(), value.value_); }

  Document operator()(const auto& value) const { return value; }
  Document operator()(const std::vector<Json>& items) const {
    Document result = Document::array();
    for (const Json& item : items) result.push_back(document(item));
    return result;
  }
  Document operator()(const std::vector<Json::Member>& members) const {
    Document result = Document::object();
    auto& object = result.get_ref<Document::object_t&>();  // skips the search for equal keys
    for (const auto& [key, value] : members) object.emplace_back(key, document(value));
    return result;
  }
};

Json Json::array(std::initializer_list<Json> items) {
  Json result;
  result.value_ = std::vector<Json>(items);
  return result;
}

Json Json::object(std::initializer_list<Member> members) {
  Json result;
  result.value_ = std::vector<Member>(members);
  return result;
}

void Json::push_back(Json item) { std::get<std::vector<Json>>(value_).push_back(std::move(item)); }

void Json::set(std::string key, Json value) {
  std::get<std::vector<Member>>(value_).emplace_back(std::move(key), std::move(value));
}

namespace {

std::string print(const JsonPrinter::Document& document, int indent) {
  return document.dump(indent, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace

std::string Json::line() const { return print(JsonPrinter::document(*this), -1); }
std::string Json::indented() const { return print(JsonPrinter::document(*this), 2); }

std::string json_string(std::string_view text) {
  const bool plain = std::ranges::all_of(
      text, [](char c) { return c >= 0x20 && c < 0x7f && c != '"' && c != '\\'; });
  if (!plain) return nlohmann::json(text).dump();
  std::string quoted;
  quoted.reserve(text.size() + 2);
  quoted += '"';
  quoted += text;
  return quoted += '"';
}

}  // namespace braid
