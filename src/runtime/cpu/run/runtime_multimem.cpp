// multimem instructions: one helper for each access. Of the PTX manual's freedoms the cpu device
// takes these: a reduction goes over the ranks in their order, and each element on its own.

#include <array>
#include <cstring>

#include "runtime/cpu/run/lanes.h"
#include "runtime/cpu/run/warp_helpers.h"

namespace braid::cpu {
namespace {

/// A value of up to 8 bytes, as it is in memory.
std::uint64_t word_at(const std::uint8_t* bytes, std::uint32_t size) {
  std::uint64_t word = 0;
  std::memcpy(&word, bytes, size);
  return word;
}

/// One element of each rank.
std::uint64_t combine_element(MultimemCode code, std::uint64_t old, std::uint64_t a) {
  return with_word(code.bits / 8U, [&]<class T>() -> std::uint64_t {
    return combine(code.op, code.kind, static_cast<T>(old), static_cast<T>(a), T{});
  });
}

/// 16-bit floats are summed up in f32, where the instruction says so, and rounded once.
void reduce_lane(MultimemCode code, const MulticastPlaces& places, std::size_t lane,
                 std::uint8_t* values) {
  const std::uint32_t size = code.bits / 8U;
  const std::uint32_t elements = code.bytes() / size;
  std::array<float, 8> sums{};
  for (std::size_t r = 0; r < places.size(); ++r) {
    std::array<std::uint8_t, 16> bytes{};
    load_lane(places[r][lane], bytes.data(), code.bytes());
    for (std::uint32_t e = 0; e < elements; ++e) {
      const std::uint64_t value = word_at(bytes.data() + e * size, size);
      if (code.wide) {
        const float x = widen(code.kind, static_cast<std::uint16_t>(value));
        sums[e] = r == 0 ? x : sums[e] + x;
        continue;
      }
      const std::uint64_t result =
          r == 0 ? value : combine_element(code, word_at(values + e * size, size), value);
      std::memcpy(values + e * size, &result, size);
    }
  }
  for (std::uint32_t e = 0; code.wide && e < elements; ++e) {
    const std::uint16_t sum = narrow(code.kind, sums[e]);
    std::memcpy(values + e * size, &sum, sizeof sum);
  }
}

void store_lane_everywhere(MultimemCode code, const MulticastPlaces& places, std::size_t lane,
                           const std::uint8_t* values) {
  for (const auto& place : places) store_lane(place[lane], values, code.bytes());
}

void add_lane_everywhere(MultimemCode code, const MulticastPlaces& places, std::size_t lane,
                         const std::uint8_t* values) {
  const std::uint32_t size = code.bits / 8U;
  for (const auto& place : places) {
    for (std::uint32_t at = 0; at < code.bytes(); at += size) {
      const std::uint64_t a = word_at(values + at, size);
      with_word(size, [&]<class T>() {
        update<T>(place[lane] + at, [&](T old) {
          return static_cast<T>(combine_element(code, old, static_cast<T>(a)));
        });
      });
    }
  }
}

/// `values`: in scratch memory, what is loaded, or stored.
void multimem(Warp& warp, std::uint8_t* values, const std::uint64_t* addresses, std::uint32_t mask,
              MultimemCode code, AccessCode access, std::uint32_t line, std::uint32_t place) {
  const MulticastPlaces& places =
      warp.runner->multicast_places(warp, addresses, mask, access, line, place);
  const std::size_t element = code.bytes() / code.count;
  const auto parts = [&](std::size_t lane, const auto& move) {
    for (std::size_t k = 0; k < code.count; ++k)
      move(k * element, k * kElementStride + lane * element);
  };
  for_each_lane(mask, [&](int l) {
    const auto lane = static_cast<std::size_t>(l);
    std::array<std::uint8_t, 16> whole{};
    if (code.what == MultimemCode::kLoadReduce) {
      reduce_lane(code, places, lane, whole.data());
      parts(lane, [&](std::size_t from, std::size_t to) {
        std::memcpy(values + to, whole.data() + from, element);
      });
      return;
    }
    parts(lane, [&](std::size_t to, std::size_t from) {
      std::memcpy(whole.data() + to, values + from, element);
    });
    if (code.what == MultimemCode::kStore) {
      store_lane_everywhere(code, places, lane, whole.data());
    } else {
      add_lane_everywhere(code, places, lane, whole.data());
    }
  });
}

}  // namespace

std::vector<RuntimeHelper> multimem_helpers() { return {{"multimem", multimem}}; }

}  // namespace braid::cpu
