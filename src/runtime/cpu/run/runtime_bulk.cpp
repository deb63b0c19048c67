// Bulk copies. They are done at once: on a GPU they may be over at any time before their wait.

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "ir/non_copyable.h"
#include "runtime/cpu/run/bulk_copy.h"
#include "runtime/cpu/run/lanes.h"
#include "runtime/cpu/run/warp_helpers.h"

namespace braid::cpu {
namespace {

/// What a reduction does to the elements of a tensor; no bits where it cannot.
struct Elements {
  AtomicKind kind = AtomicKind::kUnsigned;
  std::uint8_t bits = 0;
};
Elements reduced_elements(TensorMap::Type type, AtomicOp op) {
  using Type = TensorMap::Type;
  const bool adds = op == AtomicOp::kAdd;
  const bool orders = op == AtomicOp::kMin || op == AtomicOp::kMax;
  const bool counts = op == AtomicOp::kInc || op == AtomicOp::kDec;
  switch (type) {
    case Type::kU32:
      return {AtomicKind::kUnsigned, 32};
    case Type::kU64:
      return {AtomicKind::kUnsigned, static_cast<std::uint8_t>(counts ? 0 : 64)};
    case Type::kS32:
      return {AtomicKind::kSigned, static_cast<std::uint8_t>(counts ? 0 : 32)};
    case Type::kS64:
      return {AtomicKind::kSigned, static_cast<std::uint8_t>(counts || adds ? 0 : 64)};
    case Type::kF16:
      return {AtomicKind::kHalf, static_cast<std::uint8_t>(adds || orders ? 16 : 0)};
    case Type::kBf16:
      return {AtomicKind::kBfloat, static_cast<std::uint8_t>(adds || orders ? 16 : 0)};
    case Type::kF32:
      return {AtomicKind::kFloat, static_cast<std::uint8_t>(adds ? 32 : 0)};
    default:
      return {};
  }
}

/// Counts stretches of memory in pieces of up to 16 bytes, 32 of them as a warp's access. An atomic
/// one is of elements of so many bytes.
class Requests : NonCopyable {
 public:
  Requests(Warp& warp, AccessCode::Kind kind, std::uint32_t place, std::uint32_t element = 1)
      : warp_(warp), kind_(kind), place_(place), element_(element) {}
  ~Requests() { flush(); }

  void add(std::uint64_t address, std::uint32_t bytes) {
    if (place_ == kNotCounted) return;
    for (std::uint32_t done = 0; done < bytes; done += 16) {
      const std::uint32_t size = std::min(bytes - done, 16U);
      if (size != size_ || count_ == addresses_.size()) flush();
      size_ = size;
      addresses_[count_++] = address + done;
    }
  }

 private:
  void flush() {
    if (count_ == 0) return;
    const AccessCode code{.kind = kind_, .bytes = static_cast<std::uint8_t>(size_)};
    const auto lanes = static_cast<std::uint32_t>((std::uint64_t{1} << count_) - 1);
    if (kind_ == AccessCode::kAtomic) {
      // The access counts a piece as one.
      LineTally& tally = warp_.runner->counter().tally().lines[place_];
      tally.atomics += count_ * (size_ / element_ - 1);
    }
    warp_.runner->count_access(warp_, addresses_.data(), lanes, code, place_);
    count_ = 0;
  }

  Warp& warp_;
  AccessCode::Kind kind_;
  std::uint32_t place_, element_;
  std::uint32_t size_ = 0;
  std::size_t count_ = 0;
  std::array<std::uint64_t, 32> addresses_{};
};

/// The answer of clusterlaunchcontrol.try_cancel: no launch was canceled.
alignas(16) constexpr std::array<std::uint8_t, 16> kNotCanceled{};

/// The copy of one lane. Nothing here has a destructor that must run: a fault leaves the fiber.
class BulkCopy {
 public:
  BulkCopy(Warp& warp, BulkCode code, const BulkOperands& operands, int lane, std::uint32_t line,
           std::uint32_t place)
      : warp_(warp), code_(code), lane_(lane), line_(line), place_(place) {
    const auto l = static_cast<std::size_t>(lane);
    const bool stores = code.what == BulkCode::kStore;
    shared_ = stores ? operands.from[l] : operands.to[l];
    global_ = stores ? operands.to[l] : operands.from[l];
    barrier_ = operands.barriers[l];
    blocks_ = code.multicast || code.masked ? operands.blocks[l] : 0;
    bytes_ = operands.sizes[l];
    if (code.what == BulkCode::kAnswer) {
      global_ = reinterpret_cast<std::uint64_t>(kNotCanceled.data());
      bytes_ = kNotCanceled.size();
    }
    for (std::size_t d = 0; d < TensorMap::kMaxRank; ++d) {
      coordinates_[d] = operands.coordinates[d][l];
    }
    for (std::size_t d = 0; d < offsets_.size(); ++d) offsets_[d] = operands.offsets[d][l];
  }

