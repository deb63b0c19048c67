#include "cli/ptx_arguments.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <map>

#include "cli/common.h"
#include "ir/fail.h"
#include "ir/mapped.h"
#include "ir/split_list.h"
#include "ir/text.h"
#include "runtime/name_memory.h"
#include "runtime/safetensors.h"

namespace braid::cli {
namespace {

using Kind = ElementType::Kind;

const ElementType& type_of(std::string_view name, const std::string& place) {
  const ElementType* type = find_type(&ElementType::name, name);
  if (type == nullptr) {
    throw_invalid(place, "unknown dtype {}; expected one of {}", quote(name),
                  fmt::join(mapped(kElementTypes, &ElementType::name), ", "));
  }
  return *type;
}

std::vector<std::byte> bytes_of(const void* data, std::size_t bytes) {
  const auto* start = static_cast<const std::byte*>(data);
  return {start, start + bytes};
}

std::vector<std::byte> floats(const ElementType& type, const std::vector<double>& values) {
  if (type.bytes == sizeof(double)) return bytes_of(values.data(), values.size() * sizeof(double));
  const auto elements = static_cast<std::int64_t>(values.size());
  return HostTensor::from_doubles(*parse_dtype(type.name), {elements}, values).data;
}

/// Whether a parameter of a declared type, "u32" say, may be given this.
bool takes(std::string_view declared, bool is_float, bool is_number, std::size_t bytes) {
  if (declared.starts_with('f')) return is_float || !is_number;
  // A float of 16 bits may be passed as an integer, and is by some compilers.
  if (declared.starts_with('u') || declared.starts_with('s')) return !is_float || bytes < 4;
  return true;
}

void align_to(std::vector<std::byte>& bytes, std::size_t align) {
  bytes.resize((bytes.size() + align - 1) / align * align);
}

}  // namespace

PtxArguments::PtxArguments(const std::vector<std::string>& specs, std::uint64_t seed)
    : random_(seed) {
  for (const std::string& spec : specs) {
    place_ = "--arg " + quote(spec);
    values_.push_back(parse(spec, fmt::format("arg{}", values_.size())));
  }
}

PtxArguments::Value PtxArguments::parse(std::string_view spec, const std::string& name) {
  std::string_view rest = spec;
  const std::string_view kind = next_part(rest, ':');
  if (kind == "zero" || kind == "random" || kind == "poison" || kind.ends_with(".safetensors")) {
    return make_buffer(kind, rest, name);
  }
  if (kind.starts_with("arg") && rest.empty()) {
    return address_of(parse_place(spec), "the address of a buffer");
  }
  const bool inside = name.find('.') != name.npos;
  if (inside && (kind == "struct" || kind == "table" || kind == "bytes")) {
    throw_invalid(place_, "found {} inside of another argument; expected a scalar or a buffer",
                  quote(kind));
  }
  if (kind == "struct") return parse_struct(rest, name);
  if (kind == "table") return parse_table(rest, name);
  if (kind == "bytes") return parse_bytes(rest);
  if (kind == "tensormap" || kind == "im2col") {
    return parse_tensor_map(rest, name, kind == "im2col");
  }
  if (rest.empty()) throw_invalid(place_, "found {}; expected {}", quote(spec), kForms);
  return parse_scalar(type_of(kind, place_), rest);
}

/// "arg0", or so many bytes further, "arg0+64".
PtxArguments::Place PtxArguments::parse_place(std::string_view text) const {
  std::string_view rest = text;
  const std::string_view name = next_part(rest, '+');
  const auto known = std::ranges::find_if(buffers_, [&](const Buffer& buffer) {
    return buffer.name == name && buffer.type != nullptr;
  });
  if (known == buffers_.end()) {
    throw_invalid(place_, "found {}; expected a buffer of an argument before this one",
                  quote(name));
  }
  Place place{.buffer = static_cast<std::size_t>(known - buffers_.begin())};
  if (name.size() == text.size()) return place;
  if (!parse_number(rest, &place.offset) || place.offset >= known->data.size()) {
    throw_invalid(place_, "found an offset of {}; expected less than the {} bytes of {}",
                  quote(rest), known->data.size(), name);
  }
  return place;
}

PtxArguments::Value PtxArguments::parse_bytes(std::string_view digits) const {
  Value value{.what = "bytes"};
  if (digits.empty() || digits.size() % 2 != 0) {
    throw_invalid(place_, "found {} hex digits; expected two for each byte", digits.size());
  }
  for (std::size_t i = 0; i < digits.size(); i += 2) {
    std::uint8_t byte = 0;
    const char* const end = digits.data() + i + 2;
    if (const auto [at, error] = std::from_chars(digits.data() + i, end, byte, 16); at != end) {
      throw_invalid(place_, "found {} at digit {}; expected hex digits", quote(digits.substr(i, 2)),
                    i);
    }
    value.bytes.push_back(static_cast<std::byte>(byte));
  }
  return value;
}

PtxArguments::Value PtxArguments::parse_struct(std::string_view fields, const std::string& name) {
  std::vector<Value> values;
  for (const std::string_view spec : split_list(fields)) {
    values.push_back(parse(spec, fmt::format("{}.{}", name, values.size())));
  }
  return struct_of(std::move(values), TensorMap::kAlign);
}

PtxArguments::Value PtxArguments::struct_of(std::vector<Value> fields, std::size_t map_align) {
  Value value{.what = "a struct"};
  for (const Value& field : fields) {
    const std::size_t align = field.kind == Value::Kind::kMap ? map_align : field.align;
    align_to(value.bytes, align);
    for (const auto& [offset, place] : field.addresses) {
      value.addresses.emplace_back(value.bytes.size() + offset, place);
    }
    for (const auto& [offset, map] : field.maps) {
      value.maps.emplace_back(value.bytes.size() + offset, map);
    }
    value.bytes.insert(value.bytes.end(), field.bytes.begin(), field.bytes.end());
    value.align = std::max(value.align, align);
  }
  align_to(value.bytes, value.align);
  value.fields = std::move(fields);
  return value;
}

PtxArguments::Value PtxArguments::parse_table(std::string_view entries, const std::string& name) {
  Buffer table{.name = name};
  for (const std::string_view entry : split_list(entries)) {
    const Value value = parse(entry, fmt::format("{}.{}", name, table.addressed.size()));
    if (value.addresses.empty()) {
      throw_invalid(place_, "found {} in a table; expected buffers", quote(entry));
    }
    table.addressed.push_back(value.addresses[0].second);
  }
  table.data.resize(table.addressed.size() * sizeof(std::uint64_t));
  return add_buffer(std::move(table));
}

PtxArguments::Value PtxArguments::parse_scalar(const ElementType& type,
                                               std::string_view text) const {
  Value value{.what = std::string(type.name)};
  value.align = type.bytes;
  value.kind = type.kind == Kind::kFloat ? Value::Kind::kFloat : Value::Kind::kInteger;
  if (type.kind == Kind::kFloat) {
    double number = 0;
    if (!parse_number(text, &number)) {
      throw_invalid(place_, "found {}; expected a number", quote(text));
    }
    value.bytes = floats(type, {number});
    return value;
  }
  const std::size_t unused = 64 - 8 * type.bytes;
  const std::uint64_t most = type.kind == Kind::kBool     ? 1
                             : type.kind == Kind::kSigned ? INT64_MAX >> unused
                                                          : UINT64_MAX >> unused;
  const std::int64_t least = type.kind == Kind::kSigned ? INT64_MIN >> unused : 0;
  std::uint64_t bits = 0;
  std::int64_t negative = 0;
  if (parse_number(text, &negative) && negative < 0 && negative >= least) {
    bits = static_cast<std::uint64_t>(negative);
  } else if (!parse_number(text, &bits) || bits > most) {
    throw_invalid(place_, "found {}; expected {} to {}", quote(text), least, most);
  }
  value.bytes = bytes_of(&bits, type.bytes);
  return value;
}

PtxArguments::Value PtxArguments::make_buffer(std::string_view kind, std::string_view rest,
                                              const std::string& name) {
  Buffer buffer{.name = name};
  if (kind.ends_with(".safetensors")) {
    FileTensor tensor = SafetensorsFile(std::string(kind)).read_as_is(rest);
    buffer.type = find_type(&ElementType::file_name, tensor.dtype);
    buffer.shape = std::move(tensor.shape);
    buffer.data = std::move(tensor.data);
    reserve(buffer.data.size());
    return add_buffer(std::move(buffer));
  }
  buffer.type = &type_of(next_part(rest, ':'), place_);
  constexpr std::int64_t kMost = std::int64_t{1} << 32;
  std::int64_t elements = 0;
  if (!parse_number(rest, &elements) || elements < 1 || elements > kMost) {
    throw_invalid(place_, "found {} elements; expected 1 to 2^32", quote(rest));
  }
  const std::size_t count = elements;
  reserve(count * buffer.type->bytes);
  buffer.shape = {elements};
  buffer.filled = kind != "poison";
  if (kind == "random") {
    buffer.data = random_data(*buffer.type, count);
  } else {
    buffer.data.resize(count * buffer.type->bytes);
  }
  return add_buffer(std::move(buffer));
}

PtxArguments::Value PtxArguments::address_of(const Place& place, std::string what) {
  Value value{.what = std::move(what), .kind = Value::Kind::kAddress};
  value.bytes.resize(sizeof(std::uint64_t));
  value.align = sizeof(std::uint64_t);
  value.addresses = {{0, place}};
  return value;
}

PtxArguments::Value PtxArguments::add_buffer(Buffer buffer) {
  const bool table = !buffer.addressed.empty();
  buffers_.push_back(std::move(buffer));
  return address_of({.buffer = buffers_.size() - 1},
                    table ? "the address of a table" : "the address of a buffer");
}

/// Buffers lie in the device's memory, which is this machine's, and on the host.
void PtxArguments::reserve(std::uint64_t bytes) {
  total_ += bytes;
  const std::uint64_t machine = static_cast<std::uint64_t>(::sysconf(_SC_PHYS_PAGES)) *
                                static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  if (total_ > machine / 2) {
    throw_invalid(place_,
                  "the buffers have {} MiB; expected at most {}, half of this machine's memory",
                  total_ >> 20U, machine >> 21U);
  }
}

std::vector<std::byte> PtxArguments::random_data(const ElementType& type, std::size_t elements) {
  if (type.kind == Kind::kFloat) {
    std::normal_distribution<double> normal;
    std::vector<double> values(elements);
    for (double& value : values) value = normal(random_);
    return floats(type, values);
  }
  std::vector<std::byte> data(elements * type.bytes);
  for (std::size_t i = 0; i < elements; ++i) {
    const std::uint64_t value = random_() % (type.kind == Kind::kBool ? 2 : 8);
    data[i * type.bytes] = static_cast<std::byte>(value);
  }
  return data;
}

void PtxArguments::check(const Function& function, const std::string& entry,
                         const std::string& ptx) {
  const std::vector<FunctionParameter> parameters = function.parameters();
  const auto describe = [&](std::size_t p) {
    return fmt::format(".{} {}, {}:{}", parameters[p].type, parameters[p].name, ptx,
                       parameters[p].line);
  };
  for (std::size_t i = 0; i < std::min(values_.size(), parameters.size()); ++i) {
    Value& value = values_[i];
    if (value.kind == Value::Kind::kMap && parameters[i].bytes == sizeof(std::uint64_t)) {
      // The map is passed by address.
      Buffer holder{.name = fmt::format("arg{}.map", i)};
      holder.data.resize(TensorMap::kBytes);
      holder.map = value.maps[0].second;
      value = add_buffer(std::move(holder));
    }
    if (!value.fields.empty() && value.bytes.size() != parameters[i].bytes) {
      // Since CUDA 13 cuda.h aligns its maps to more.
      value = struct_of(std::move(value.fields), TensorMap::kBytes);
    }
    const std::string place = fmt::format("--arg {}", i);
    const std::size_t bytes = value.bytes.size();
    if (bytes != parameters[i].bytes) {
      throw_invalid(place, "{} {} {} byte{}; parameter {} of '{}' has {} ({})", value.what,
                    value.what == "bytes" ? "have" : "has", bytes, bytes == 1 ? "" : "s", i,
                    one_line(entry), parameters[i].bytes, describe(i));
    }
    const bool is_number = value.kind < Value::Kind::kBytes;
    if (!takes(parameters[i].type, value.kind == Value::Kind::kFloat, is_number, bytes)) {
      throw_invalid(place, "found {}; parameter {} of '{}' is {} ({})", value.what, i,
                    one_line(entry), parameters[i].type.starts_with('f') ? "a float" : "an integer",
                    describe(i));
    }
  }
  if (values_.size() == parameters.size()) return;
  std::string next;
  if (values_.size() < parameters.size()) {
    next = fmt::format("; parameter {} is missing ({})", values_.size(), describe(values_.size()));
  }
  throw_invalid("--arg", "'{}' takes {} parameter{}, not {}{}", one_line(entry), parameters.size(),
                parameters.size() == 1 ? "" : "s", values_.size(), next);
}

void PtxArguments::allocate(Device& device) {
  for (Buffer& buffer : buffers_) {
    buffer.memory = device.allocate(0, buffer.data.size());
    name_memory(device, *buffer.memory, buffer.data.size(), buffer.name);
  }
  const auto address_at = [&](const Place& place) {
    return buffers_[place.buffer].memory->address() + place.offset;
  };
  const auto put = [&](std::vector<std::byte>& bytes, std::size_t offset, const Place& place) {
    const std::uint64_t address = address_at(place);
    std::memcpy(bytes.data() + offset, &address, sizeof(address));
  };
  const auto encode = [&](std::vector<std::byte>& bytes, std::size_t offset, Map map) {
    map.map.address = address_at(map.place);
    const auto encoded = map.map.encoded();
    std::copy(encoded.begin(), encoded.end(), bytes.data() + offset);
  };
  for (Buffer& buffer : buffers_) {
    for (std::size_t i = 0; i < buffer.addressed.size(); ++i) {
      put(buffer.data, i * sizeof(std::uint64_t), buffer.addressed[i]);
    }
    if (buffer.map) encode(buffer.data, 0, *buffer.map);
  }
  for (Value& value : values_) {
    for (const auto& [offset, place] : value.addresses) put(value.bytes, offset, place);
    for (const auto& [offset, map] : value.maps) encode(value.bytes, offset, map);
  }
}

void PtxArguments::fill(Stream& stream) const {
  for (const Buffer& buffer : buffers_) {
    const std::uint64_t address = buffer.memory->address();
    if (buffer.filled) {
      stream.copy_from_host(address, buffer.data.data(), buffer.data.size());
      continue;
    }
    // A buffer that nobody wrote holds NaNs (or -1), the same in every run. Not by way of a
    // stream: the checks would take the bytes for written. An address of the cpu device is one of
    // this process.
    std::memset(reinterpret_cast<void*>(address), 0xff, buffer.data.size());
  }
}

std::vector<const void*> PtxArguments::pointers() const {
  return mapped<const void*>(values_, [](const Value& value) { return value.bytes.data(); });
}

void PtxArguments::write(Stream& stream, const std::string& directory) {
  std::map<std::string, FileTensor, std::less<>> tensors;
  for (const Buffer& buffer : buffers_) {
    if (buffer.type == nullptr) continue;
    FileTensor tensor{std::string(buffer.type->file_name), buffer.shape,
                      std::vector<std::byte>(buffer.data.size())};
    stream.copy_to_host(tensor.data.data(), buffer.memory->address(), tensor.data.size());
    stream.synchronize();
    tensors.emplace(buffer.name, std::move(tensor));
  }
  write_safetensors(std::filesystem::path(directory) / "buffers.safetensors", tensors);
}

}  // namespace braid::cli
