#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "braid/graph.h"
#include "ir/non_copyable.h"
#include "ir/place.h"

// Reads JSON from untrusted sources; shared by the readers of graphs and programs. Every error is
// kInvalidArgument at the place in the document.
namespace braid::json_read {

using nlohmann::json;

[[noreturn]] void fail_at(const Place& place, const std::string& message);
template <class First, class... Rest>
[[noreturn]] void fail_at(const Place& place, fmt::format_string<First, Rest...> message,
                          First&& first, Rest&&... rest) {
  fail_at(place, fmt::format(message, std::forward<First>(first), std::forward<Rest>(rest)...));
}
/// "found ..., expected ...".
[[noreturn]] void fail_type(const json& value, const Place& place, std::string_view expected);

const json::object_t& read_object(const json& value, const Place& place);
const json::array_t& read_array(const json& value, const Place& place,
                                std::string_view expected = "a list");
const std::string& read_string(const json& value, const Place& place,
                               std::string_view expected = "a string");
bool read_bool(const json& value, const Place& place);
/// Whether it is an integer that int64 can hold.
bool is_int(const json& value);
std::int64_t read_int(const json& value, const Place& place,
                      std::string_view expected = "an integer");
double read_number(const json& value, const Place& place, std::string_view expected = "a number");
/// Of a list: an integer that is not negative.
int read_index(const json& value, const Place& place);
std::vector<std::int64_t> read_ints(const json& value, const Place& place,
                                    std::string_view expected);
/// Integers by name.
std::map<std::string, std::int64_t> read_config(const json& value, const Place& place);
DType read_dtype(const json& value, const Place& place);
Shape read_shape(const json& value, const Place& place);
/// Reads an extent or a bound.
Dim read_dim(const json& value, const Place& place, std::string_view expected);

/// A number where ATen takes a Scalar; true is 1.
struct Scalar {
  AttrValue value;  ///< an integer or a float
  DType dtype;      ///< its dtype in promotion: bool, i64, or f32 for any float
};
Scalar read_scalar(const json& value, const Place& place);
/// Parses infinities and NaN, for which JSON has no number, from "inf", "-Infinity", "nan" and the
/// like.
std::optional<double> special_number(const json& value);

/// Calls read(item, its place) for each item of a list.
template <class Read>
void each_item(const json& list, const Place& place, const Read& read,
               std::string_view expected = "a list") {
  const auto& items = read_array(list, place, expected);
  for (std::size_t i = 0; i < items.size(); ++i) read(items[i], place / i);
}

inline void read_to(bool& to, const json& json, const Place& at) { to = read_bool(json, at); }
inline void read_to(int& to, const json& json, const Place& at) { to = read_index(json, at); }
inline void read_to(std::int64_t& to, const json& json, const Place& at) {
  to = read_int(json, at);
}
inline void read_to(DType& to, const json& json, const Place& at) { to = read_dtype(json, at); }
inline void read_to(Shape& to, const json& json, const Place& at) { to = read_shape(json, at); }
inline void read_to(std::string& to, const json& json, const Place& at) {
  to = read_string(json, at);
}
inline void read_to(std::map<std::string, std::int64_t>& to, const json& json, const Place& at) {
  to = read_config(json, at);
}

[[noreturn]] void fail_unknown(const Place& place, std::string_view key,
                               std::initializer_list<std::string_view> expected);
[[noreturn]] void fail_missing(const Place& place, std::string_view key);

/// A JSON object with a fixed set of keys.
class Fields {
 public:
  Fields(const json& value, const Place& place, std::initializer_list<std::string_view> keys)
      : object_(read_object(value, place)), place_(place) {
    for (const auto& [key, entry] : object_) {
      if (std::ranges::find(keys, key) != keys.end()) continue;
      fail_unknown(place / key, key, keys);
    }
  }

  /// Returns null when the key is absent.
  [[nodiscard]] const json* find(std::string_view key) const {
    auto it = object_.find(key);
    return it == object_.end() ? nullptr : &it->second;
  }
  [[nodiscard]] const json& get(std::string_view key) const {
    const json* value = find(key);
    if (value == nullptr) fail_missing(place_ / key, key);
    return *value;
  }
  /// An int is an index.
  template <class T>
  void read(std::string_view key, T& to) const {
    read_to(to, get(key), place_ / key);
  }
  /// Leaves `to` as it is when the key is not there.
  template <class T>
  void read_if(std::string_view key, T& to) const {
    if (find(key) != nullptr) read(key, to);
  }
  template <class T>
  [[nodiscard]] T get(std::string_view key) const {
    T value{};
    read(key, value);
    return value;
  }
  /// As each_item, of the list of that key.
  template <class Read>
  void each(std::string_view key, const Read& read) const {
    each_item(get(key), place_ / key, read);
  }

 private:
  const json::object_t& object_;
  const Place& place_;
};

/// A parsed document of any size, destroyed without allocating.
struct Document : NonCopyable {
  ~Document();
  json root;
};

/// Parses a text. Bounds its size and depth, refuses duplicate keys.
void parse(std::string_view text, const Place& place, Document& document);

/// read_graph reads a whole graph as parse_graph does; the other only its symbols and groups.
[[nodiscard]] Graph read_graph(const json& document, const Place& place);
void read_symbols(Graph& graph, const json& value, const Place& place);
void read_groups(Graph& graph, const json& value, const Place& place);

}  // namespace braid::json_read
