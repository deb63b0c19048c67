#include "ir/json_read.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ir/attributes.h"
#include "ir/fail.h"
#include "ir/scalar_functions.h"
#include "ir/text.h"
#include "ir/text_file.h"

namespace braid::json_read {
namespace {

constexpr std::size_t kMaxNesting = 64;
constexpr std::size_t kMaxParseMessage = 200;

/// Describes the value for an error message.
std::string found(const json& value) {
  switch (value.type()) {
    case json::value_t::null:
      return "null";
    case json::value_t::object:
      return "an object";
    case json::value_t::array:
      return "a list";
    case json::value_t::string:
      return "the string " + quote(value.get_ref<const std::string&>());
    case json::value_t::boolean:
      return value.get<bool>() ? "true" : "false";
    default:
      return value.dump();
  }
}

/// Destroys a json from the inside. The library's destructor allocates memory, and the process
/// would end where there is none. Nesting is limited.
void take_apart(json& value) {
  if (value.is_object()) {
    for (auto& [key, member] : value.get_ref<json::object_t&>()) take_apart(member);
    value.clear();
  } else if (value.is_array()) {
    for (json& item : value.get_ref<json::array_t&>()) take_apart(item);
    value.clear();
  }
}

/// Builds the document from the parser's events without recursion, and bounds the depth for the
/// recursive reader. Refuses duplicate keys, of which the library would keep the last.
class DocumentBuilder : public nlohmann::json_sax<json> {
 public:
  DocumentBuilder(const Place& place, json& root) : place_(place), root_(root) {}

  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(number_integer_t value) override { return add(value); }
  bool number_unsigned(number_unsigned_t value) override { return add(value); }
  bool number_float(number_float_t value, const string_t&) override { return add(value); }
  bool string(string_t& value) override { return add(std::move(value)); }
  bool binary(binary_t&) override { return false; }
  bool start_object(std::size_t) override { return open(json::object()); }
  bool start_array(std::size_t) override { return open(json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  bool key(string_t& key) override {
    auto [it, is_new] = open_.back()->get_ref<json::object_t&>().emplace(std::move(key), nullptr);
    if (!is_new) fail_at(place_, "the key {} stands twice in one object", quote(it->first));
    slot_ = &it->second;
    return true;
  }

  bool parse_error(std::size_t, const std::string&, const json::exception& error) override {
    std::string_view message = error.what();
    // Removes "[json.exception.parse_error.101] ".
    message.remove_prefix(std::min(message.find("] ") + 2, message.size()));
    fail_at(place_, "not JSON: " + printable(message, kMaxParseMessage));
  }

 private:
  bool add(json value) {
    place_value(std::move(value));
    return true;
  }
  bool open(json container) {
    if (open_.size() == kMaxNesting) {
      fail_at(place_, "lists and objects nest more than {} deep; expected at most {}", kMaxNesting,
              kMaxNesting);
    }
    open_.push_back(place_value(std::move(container)));
    return true;
  }
  bool close() {
    open_.pop_back();
    return true;
  }

  /// Puts the value at the root, at the end of the open list or under the last key.
  json* place_value(json value) {
    json* target = &root_;
    if (!open_.empty() && open_.back()->is_array()) {
      auto& items = open_.back()->get_ref<json::array_t&>();
      target = &items.emplace_back();
    } else if (!open_.empty()) {
      target = slot_;
    }
    *target = std::move(value);
    return target;
  }

  const Place& place_;
  json& root_;
  std::vector<json*> open_;  ///< stays valid: only the innermost container grows
  json* slot_ = nullptr;     ///< value of the last key
};

/// Quotes Infinity, -Infinity and NaN, which Python's json writes as bare words.
std::string quote_special_numbers(std::string_view text) {
  std::string quoted;
  quoted.reserve(text.size());
  bool in_string = false;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t length = 1;
    if (in_string) {
      length = text[at] == '\\' && at + 1 < text.size() ? 2 : 1;
    } else {
      for (const std::string_view word : {"-Infinity", "Infinity", "NaN"}) {
        if (text.substr(at).starts_with(word)) length = word.size();
      }
    }
    const bool is_word = length > 2;
    if (is_word) quoted += '"';
    quoted += text.substr(at, length);
    if (is_word) quoted += '"';
    if (text[at] == '"') in_string = !in_string;
    at += length;
  }
  return quoted;
}

}  // namespace

Document::~Document() { take_apart(root); }

void fail_at(const Place& place, const std::string& message) {
  throw_invalid(place.str(), message);
}

void fail_type(const json& value, const Place& place, std::string_view expected) {
  fail_at(place, "found {}; expected {}", found(value), expected);
}

const json::object_t& read_object(const json& value, const Place& place) {
  if (!value.is_object()) fail_type(value, place, "an object");
  return value.get_ref<const json::object_t&>();
}
const json::array_t& read_array(const json& value, const Place& place, std::string_view expected) {
  if (!value.is_array()) fail_type(value, place, expected);
  return value.get_ref<const json::array_t&>();
}
const std::string& read_string(const json& value, const Place& place, std::string_view expected) {
  if (!value.is_string()) fail_type(value, place, expected);
  return value.get_ref<const std::string&>();
}
bool read_bool(const json& value, const Place& place) {
  if (!value.is_boolean()) fail_type(value, place, "true or false");
  return value.get<bool>();
}
bool is_int(const json& value) {
  const bool too_large =
      value.is_number_unsigned() && value.get<std::uint64_t>() > std::uint64_t{INT64_MAX};
  return value.is_number_integer() && !too_large;
}
std::int64_t read_int(const json& value, const Place& place, std::string_view expected) {
  if (!is_int(value)) fail_type(value, place, expected);
  return value.get<std::int64_t>();
}
double read_number(const json& value, const Place& place, std::string_view expected) {
  if (!value.is_number()) fail_type(value, place, expected);
  return value.get<double>();
}
int read_index(const json& value, const Place& place) {
  const std::int64_t index = read_int(value, place);
  if (index < 0 || index > std::numeric_limits<int>::max()) fail_type(value, place, "an index");
  return static_cast<int>(index);
}
std::vector<std::int64_t> read_ints(const json& value, const Place& place,
                                    std::string_view expected) {
  std::vector<std::int64_t> result;
  each_item(
      value, place,
      [&](const json& item, const Place& at) { result.push_back(read_int(item, at)); }, expected);
  return result;
}
std::map<std::string, std::int64_t> read_config(const json& value, const Place& place) {
  std::map<std::string, std::int64_t> config;
  for (const auto& [key, entry] : read_object(value, place)) {
    config.emplace(key, read_int(entry, place / key));
  }
  return config;
}
DType read_dtype(const json& value, const Place& place) {
  const std::string_view expected = describe_attr_type(AttrType::kDType);
  std::optional<DType> dtype = parse_dtype(read_string(value, place, expected));
  if (!dtype) fail_type(value, place, expected);
  return *dtype;
}
Shape read_shape(const json& value, const Place& place) {
  Shape shape;
  const auto read = [&](const json& item, const Place& at) {
    shape.push_back(read_dim(item, at, describe_attr_type(AttrType::kExtent)));
  };
  each_item(value, place, read, describe_attr_type(AttrType::kShape));
  return shape;
}
Dim read_dim(const json& value, const Place& place, std::string_view expected) {
  if (!value.is_string()) return read_int(value, place, expected);
  std::optional<Dim> dim = Dim::parse(value.get_ref<const std::string&>());
  if (!dim) fail_type(value, place, "an affine expression of symbols such as \"2*T+1\"");
  return *dim;
}
Scalar read_scalar(const json& value, const Place& place) {
  if (value.is_boolean()) return {std::int64_t{value.get<bool>() ? 1 : 0}, DType::kBool};
  if (is_int(value)) return {value.get<std::int64_t>(), DType::kI64};
  if (const std::optional<double> special = special_number(value)) return {*special, DType::kF32};
  return {read_number(value, place, describe_attr_type(AttrType::kNumber)), DType::kF32};
}
std::optional<double> special_number(const json& value) {
  if (!value.is_string()) return std::nullopt;
  constexpr std::pair<std::string_view, double> kSpellings[] = {
      {"inf", kInfinity},
      {"Infinity", kInfinity},
      {"-inf", -kInfinity},
      {"-Infinity", -kInfinity},
      {"nan", std::numeric_limits<double>::quiet_NaN()},
      {"NaN", std::numeric_limits<double>::quiet_NaN()}};
  for (const auto& [spelling, number] : kSpellings) {
    if (value.get_ref<const std::string&>() == spelling) return number;
  }
  return std::nullopt;
}

void fail_unknown(const Place& place, std::string_view key,
                  std::initializer_list<std::string_view> expected) {
  fail_at(place, "unknown key {}; expected one of {}", quote(key), fmt::join(expected, ", "));
}
void fail_missing(const Place& place, std::string_view key) {
  fail_at(place, "missing key {}", quote(key));
}

void parse(std::string_view text, const Place& place, Document& document) {
  if (text.size() > kMaxGraphBytes) {
    fail_at(place, "{} bytes of JSON; expected at most {}", text.size(), kMaxGraphBytes);
  }
  // The library would take the byte for the end of the text and ignore the rest.
  if (const std::size_t zero = text.find('\0'); zero != text.npos) {
    fail_at(place, "not JSON: byte {} is 0", zero);
  }
  DocumentBuilder builder(place, document.root);
  json::sax_parse(quote_special_numbers(text), &builder);
}

}  // namespace braid::json_read
