// tcgen05: tensor memory, and what moves to it and from it. Moves are done when they are issued,
// which is one of the orders that a GPU has.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "runtime/cpu/run/lanes.h"
#include "runtime/cpu/run/matrix_reader.h"
#include "runtime/cpu/run/tensor_memory.h"
#include "runtime/cpu/run/tensor_memory_helpers.h"
#include "runtime/cpu/run/warp_helpers.h"

namespace braid::cpu {

void refuse_tensor(Warp& warp, const char* kind, std::string message, std::uint32_t line) {
  warp.message = std::move(message);
  warp.runner->fail(warp, kind, warp.message.c_str(), line);
}

void check_columns(Warp& warp, const TensorMemory& memory, std::string_view what,
                   std::uint32_t first, std::uint32_t columns, std::uint32_t line) {
  const auto missing = memory.missing(first, columns);
  if (!missing) return;
  refuse_tensor(
      warp, "bounds",
      fmt::format("{} is at columns {} to {} of tensor memory, of which {} is not allocated", what,
                  first, first + columns - 1, *missing),
      line);
}

void check_tensor_lanes(Warp& warp, const TensorMemory& memory, std::uint32_t lane,
                        std::uint32_t column, std::uint32_t lanes, AccessCode::Kind kind,
                        std::uint32_t line) {
  warp.runner->check_async_access(warp, reinterpret_cast<std::uint64_t>(memory.at(lane, column)),
                                  std::size_t{lanes} * 4, kind, line);
}

namespace {

TensorMemory& memory_of(Warp& warp) { return warp.runner->tensor_memory(warp.cluster_rank); }

/// Whether the warp does it; all its lanes must.
bool whole_warp(Warp& warp, std::uint32_t lanes, std::uint32_t line) {
  if (lanes == 0) return false;
  if (lanes != ~0U) {
    refuse_tensor(warp, "barrier", "a tcgen05 instruction in divergent code of a warp", line);
  }
  return true;
}

void check_count(Warp& warp, std::uint32_t columns, std::uint32_t line) {
  if (columns >= TensorMemory::kUnit && columns <= TensorMemory::kColumns &&
      std::has_single_bit(columns)) {
    return;
  }
  refuse_tensor(
      warp, "bounds",
      fmt::format("{} columns of tensor memory: expected a power of two from 32 to 512", columns),
      line);
}

void tensor_alloc(Warp& warp, std::uint64_t to, std::uint32_t columns, std::uint32_t lanes,
                  std::uint32_t line) {
  if (!whole_warp(warp, lanes, line)) return;
  check_count(warp, columns, line);
  TensorMemory& memory = memory_of(warp);
  if (memory.closed()) {
    refuse_tensor(warp, "barrier",
                  "a tcgen05.alloc behind the block's tcgen05.relinquish_alloc_permit", line);
  }
  const auto first = memory.take(columns);
  if (!first) {
    refuse_tensor(warp, "barrier",
                  fmt::format("a tcgen05.alloc of {} columns would wait: {} of 512 are allocated",
                              columns, memory.taken()),
                  line);
  }
  BlockRunner::took_tensor_memory(warp, line);
  if (Sanitizer* s = warp.runner->sanitizer()) {
    const std::uint64_t* const places = &to;
    warp.runner->check_access(warp, {&places, 1}, 1, {.kind = AccessCode::kStore, .bytes = 4},
                              line);
    s->show_async(warp.check);
    s->add_memory(warp.check.launch->stream->rank,
                  reinterpret_cast<std::uint64_t>(memory.at(0, *first)),
                  std::size_t{columns} * TensorMemory::kColumnBytes, "tensor memory", false);
  }
  *at<std::uint32_t>(to) = *first;
}

void tensor_dealloc(Warp& warp, std::uint32_t address, std::uint32_t columns, std::uint32_t lanes,
                    std::uint32_t line) {
  if (!whole_warp(warp, lanes, line)) return;
  check_count(warp, columns, line);
  TensorMemory& memory = memory_of(warp);
  if (Sanitizer* s = warp.runner->sanitizer(); s != nullptr && !memory.missing(address, columns)) {
    // Whatever uses it must be over.
    s->start_tensor(warp.check, Sanitizer::kTensorStores, 0, line);
    for (std::uint32_t column = address; column < address + columns; ++column) {
      check_tensor_lanes(warp, memory, 0, column, TensorMemory::kLanes, AccessCode::kTensorTo,
                         line);
    }
    s->tensor_waited(warp.check, Sanitizer::kTensorStores);
  }
  if (!memory.give_back(address, columns)) {
    refuse_tensor(
        warp, "bounds",
        fmt::format("a tcgen05.dealloc of {} columns at {:#x}, where no tcgen05.alloc of so "
                    "many began",
                    columns, address),
        line);
  }
  if (Sanitizer* s = warp.runner->sanitizer()) {
    s->remove_memory(reinterpret_cast<std::uint64_t>(memory.at(0, address)));
  }
}

void tensor_relinquish(Warp& warp, std::uint32_t lanes, std::uint32_t line) {
  if (whole_warp(warp, lanes, line)) memory_of(warp).close();
}

// --- tcgen05.ld and tcgen05.st ---

/// Where thread `t` of a warp has its register `r`, from the start of what is moved.
TensorPlace place_of(const TensorMoveCode& code, std::uint32_t t, std::uint32_t r) {
  TensorPlace place{0};
  switch (code.shape) {
    case TensorMoveCode::k32x32b:
      place.lane = t;
      place.column = r;
      break;
    case TensorMoveCode::k16x64b:
      place.lane = t / 4 + t % 2 * 8;
      place.column = 2 * r + t / 2 % 2;
      break;
    case TensorMoveCode::k16x128b:
      place.lane = t / 4 + r % 2 * 8;
      place.column = r / 2 * 4 + t % 4;
      break;
    case TensorMoveCode::k16x256b:
      place.lane = t / 4 + r / 2 % 2 * 8;
      place.column = r / 4 * 8 + t % 4 * 2 + r % 2;
      break;
    case TensorMoveCode::k16x32bx2:
      place.lane = t % 16;
      place.column = r;
      break;
  }
  if (code.halves) place.column *= 2;
  if (code.shape == TensorMoveCode::k16x32bx2) place.column += t / 16 * code.apart;
  return place;
}

std::uint32_t columns_of(const TensorMoveCode& code) {
  constexpr std::uint32_t kTimes[] = {1, 2, 2, 2, 1};
  return kTimes[code.shape] * code.registers * (code.halves ? 2 : 1);
}

/// Checks the columns that a warp moves, and tells the sanitizer of them.
void check_move(Warp& warp, const TensorMemory& memory, const TensorMoveCode& code,
                const TensorPlace& from, std::uint32_t line) {
  const bool wide = code.shape == TensorMoveCode::k32x32b;
  const std::uint32_t own = warp.warp % 4 * 32;
  if (from.lane != own && (wide || from.lane != own + 16)) {
    refuse_tensor(warp, "bounds",
                  fmt::format("an address in lane {} of tensor memory: warp {} of the block may {}",
                              from.lane, warp.warp,
                              wide ? fmt::format("name lane {} alone", own)
                                   : fmt::format("name lane {} or {}", own, own + 16)),
                  line);
  }
  const bool twice = code.shape == TensorMoveCode::k16x32bx2;
  const std::uint32_t columns = columns_of(code);
  const char* const what = code.stores ? "a tcgen05.st" : "a tcgen05.ld";
  for (std::uint32_t part = 0; part < (twice ? 2U : 1U); ++part) {
    check_columns(warp, memory, what, from.column + part * code.apart, columns, line);
  }
  Sanitizer* const s = warp.runner->sanitizer();
  if (s == nullptr) return;
  s->start_tensor(warp.check, code.stores ? Sanitizer::kTensorStores : Sanitizer::kTensorLoads, 0,
                  line);
  for (std::uint32_t part = 0; part < (twice ? 2U : 1U); ++part) {
    for (std::uint32_t c = 0; c < columns; ++c) {
      check_tensor_lanes(warp, memory, from.lane, from.column + part * code.apart + c,
                         wide ? 32 : 16,
                         code.stores ? AccessCode::kTensorTo : AccessCode::kTensorFrom, line);
    }
  }
}

/// `registers`: of 32 lanes each, one behind the other.
void tensor_move(Warp& warp, std::uint32_t* registers, std::uint32_t address, TensorMoveCode code,
                 std::uint32_t lanes, std::uint32_t line) {
  if (!whole_warp(warp, lanes, line)) return;
  const TensorMemory& memory = memory_of(warp);
  const TensorPlace from(address);
  check_move(warp, memory, code, from, line);
  for (std::uint32_t r = 0; r < code.registers; ++r, registers += 32) {
    if (code.shape == TensorMoveCode::k32x32b && !code.halves) {
      std::uint32_t* const words = memory.at(from.lane, from.column + r);
      std::memcpy(code.stores ? words : registers, code.stores ? registers : words, 128);
      continue;
    }
    for (std::uint32_t t = 0; t < 32; ++t) {
      const TensorPlace place = place_of(code, t, r);
      std::uint32_t& word = *memory.at(from.lane + place.lane, from.column + place.column);
      if (!code.halves) {
        if (code.stores) {
          word = registers[t];
        } else {
          registers[t] = word;
        }
        continue;
      }
      std::uint32_t& next = *(&word + TensorMemory::kLanes);
      if (code.stores) {
        word = registers[t] & 0xffffU;
        next = registers[t] >> 16U;
      } else {
        registers[t] = (word & 0xffffU) | next << 16U;
      }
    }
  }
}

// --- tcgen05.cp, and the end of what was issued ---

/// Calls body(lane) for the lanes that a row of the source goes to.
template <class Body>
void for_each_target(const TensorCopyCode& code, std::uint32_t row, const Body& body) {
  if (code.spread == TensorCopyCode::kOnce) return body(row);
  for (std::uint32_t quarter = 0; quarter < 4; ++quarter) {
    const std::uint32_t from = code.spread == TensorCopyCode::kWarps4    ? 0
                               : code.spread == TensorCopyCode::kWarps02 ? quarter % 2
                                                                         : quarter / 2;
    if (row / 32 == from) body(quarter * 32 + row % 32);
  }
}

/// Of one lane, behind start_tensor(), in a block of the cluster.
void copy_tensor(Warp& warp, std::uint32_t block, std::uint32_t address, std::uint64_t descriptor,
                 const TensorCopyCode& code, std::uint32_t line, std::uint32_t place) {
  const TensorMemory& memory = warp.runner->tensor_memory(block);
  const TensorPlace to(address);
  const SharedMatrix matrix =
      tensor_matrix(warp, "the source", descriptor, false, code.parts, line);
  const std::uint32_t columns = 4U * code.parts;
  const std::uint32_t height = code.spread == TensorCopyCode::kOnce ? code.rows : 128;
  if (to.lane + height > TensorMemory::kLanes) {
    refuse_tensor(
        warp, "bounds",
        fmt::format("a tcgen05.cp to {} lanes of tensor memory, from lane {} on", height, to.lane),
        line);
  }
  check_columns(warp, memory, "a tcgen05.cp", to.column, columns, line);
  for (std::uint32_t c = 0; c < columns && warp.runner->sanitizer() != nullptr; ++c) {
    check_tensor_lanes(warp, memory, to.lane, to.column + c, height, AccessCode::kTensorTo, line);
  }
  MatrixReader reader(warp, warp.cluster_windows[block], matrix, AccessCode::kTensorFrom, line,
                      place);
  const std::uint32_t count = std::min<std::uint32_t>(code.rows, 8);
  for (std::uint32_t mn = 0; mn * 8 < code.rows; ++mn) {
    for (std::uint32_t part = 0; part < code.parts; ++part) {
      MatrixReader::Rows rows;
      if (!reader.block(mn, part, rows, count)) continue;
      for (std::uint32_t r = 0; r < count; ++r) {
        std::array<std::uint32_t, 4> words;
        std::memcpy(words.data(), &rows[r], sizeof words);
        for_each_target(code, 8 * mn + r, [&](std::uint32_t lane) {
          for (std::uint32_t c = 0; c < 4; ++c) {
            *memory.at(to.lane + lane, to.column + 4 * part + c) = words[c];
          }
        });
      }
    }
  }
  check_tensor_inside(warp, "the source", reader.outside(), line);
}

void tensor_copy(Warp& warp, const std::uint32_t* addresses, const std::uint64_t* descriptors,
                 std::uint32_t mask, TensorCopyCode code, std::uint32_t line, std::uint32_t place) {
  for_each_lane(mask, [&](int l) {
    const auto lane = static_cast<std::uint32_t>(l);
    if (Sanitizer* s = warp.runner->sanitizer()) {
      s->start_tensor(warp.check, Sanitizer::kTensorLanes + lane, lane, line);
    }
    const TensorPair pair(warp, code.pair != 0, line);
    for (std::uint32_t block = 0; block < pair.blocks; ++block) {
      copy_tensor(warp, pair.first + block, addresses[l], descriptors[l], code, line, place);
    }
  });
}

/// `blocks`: null, or those of the cluster whose mbarriers have an arrival, a bit each.
void tensor_commit(Warp& warp, const std::uint64_t* barriers, const std::uint32_t* blocks,
                   std::uint32_t mask, std::uint32_t line) {
  for_each_lane(mask, [&](int l) {
    const auto lane = static_cast<std::uint32_t>(l);
    if (Sanitizer* s = warp.runner->sanitizer()) {
      s->start_tensor(warp.check, Sanitizer::kTensorLanes + lane, lane, line);
    }
    if (blocks == nullptr) return arrive_later(warp, l, barriers[l], line);
    if (blocks[l] >> warp.cluster_size != 0) {
      refuse_tensor(warp, "bounds", "a multicast to blocks that the cluster does not have", line);
    }
    const std::uint64_t offset = barriers[l] - reinterpret_cast<std::uint64_t>(warp.shared);
    for_each_lane(blocks[l], [&](int block) {
      arrive_later(warp, l, reinterpret_cast<std::uint64_t>(warp.cluster_windows[block]) + offset,
                   line);
    });
  });
}

void check_tensor_wait(Warp& warp, std::uint32_t stores) {
  warp.runner->sanitizer()->tensor_waited(
      warp.check, stores != 0 ? Sanitizer::kTensorStores : Sanitizer::kTensorLoads);
}

}  // namespace

TensorPair::TensorPair(Warp& warp, bool both, std::uint32_t line)
    : first(both ? warp.cluster_rank & ~1U : warp.cluster_rank), blocks(both ? 2 : 1) {
  if (first + blocks <= warp.cluster_size) return;
  refuse_tensor(warp, "barrier", "cta_group::2 in a block that has no other one in its cluster",
                line);
}

SharedMatrix tensor_matrix(Warp& warp, std::string_view name, std::uint64_t descriptor,
                           bool exchanged, std::uint32_t parts, std::uint32_t line) {
  const auto refuse = [&](const char* kind, std::string_view why) {
    refuse_tensor(warp, kind, fmt::format("the descriptor of {}, {:#x}, {}", name, descriptor, why),
                  line);
  };
  constexpr std::uint64_t kVersion = std::uint64_t{7} << 46;
  constexpr std::uint64_t kAbsolute = std::uint64_t{1} << 52;
  if ((descriptor & kVersion) != SharedMatrix::kTensorVersion) {
    refuse("bounds", "has not 1 in bits 46 to 48");
  }
  if ((descriptor & kAbsolute) != 0) refuse("bounds", "has an absolute stride, which is not there");
  if ((descriptor & ~(SharedMatrix::kTensorFields | kVersion)) != 0) {
    refuse("bounds", "has bits that no field has");
  }
  const SharedMatrix matrix = SharedMatrix::of_tensor(descriptor, exchanged);
  if (matrix.width() == 0) {
    refuse("bounds", "has a swizzle that is not there: modes 0, 2, 4 and 6 are");
  }
  if (matrix.leaves_its_rows(parts)) {
    refuse("misaligned", "is misaligned: what is read of k leaves a row of the swizzle");
  }
  return matrix;
}

void check_tensor_inside(Warp& warp, std::string_view name, std::uint32_t outside,
                         std::uint32_t line) {
  if (outside == 0) return;
  refuse_tensor(warp, "bounds",
                fmt::format("the descriptor of {} reaches {:#x}, and the block has {:#x} bytes of "
                            "shared memory",
                            name, outside, warp.total_shared),
                line);
}

std::vector<RuntimeHelper> tensor_memory_helpers() {
  return {{"tensor_alloc", tensor_alloc},
          {"tensor_dealloc", tensor_dealloc},
          {"tensor_relinquish", tensor_relinquish},
          {"tensor_move", tensor_move},
          {"tensor_copy", tensor_copy},
          {"tensor_commit", tensor_commit},
          {"check_tensor_wait", check_tensor_wait},
          {"check_tensor_fence", kEntry<&Sanitizer::tensor_fence_after>}};
}

}  // namespace braid::cpu