  void run() {
    if (code_.rank != 0) read_map();
    check();
    if (code_.what == BulkCode::kStore) return code_.everywhere ? store_everywhere() : store();
    start(barrier_);
    if (code_.what != BulkCode::kAnswer) {
      each_row([&](const BulkRow& row) {
        judge(row.global + row.first, row.last - row.first, AccessCode::kBulkFrom);
      });
      count_global(AccessCode::kLoad);
    }
    if (!code_.multicast) return load(shared_, barrier_);
    for (std::uint32_t left = blocks_; left != 0; left &= left - 1) {
      const std::uint64_t window = window_of(std::countr_zero(left));
      load(window + offset_, window + (barrier_ - start_));
    }
  }

 private:
  [[noreturn]] void fail(const char* kind, const char* message) {
    warp_.runner->fail(warp_, kind, message, line_);
  }
  [[nodiscard]] std::uint64_t window_of(int block) const {
    return reinterpret_cast<std::uint64_t>(warp_.cluster_windows[block]);
  }

  void read_map() {
    if (global_ % TensorMap::kAlign != 0) {
      fail("misaligned", "a tensor map at an address that is no multiple of 64");
    }
    map_ = TensorMap::decode(at<const std::uint8_t>(global_));
    if (auto problem = map_.problem()) {
      warp_.message = "no tensor map: " + *problem;
    } else if (map_.rank != code_.rank) {
      warp_.message = "a tensor map of " + std::to_string(map_.rank) + " dims, not of " +
                      std::to_string(code_.rank);
    } else if ((map_.pixels != 0) != (code_.part == BulkCode::kColumn)) {
      warp_.message = map_.pixels != 0 ? "a tensor map of columns, for a copy of tiles"
                                       : "a tensor map of tiles, for a copy of columns";
    } else {
      const std::uint64_t row = map_.box[0] * map_.element_bytes();
      bytes_ =
          static_cast<std::uint32_t>(code_.part == BulkCode::kRows ? 4 * row : map_.box_bytes());
      return;
    }
    fail("tensormap", warp_.message.c_str());
  }

  /// Checks the PTX manual's rules for the operands, and finds the shared memory.
  void check() {
    const bool tensor = code_.rank != 0;
    if (!tensor && (bytes_ % 16 != 0 || shared_ % 16 != 0 || global_ % 16 != 0)) {
      fail("misaligned", "a bulk copy of no whole 16 bytes, or not aligned to them");
    }
    const int block = block_of(shared_);
    start_ = block < 0 ? 0 : window_of(block);
    offset_ = static_cast<std::uint32_t>(shared_ - start_);
    if (block < 0 || bytes_ > warp_.total_shared - offset_) {
      fail("bounds", "a bulk copy that leaves the block's shared memory");
    }
    if (tensor && offset_ % 128 != 0) {
      fail("misaligned", "a box of a tensor at shared memory that is no multiple of 128");
    }
    if (code_.multicast && blocks_ >> warp_.cluster_size != 0) {
      fail("bounds", "a multicast to blocks that the cluster does not have");
    }
    if (tensor && code_.reduces) {
      const Elements elements = reduced_elements(map_.type, code_.op);
      if (elements.bits == 0) fail("tensormap", "a reduction that the tensor's type does not have");
      code_.kind = elements.kind;
      code_.bits = elements.bits;
    }
  }

  /// The rank of the block whose memory this is, or -1.
  [[nodiscard]] int block_of(std::uint64_t address) const {
    for (std::uint32_t rank = 0; rank < warp_.cluster_size; ++rank) {
      const int block = static_cast<int>(rank);
      if (address - window_of(block) < warp_.total_shared) return block;
    }
    return -1;
  }

  template <class Visit>
  void each_row(const Visit& visit) {
    if (code_.masked) return each_run(visit);
    if (code_.rank == 0) return visit(BulkRow{global_, 0, bytes_, 0, bytes_});
    if (code_.part == BulkCode::kRows) {
      return for_each_gathered_row(map_, coordinates_.data(), visit);
    }
    if (code_.part == BulkCode::kColumn) {
      return for_each_pixel(map_, coordinates_.data(), offsets_.data(), visit);
    }
    for_each_row(map_, coordinates_.data(), visit);
  }

