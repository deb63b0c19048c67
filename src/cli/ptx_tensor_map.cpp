// tensormap:BUFFER:dims:strides:box:swizzle and
// im2col:BUFFER:dims:strides:column:lower:upper:swizzle, arguments of `braid ptx`.

#include <algorithm>
#include <array>

#include "cli/common.h"
#include "cli/ptx_arguments.h"
#include "ir/fail.h"
#include "ir/text.h"

namespace braid::cli {
namespace {

TensorMap::Swizzle parse_swizzle(std::string_view text, const std::string& place) {
  using Swizzle = TensorMap::Swizzle;
  for (const Swizzle swizzle : {Swizzle::kNone, Swizzle::k32, Swizzle::k64, Swizzle::k128}) {
    if (text == TensorMap::name_of(swizzle)) return swizzle;
  }
  throw_invalid(place, "found swizzle {}; expected none, 32B, 64B or 128B", quote(text));
}

}  // namespace

/// "64x32". Returns how many there are.
template <class T, std::size_t kMost>
std::size_t PtxArguments::parse_extents(std::string_view text, std::string_view what,
                                        std::array<T, kMost>& out) const {
  const std::string_view whole = text;
  std::size_t count = 0;
  do {
    if (count == out.size() || !parse_number(next_part(text, 'x'), &out[count++])) {
      throw_invalid(place_, "found {} {}; expected 1 to {} numbers with x between", what,
                    quote(whole), out.size());
    }
  } while (!text.empty());
  return count;
}

/// The buffer that a spec begins with, which goes from its front: a new one, or the name of one of
/// an argument before.
PtxArguments::Place PtxArguments::parse_mapped(std::string_view& spec, const std::string& name) {
  const std::string_view first = spec.substr(0, spec.find(':'));
  if (first.starts_with("arg")) {
    next_part(spec, ':');
    return parse_place(first);
  }
  // FILE:TENSOR, or a kind, a dtype and a number of elements.
  const int parts = first.ends_with(".safetensors") ? 2 : 3;
  std::size_t end = 0;
  for (int p = 0; p < parts; ++p) end = std::min(spec.find(':', p == 0 ? 0 : end + 1), spec.size());
  const std::string_view buffer = spec.substr(0, end);
  spec.remove_prefix(std::min(end + 1, spec.size()));
  const Value value = parse(buffer, name);
  if (value.kind != Value::Kind::kAddress) {
    throw_invalid(place_, "found {}; expected a buffer", quote(buffer));
  }
  return value.addresses[0].second;
}

/// Channels and pixels of a column, and the corners of the pixels at which it begins. Returns how
/// many dims these have.
std::size_t PtxArguments::parse_columns(std::string_view& spec, TensorMap& map) const {
  std::array<std::uint32_t, 2> column{};
  const std::string_view extents = next_part(spec, ':');
  if (parse_extents(extents, "extents of a column", column) != 2 || column[1] == 0) {
    throw_invalid(place_, "found a column {}; expected its channels and pixels, as 64x32",
                  quote(extents));
  }
  map.box[0] = column[0];
  map.pixels = column[1];
  const std::size_t lower = parse_extents(next_part(spec, ':'), "a lower corner", map.lower);
  const std::size_t upper = parse_extents(next_part(spec, ':'), "an upper corner", map.upper);
  if (lower != upper) {
    throw_invalid(place_, "found corners of {} and {} dims; expected as many", lower, upper);
  }
  return lower;
}

TensorMap PtxArguments::parse_boxes(std::string_view spec, const Buffer& buffer,
                                    bool columns) const {
  TensorMap map;
  if (!buffer.type->in_map) {
    throw_invalid(place_, "found a buffer of {}; no tensor map has such elements",
                  buffer.type->name);
  }
  map.type = *buffer.type->in_map;
  map.rank = static_cast<std::uint32_t>(parse_extents(next_part(spec, ':'), "dims", map.dims));
  const std::string_view strides = next_part(spec, ':');
  std::size_t found = map.rank - 1;
  if (!strides.empty()) {
    found = parse_extents(strides, "strides", map.strides);
  } else {
    std::uint64_t stride = buffer.type->bytes;
    for (std::size_t d = 0; d < found; ++d) {
      if (__builtin_mul_overflow(stride, map.dims[d], &stride)) stride = UINT64_MAX;
      map.strides[d] = stride;
    }
  }
  // A column has corners for the dims between channels and images.
  const std::size_t all = columns ? std::max(map.rank, 2U) - 2 : map.rank;
  const std::size_t boxed =
      columns ? parse_columns(spec, map) : parse_extents(next_part(spec, ':'), "box", map.box);
  map.swizzle = parse_swizzle(next_part(spec, ':'), place_);
  map.nan_fill = spec == "nan";
  if (!spec.empty() && !map.nan_fill) {
    throw_invalid(place_, "found {} behind the swizzle; expected nan or nothing", quote(spec));
  }
  if (found != map.rank - 1 || boxed != all) {
    throw_invalid(place_, "found {} strides and {} of {} for {} dims; expected {} and {}", found,
                  columns ? "corners" : "a box", boxed, map.rank, map.rank - 1, all);
  }
  return map;
}

PtxArguments::Value PtxArguments::parse_tensor_map(std::string_view spec, const std::string& name,
                                                   bool columns) {
  const Place place = parse_mapped(spec, name);
  const Buffer& buffer = buffers_[place.buffer];
  const TensorMap map = parse_boxes(spec, buffer, columns);
  if (const auto problem = map.problem()) throw_invalid(place_, *problem);
  if (place.offset % 16 != 0) {
    throw_invalid(place_, "found an offset of {}; expected a multiple of 16", place.offset);
  }
  const std::size_t room = buffer.data.size() - place.offset;
  if (map.tensor_bytes() > room) {
    throw_invalid(place_, "the tensor has {} bytes; expected at most the buffer's {}",
                  map.tensor_bytes(), room);
  }
  Value value{.what = "a tensor map", .kind = Value::Kind::kMap};
  value.bytes.resize(TensorMap::kBytes);
  value.align = TensorMap::kAlign;
  value.maps = {{0, {place, map}}};
  return value;
}

}  // namespace braid::cli