  /// The bytes side by side that a mask of each 16 names.
  template <class Visit>
  void each_run(const Visit& visit) {
    for (std::uint32_t start = 0; start < bytes_; start += 16) {
      for (std::uint32_t left = blocks_; left != 0;) {
        const auto first = static_cast<std::uint32_t>(std::countr_zero(left));
        const auto size = static_cast<std::uint32_t>(std::countr_one(left >> first));
        visit(BulkRow{global_ + start + first, start + first, size, 0, size});
        left &= left + (1U << first);
      }
    }
  }

  /// Calls visit(address, offset in the row, bytes) for the pieces of a row in a block's memory.
  template <class Visit>
  void each_piece(std::uint64_t shared, const BulkRow& row, const Visit& visit) {
    if (map_.swizzle == TensorMap::Swizzle::kNone) return visit(shared + row.offset, 0U, row.bytes);
    for (std::uint32_t done = 0; done < row.bytes; done += 16) {
      const std::uint32_t place = swizzled(offset_ + row.offset + done, map_.swizzle);
      visit(shared - offset_ + place, done, 16U);
    }
  }

  void start(std::uint64_t channel) {
    if (Sanitizer* s = warp_.runner->sanitizer()) {
      time_ = s->start_async(warp_.check, channel, static_cast<std::uint32_t>(lane_), line_);
    }
  }

  /// `data`: what is written.
  void judge(std::uint64_t address, std::uint32_t bytes, AccessCode::Kind kind,
             const std::uint8_t* data = nullptr) {
    Sanitizer* const s = warp_.runner->sanitizer();
    if (bytes == 0 || s == nullptr) return;
    AccessCode code{.kind = kind};
    if (kind == AccessCode::kAtomic) code = {kind, AccessCode::kRelaxed, 2};
    warp_.message = s->async_access(warp_.check, address, bytes, code,
                                    static_cast<std::uint32_t>(lane_), line_, data);
    if (!warp_.message.empty()) fail("", warp_.message.c_str());
  }

  void count_global(AccessCode::Kind kind) {
    Requests requests(warp_, kind, place_, code_.bits / 8U);
    each_row(
        [&](const BulkRow& row) { requests.add(row.global + row.first, row.last - row.first); });
  }
  void count_shared(std::uint64_t shared, AccessCode::Kind kind) {
    Requests requests(warp_, kind, place_, code_.bits / 8U);
    each_row([&](const BulkRow& row) {
      each_piece(shared, row, [&](std::uint64_t address, std::uint32_t, std::uint32_t bytes) {
        requests.add(address, bytes);
      });
    });
  }

  /// Copies to the shared memory of one block.
  void load(std::uint64_t shared, std::uint64_t barrier) {
    const bool reduces = code_.reduces;
    each_row([&](const BulkRow& row) {
      if (warp_.runner->sanitizer() == nullptr) return;
      const std::uint8_t* data = reduces ? nullptr : bytes_of(row);
      each_piece(shared, row, [&](std::uint64_t address, std::uint32_t done, std::uint32_t bytes) {
        if (reduces) return judge(address, bytes, AccessCode::kAtomic);
        judge(address, bytes, AccessCode::kBulkTo, data + done);
      });
    });
    count_shared(shared, reduces ? AccessCode::kAtomic : AccessCode::kStore);
    each_row([&](const BulkRow& row) {
      if (reduces) return reduce(shared, at<const std::uint8_t>(row.global), row.bytes);
      move_row(shared, row);
    });
    complete_bytes(warp_, lane_, barrier, bytes_, line_);
  }

  /// The bytes of a row for shared memory.
  const std::uint8_t* bytes_of(const BulkRow& row) {
    if (row.last - row.first == row.bytes) return at<const std::uint8_t>(row.global);
    fill(row.bytes);
    if (row.last != row.first) {
      std::memcpy(row_.data() + row.first, at<const std::uint8_t>(row.global + row.first),
                  row.last - row.first);
    }
    return row_.data();
  }

  void move_row(std::uint64_t shared, const BulkRow& row) {
    const std::uint8_t* data = bytes_of(row);
    each_piece(shared, row, [&](std::uint64_t to, std::uint32_t done, std::uint32_t bytes) {
      std::memmove(at<std::uint8_t>(to), data + done, bytes);
    });
  }

  /// The elements outside of the tensor.
  void fill(std::uint32_t bytes) {
    std::memset(row_.data(), map_.nan_fill ? 0xff : 0, bytes);
    if (!map_.nan_fill) return;
    const auto size = static_cast<std::uint32_t>(map_.element_bytes());
    for (std::uint32_t last = size - 1; last < bytes; last += size) row_[last] = 0x7f;
  }

  /// Copies to the memory of each rank behind the multicast address.
  void store_everywhere() {
    std::array<std::uint64_t, 32> addresses{};
    const auto lane = static_cast<std::size_t>(lane_);
    addresses[lane] = global_;
    const auto& places =
        warp_.runner->places_everywhere(warp_, addresses.data(), 1U << lane_, bytes_, 16, line_);
    for (const auto& place : places) {
      global_ = place[lane];
      store();
    }
  }

  void store() {
    start(Sanitizer::kBulkReads);
    each_row([&](const BulkRow& row) {
      each_inside(row, [&](std::uint64_t address, std::uint32_t, std::uint32_t bytes) {
        judge(address, bytes, AccessCode::kBulkFrom);
      });
    });
    start(Sanitizer::kBulkWrites);
    each_row([&](const BulkRow& row) {
      each_inside(row, [&](std::uint64_t from, std::uint32_t done, std::uint32_t bytes) {
        if (code_.reduces) return judge(row.global + done, bytes, AccessCode::kAtomic);
        judge(row.global + done, bytes, AccessCode::kBulkTo, at<const std::uint8_t>(from));
      });
    });
    if (Sanitizer* s = warp_.runner->sanitizer()) {
      s->bulk_issued(warp_.check, static_cast<std::uint32_t>(lane_), time_, line_);
    }
    count_shared(shared_, AccessCode::kLoad);
    count_global(code_.reduces ? AccessCode::kAtomic : AccessCode::kStore);
    each_row([&](const BulkRow& row) {
      each_inside(row, [&](std::uint64_t from, std::uint32_t done, std::uint32_t bytes) {
        const auto* source = at<const std::uint8_t>(from);
        if (code_.reduces) return reduce(row.global + done, source, bytes);
        std::memmove(at<std::uint8_t>(row.global + done), source, bytes);
      });
    });
  }

  /// each_piece, for the part inside the tensor.
  template <class Visit>
  void each_inside(const BulkRow& row, const Visit& visit) {
    each_piece(shared_, row, [&](std::uint64_t address, std::uint32_t done, std::uint32_t bytes) {
      const std::uint32_t first = std::max(done, row.first);
      const std::uint32_t last = std::min(done + bytes, row.last);
      if (first < last) visit(address + (first - done), first, last - first);
    });
  }

  void reduce(std::uint64_t to, const std::uint8_t* from, std::uint32_t bytes) {
    with_word(code_.bits / 8U, [&]<class T>() {
      for (std::uint32_t done = 0; done < bytes; done += sizeof(T)) {
        const T value = from_bytes<T>(from + done);
        update<T>(to + done, [&](T old) { return combine(code_.op, code_.kind, old, value, T{}); });
      }
    });
  }

  Warp& warp_;
  BulkCode code_;
  int lane_;
  std::uint32_t line_, place_;
  std::uint64_t shared_ = 0, global_ = 0, barrier_ = 0;
  std::uint32_t blocks_ = 0, bytes_ = 0;
  std::array<std::int32_t, TensorMap::kMaxRank> coordinates_{};
  std::array<std::int32_t, TensorMap::kMaxRank - 2> offsets_{};
  TensorMap map_;
  std::uint32_t time_ = 0;    ///< of the copy, among those that the sanitizer knows
  std::uint64_t start_ = 0;   ///< of the window of shared memory that shared_ is in
  std::uint32_t offset_ = 0;  ///< there
  std::array<std::uint8_t, 2048> row_{};
};

/// st.bulk of one lane.
class StoredZeros {
 public:
  StoredZeros(Warp& warp, int lane, std::uint32_t line, std::uint32_t place)
      : warp_(warp), lane_(lane), line_(line), place_(place) {}

  void run(std::uint64_t address, std::uint64_t bytes) {
    if (address % 8 != 0 || bytes % 8 != 0) {
      fail("misaligned", "st.bulk of no whole 8 bytes, or not aligned to them");
    }
    const std::uint64_t offset = address - reinterpret_cast<std::uint64_t>(warp_.shared);
    if (offset > warp_.total_shared || bytes > warp_.total_shared - offset) {
      fail("bounds", "st.bulk that leaves the block's shared memory");
    }
    if (warp_.runner->sanitizer() != nullptr) judge(address, bytes);
    Requests(warp_, AccessCode::kStore, place_).add(address, static_cast<std::uint32_t>(bytes));
    std::memset(at<std::uint8_t>(address), 0, bytes);
  }

 private:
  [[noreturn]] void fail(const char* kind, const char* message) {
    warp_.runner->fail(warp_, kind, message, line_);
  }

  void judge(std::uint64_t address, std::uint64_t bytes) {
    constexpr std::array<std::uint64_t, 32> kZeros{};
    const Sanitizer::Values values{reinterpret_cast<const std::uint8_t*>(kZeros.data()), 8, 1};
    const AccessCode code{.kind = AccessCode::kStore, .bytes = 8};
    std::array<std::uint64_t, 32> addresses{};
    const std::uint64_t* const lanes = addresses.data();
    for (std::uint64_t done = 0; done < bytes; done += 8) {
      addresses[lane_] = address + done;
      warp_.runner->check_access(warp_, {&lanes, 1}, 1U << lane_, code, line_, &values);
    }
  }

  Warp& warp_;
  int lane_;
  std::uint32_t line_, place_;
};

/// `place`: as of count_access, or kNotCounted.
void copy_bulk(Warp& warp, const BulkOperands* operands, std::uint32_t mask, BulkCode code,
               std::uint32_t line, std::uint32_t place) {
  for_each_lane(mask, [&](int lane) { BulkCopy(warp, code, *operands, lane, line, place).run(); });
}

/// st.bulk: zeros, each lane its own.
void store_bulk(Warp& warp, const std::uint64_t* addresses, const std::uint64_t* sizes,
                std::uint32_t mask, std::uint32_t line, std::uint32_t place) {
  for_each_lane(mask,
                [&](int l) { StoredZeros(warp, l, line, place).run(addresses[l], sizes[l]); });
}

/// Counts what each lane brings to L2.
void prefetch_bulk(Warp& warp, const std::uint64_t* addresses, const std::uint32_t* sizes,
                   std::uint32_t mask, std::uint32_t place) {
  for_each_lane(mask, [&](int l) {
    Requests(warp, AccessCode::kCopyFrom, place).add(addresses[l], sizes[l]);
  });
}

/// tensormap.replace, of one field or of dim `dim` of it.
void replace_tensormap(Warp& warp, const std::uint64_t* maps, const std::uint64_t* values,
                       std::uint32_t mask, std::uint32_t field, std::uint32_t dim,
                       std::uint32_t line) {
  for_each_lane(mask, [&](int lane) {
    if (maps[lane] % TensorMap::kAlign != 0) {
      warp.runner->fail(warp, "misaligned", "a tensor map at an address that is no multiple of 64",
                        line);
    }
    TensorMap map = TensorMap::decode(at<const std::uint8_t>(maps[lane]));
    const std::uint64_t value = values[lane];
    const auto word = static_cast<std::uint32_t>(value);
    switch (static_cast<TensorMapField>(field)) {
      case TensorMapField::kAddress:
        map.address = value;
        break;
      case TensorMapField::kRank:
        map.rank = word + 1;
        break;
      case TensorMapField::kBox:
        map.box[dim] = word;
        break;
      case TensorMapField::kDim:
        map.dims[dim] = word;
        break;
      case TensorMapField::kStride:
        map.strides[dim] = value;
        break;
      case TensorMapField::kStep:
        map.steps[dim] = word;
        break;
      case TensorMapField::kType:
        map.type = static_cast<TensorMap::Type>(value);
        break;
      case TensorMapField::kSwizzle:
        map.swizzle = static_cast<TensorMap::Swizzle>(value);
        break;
      case TensorMapField::kFill:
        map.nan_fill = value != 0;
        break;
      case TensorMapField::kInterleave:
      case TensorMapField::kAtomicity:
        break;
    }
    const auto bytes = map.encoded();
    std::memcpy(at<std::uint8_t>(maps[lane]), bytes.data(), bytes.size());
  });
}

/// Of a whole warp: its lanes have the same addresses.
void copy_tensormap(const std::uint64_t* to, const std::uint64_t* from, std::uint32_t mask) {
  if (mask == 0) return;
  const int lane = std::countr_zero(mask);
  std::memcpy(at<std::uint8_t>(to[lane]), at<const std::uint8_t>(from[lane]), TensorMap::kBytes);
}

}  // namespace

std::vector<RuntimeHelper> bulk_helpers() {
  return {{"copy_bulk", copy_bulk},
          {"prefetch_bulk", prefetch_bulk},
          {"store_bulk", store_bulk},
          {"replace_tensormap", replace_tensormap},
          {"copy_tensormap", copy_tensormap}};
}

}  // namespace braid::cpu
