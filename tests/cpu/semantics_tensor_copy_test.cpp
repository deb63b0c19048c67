// Tensor maps and tensor copies against the statements of the PTX manual, element by element.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <set>

#include "braid/checks.h"
#include "cpu/cpu_harness.h"
#include "cpu/semantics.h"
#include "findings.h"
#include "runtime/error_of.h"
#include "runtime/tensor_map.h"

namespace braid::cpu_test {
namespace {

using namespace semantics;
using testing::HasSubstr;
using Bytes = std::vector<u8>;
using Type = TensorMap::Type;
using Swizzle = TensorMap::Swizzle;

constexpr std::size_t kShared = 32768;
constexpr int kThreads = 256;

struct Box {
  TensorMap map;
  std::vector<i32> at;
  u32 base = 0;  ///< in shared memory
};

/// A kernel k(out, in, map). The block fills its shared memory from `in`, does `body` and stores it
/// at `out`. %i: the thread; %m, %M: shared memory, mbarriers there; %T: the tensor map.
std::string text(const std::string& body, const std::string& directives = "") {
  return fmt::format(R"(.version 9.0
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 out, .param .u64 in, .param .align 64 .b8 map[128]) {2}
{{
.reg .b32 %i, %m, %M, %r<16>; .reg .b64 %O, %I, %T, %d<16>; .reg .pred %p<8>;
.shared .align 1024 .b8 tile[{0}]; .shared .align 8 .b64 objects[4];
ld.param.u64 %O, [out]; ld.param.u64 %I, [in]; mov.u32 %m, tile; mov.u32 %M, objects;
mov.b64 %T, map; cvta.param.u64 %T, %T; mov.u32 %i, %tid.x;
mov.u32 %r0, %ctaid.x; mul.wide.u32 %d0, %r0, {0}; add.u64 %O, %O, %d0;
shl.b32 %r0, %i, 4; mov.u32 %r1, %r0;
FILL: cvt.u64.u32 %d0, %r1; add.u64 %d1, %d0, %I; add.u32 %r2, %m, %r1;
ld.global.v4.u32 {{%r4, %r5, %r6, %r7}}, [%d1]; st.shared.v4.u32 [%r2], {{%r4, %r5, %r6, %r7}};
add.u32 %r1, %r1, 4096; setp.lt.u32 %p0, %r1, {0}; @%p0 bra FILL;
setp.ne.u32 %p0, %i, 0; @%p0 bra READY; mbarrier.init.shared.b64 [%M], 1;
fence.mbarrier_init.release.cluster;
READY: fence.proxy.async.shared::cta; bar.sync 0;
{1}
KEEP: bar.sync 0; mov.u32 %r1, %r0;
DRAIN: cvt.u64.u32 %d0, %r1; add.u64 %d1, %d0, %O; add.u32 %r2, %m, %r1;
ld.shared.v4.u32 {{%r4, %r5, %r6, %r7}}, [%r2]; st.global.v4.u32 [%d1], {{%r4, %r5, %r6, %r7}};
add.u32 %r1, %r1, 4096; setp.lt.u32 %p1, %r1, {0}; @%p1 bra DRAIN;
ret;
}}
)",
                     kShared, body, directives);
}

std::string coordinates(const Box& box) {
  std::string list;
  for (const i32 c : box.at) list += fmt::format("{}{}", list.empty() ? "" : ", ", c);
  return list;
}

std::string load_body(const Box& box, const std::string& to = "shared::cluster") {
  return fmt::format(
      "@%p0 bra WAIT; mbarrier.arrive.expect_tx.shared::cta.b64 _, [%M], {};\n"
      "cp.async.bulk.tensor.{}d.{}.global.tile.mbarrier::complete_tx::bytes "
      "[%m+{}], [%T, {{{}}}], [%M];\n"
      "WAIT: mbarrier.try_wait.parity.shared.b64 %p1, [%M], 0; @!%p1 bra WAIT;",
      box.map.box_bytes(), box.map.rank, to, box.base, coordinates(box));
}

std::string store_body(const Box& box, const std::string& form = "cp.async.bulk.tensor",
                       const std::string& op = "") {
  return fmt::format(
      "@%p0 bra KEEP;\n{}.{}d.global.shared::cta{}.bulk_group [%T, {{{}}}], [%m+{}];\n"
      "cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;",
      form, box.map.rank, op, coordinates(box), box.base);
}

struct Result {
  Bytes shared, tensor;
  std::vector<Finding> findings;
};

/// `shared`: what the block's memory holds at first; `tensor`: all that the map's address begins.
Result run(const std::string& ptx, TensorMap map, const Bytes& shared, const Bytes& tensor,
           unsigned checks = 0, u32 blocks = 1, Dim3 cluster = {}) {
  Bench bench = Bench::from_ptx(ptx, {.threads = 1, .checks = checks});
  const auto copied = [&](const Bytes& bytes) {
    const u64 address = bench.upload(bytes);
    bench.stream().copy_from_host(address, bytes.data(), bytes.size());
    return address;
  };
  const u64 out = copied(Bytes(kShared * blocks));
  const u64 in = copied(shared);
  map.address = copied(tensor);
  EXPECT_EQ(map.problem(), std::nullopt);
  const auto encoded = map.encoded();
  const void* args[] = {&out, &in, encoded.data()};
  bench.stream().launch(bench.function(), {{blocks}, {kThreads}, 0, {.cluster = cluster}}, args);
  bench.stream().synchronize();
  return {bench.download<u8>(out, kShared * blocks), bench.download<u8>(map.address, tensor.size()),
          found_by(bench.device())};
}

Bytes random_bytes(std::size_t count, u64 seed) {
  Random random(seed);
  Bytes bytes(count);
  for (u8& byte : bytes) byte = static_cast<u8>(random.next() >> 32);
  return bytes;
}

/// The manual's swizzle: 16-byte chunks are permuted within 128, 64 or 32 bytes by the number of
/// the 128-byte line.
u32 shuffled(u32 address, Swizzle swizzle) {
  if (swizzle == Swizzle::kNone) return address;
  const u32 chunks = swizzle == Swizzle::k128 ? 8 : swizzle == Swizzle::k64 ? 4 : 2;
  const u32 span = 16 * chunks;
  const u32 chunk = address % span / 16;
  const u32 line = address / 128;
  return address / span * span + (chunk ^ (line % chunks)) * 16 + address % 16;
}

/// Calls visit(offset in the tensor's memory or -1, place in shared memory) for each element.
void each_element(const Box& box, const std::function<void(i64, u32)>& visit) {
  const TensorMap& map = box.map;
  const auto size = static_cast<i64>(map.element_bytes());
  u32 count = 1;
  std::vector<u32> extents;
  for (u32 d = 0; d < map.rank; ++d) {
    const u32 step = d == 0 ? 1 : map.steps[d];
    extents.push_back((map.box[d] + step - 1) / step);
    count *= extents.back();
  }
  for (u32 n = 0; n < count; ++n) {
    i64 offset = 0;
    bool inside = true;
    u32 rest = n;
    for (u32 d = 0; d < map.rank; ++d) {
      const i64 place = i64{box.at[d]} + i64{rest % extents[d]} * (d == 0 ? 1 : map.steps[d]);
      rest /= extents[d];
      inside = inside && place >= 0 && place < static_cast<i64>(map.dims[d]);
      offset += place * (d == 0 ? size : static_cast<i64>(map.strides[d - 1]));
    }
    visit(inside ? offset : -1, shuffled(box.base + n * static_cast<u32>(size), map.swizzle));
  }
}

/// A map and a place of a box, at random, that are allowed.
Box random_box(Random& random, u32 rank) {
  constexpr Type kTypes[] = {Type::kU8,  Type::kU16, Type::kU32, Type::kS32, Type::kU64,
                             Type::kS64, Type::kF16, Type::kF32, Type::kF64, Type::kBf16};
  const auto below = [&](u64 end) { return static_cast<u32>(random.next() % end); };
  Box box;
  TensorMap& map = box.map;
  map.rank = rank;
  map.type = kTypes[below(std::size(kTypes))];
  const auto size = static_cast<u32>(map.element_bytes());
  map.swizzle = static_cast<Swizzle>(below(4));
  const u32 span = map.swizzle == Swizzle::kNone ? 256 : 16U << static_cast<u32>(map.swizzle);
  map.box[0] = std::min(256U, 16 * (1 + below(span / 16)) / size);
  u64 bytes = map.box[0] * size;
  for (u32 d = 0; d < rank; ++d) {
    if (d > 0) {
      map.box[d] = 1 + below(rank > 3 ? 4 : 9);
      map.steps[d] = 1 + below(3);
      bytes *= map.extent(d);
    }
    map.dims[d] = 1 + below(2 * map.box[d] + 2);
    box.at.push_back(static_cast<i32>(below(map.dims[d] + 2 * map.box[d])) -
                     static_cast<i32>(map.box[d]));
  }
  u64 stride = (map.dims[0] * size + 15) / 16 * 16;
  for (u32 d = 1; d < rank; ++d) {
    map.strides[d - 1] = stride + 16 * below(2);
    stride = map.strides[d - 1] * map.dims[d];
  }
  EXPECT_LE(bytes, kShared / 2);
  box.base = 128 * below(32);
  return box;
}

TEST(SemanticsTensorCopy, LoadsBoxesAndFillsTheRest) {
  Random random(1);
  for (u32 n = 0; n < 25; ++n) {
    Box box = random_box(random, 1 + n % 5);
    const TensorMap& map = box.map;
    const bool is_float = map.type == Type::kF16 || map.type == Type::kF32 ||
                          map.type == Type::kF64 || map.type == Type::kBf16;
    box.map.nan_fill = is_float && n % 2 == 0;
    const Bytes shared = random_bytes(kShared, n);
    const Bytes tensor = random_bytes(map.tensor_bytes(), n + 1);
    Bytes want = shared;
    const std::size_t size = map.element_bytes();
    each_element(box, [&](i64 offset, u32 place) {
      for (std::size_t b = 0; b < size; ++b) {
        const u8 fill = !map.nan_fill ? 0 : b + 1 == size ? 0x7f : 0xff;
        want[place + b] = offset < 0 ? fill : tensor[static_cast<std::size_t>(offset) + b];
      }
    });
    for (const unsigned checks : {0U, unsigned{kCheckAll}}) {
      const Result result =
          run(text(load_body(box, n % 3 == 0 ? "shared::cta" : "shared::cluster")), map, shared,
              tensor, checks);
      ASSERT_EQ(result.shared, want) << n << " rank " << map.rank;
      ASSERT_EQ(result.tensor, tensor);
      ASSERT_TRUE(result.findings.empty()) << result.findings[0].text();
    }
  }
}

TEST(SemanticsTensorCopy, StoresWhatIsInside) {
  Random random(2);
  for (u32 n = 0; n < 25; ++n) {
    const Box box = random_box(random, 1 + n % 5);
    const Bytes shared = random_bytes(kShared, n);
    const Bytes tensor = random_bytes(box.map.tensor_bytes(), n + 1);
    Bytes want = tensor;
    each_element(box, [&](i64 offset, u32 place) {
      if (offset < 0) return;
      std::memcpy(&want[static_cast<std::size_t>(offset)], &shared[place], box.map.element_bytes());
    });
    for (const unsigned checks : {0U, unsigned{kCheckAll}}) {
      const Result result = run(text(store_body(box)), box.map, shared, tensor, checks);
      ASSERT_EQ(result.tensor, want) << n << " rank " << box.map.rank;
      ASSERT_EQ(result.shared, shared);
      ASSERT_TRUE(result.findings.empty()) << result.findings[0].text();
    }
  }
}

/// Four rows of a matrix, from one column on, to and from shared memory.
TEST(SemanticsTensorCopy, GathersAndScattersFourRows) {
  Random random(11);
  for (u32 n = 0; n < 20; ++n) {
    Box box = random_box(random, 2);
    box.map.box[1] = 1;
    const auto size = static_cast<u32>(box.map.element_bytes());
    std::array<i32, 4> rows{};
    // No two addresses of a scatter are equal, since their order is unspecified.
    for (i32 k = 0; k < 4; ++k) {
      rows[static_cast<std::size_t>(k)] =
          static_cast<i32>(random.next() % box.map.dims[1] / 4) * 4 + k - (n % 3 == 0 ? 2 : 0);
    }
    const std::string place =
        fmt::format("{}, {}, {}, {}, {}", box.at[0], rows[0], rows[1], rows[2], rows[3]);
    const Bytes shared = random_bytes(kShared, n);
    const Bytes tensor = random_bytes(box.map.tensor_bytes(), n + 1);
    Bytes gathered = shared;
    Bytes scattered = tensor;
    const u32 width = box.map.box[0];
    for (u32 k = 0; k < 4 * width; ++k) {
      const i64 column = i64{box.at[0]} + k % width;
      const i64 row = rows[k / width];
      const bool inside = column >= 0 && column < static_cast<i64>(box.map.dims[0]) && row >= 0 &&
                          row < static_cast<i64>(box.map.dims[1]);
      u8* to = &gathered[shuffled(box.base + k * size, box.map.swizzle)];
      std::memset(to, 0, size);
      if (!inside) continue;
      const i64 offset = row * static_cast<i64>(box.map.strides[0]) + column * size;
      std::memcpy(to, &tensor[static_cast<std::size_t>(offset)], size);
      std::memcpy(&scattered[static_cast<std::size_t>(offset)],
                  &shared[shuffled(box.base + k * size, box.map.swizzle)], size);
    }
    box.map.nan_fill = false;
    const std::string load = fmt::format(
        "@%p0 bra WAIT; mbarrier.arrive.expect_tx.shared::cta.b64 _, [%M], {};"
        "cp.async.bulk.tensor.2d.shared::cta.global.tile::gather4.mbarrier::complete_tx::bytes"
        "{} [%m+{}], [%T, {{{}}}], [%M];"
        "WAIT: mbarrier.try_wait.parity.shared.b64 %p1, [%M], 0; @!%p1 bra WAIT;",
        4 * width * size, n % 2 == 0 ? "" : ".cta_group::1", box.base, place);
    const std::string store = fmt::format(
        "@%p0 bra KEEP; cp.async.bulk.tensor.2d.global.shared::cta.tile::scatter4.bulk_group "
        "[%T, {{{}}}], [%m+{}]; cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;",
        place, box.base);
    for (const unsigned checks : {0U, unsigned{kCheckAll}}) {
      const Result loaded = run(text(load), box.map, shared, tensor, checks);
      ASSERT_EQ(loaded.shared, gathered) << n;
      ASSERT_TRUE(loaded.findings.empty()) << loaded.findings[0].text();
      const Result stored = run(text(store), box.map, shared, tensor, checks);
      ASSERT_EQ(stored.tensor, scattered) << n;
      ASSERT_TRUE(stored.findings.empty()) << stored.findings[0].text();
    }
  }
}

/// A column of pixels: those that a filter's tap reads for outputs side by side. The manual's words
/// as loops: the first pixels go over the box between the corners, in the order of memory, and the
/// copied ones are at an offset from them.
TEST(SemanticsTensorCopy, CopiesColumnsOfPixels) {
  Random random(12);
  const auto below = [&](u64 end) { return static_cast<i32>(random.next() % end); };
  for (u32 n = 0; n < 24; ++n) {
    const u32 rank = 3 + n % 3;
    TensorMap map;
    map.type = Type::kU16;
    map.rank = rank;
    map.swizzle = static_cast<Swizzle>(below(4));
    map.box[0] = map.swizzle == Swizzle::k32 ? 16 : 32;
    if (map.swizzle == Swizzle::k128) map.box[0] = 64;
    map.pixels = static_cast<u32>(1 + below(40));
    map.dims[0] = map.box[0] + static_cast<u32>(below(20));
    u64 stride = (2 * map.dims[0] + 15) / 16 * 16;
    std::vector<i32> offsets;
    for (u32 d = 1; d < rank; ++d) {
      map.dims[d] = static_cast<u32>(3 + below(5));
      map.strides[d - 1] = stride;
      stride *= map.dims[d];
      if (d == rank - 1) break;
      map.steps[d] = static_cast<u32>(1 + below(2));
      map.lower[d - 1] = below(3) - 1;
      map.upper[d - 1] = below(3) - 2;
      offsets.push_back(below(3));
    }
    Box box;
    box.map = map;
    box.base = 1024;
    box.at.push_back(below(8));
    for (u32 d = 1; d + 1 < rank; ++d) {
      // One of those that the steps reach.
      box.at.push_back(map.lower[d - 1] + static_cast<i32>(map.steps[d]) * below(2));
    }
    box.at.push_back(below(map.dims[rank - 1]));
    // The pixels in order, from the first of the image on; those before box.at are left out.
    std::vector<std::vector<i32>> pixels;
    std::vector<i32> at = box.at;
    while (pixels.size() < map.pixels) {
      pixels.push_back(at);
      for (u32 d = 1; d < rank; ++d) {
        if (d == rank - 1) {
          ++at[d];
          break;
        }
        at[d] += static_cast<i32>(map.steps[d]);
        if (at[d] <= static_cast<i32>(map.dims[d]) - 1 + map.upper[d - 1]) break;
        at[d] = map.lower[d - 1];
      }
    }
    const Bytes shared = random_bytes(kShared, n);
    const Bytes tensor = random_bytes(map.tensor_bytes(), n + 1);
    Bytes loaded = shared;
    Bytes stored = tensor;
    for (u32 k = 0; k < map.pixels * map.box[0]; ++k) {
      const u32 place = shuffled(box.base + 2 * k, map.swizzle);
      for (const bool loads : {true, false}) {
        i64 offset = 2 * (i64{box.at[0]} + k % map.box[0]);
        bool inside = box.at[0] + k % map.box[0] < map.dims[0];
        for (u32 d = 1; d < rank; ++d) {
          i64 one = pixels[k / map.box[0]][d];
          if (loads && d + 1 < rank) one += offsets[d - 1];
          inside = inside && one >= 0 && one < static_cast<i64>(map.dims[d]);
          offset += one * static_cast<i64>(map.strides[d - 1]);
        }
        if (loads) std::memset(&loaded[place], 0, 2);
        if (!inside) continue;
        if (loads) std::memcpy(&loaded[place], &tensor[static_cast<std::size_t>(offset)], 2);
        if (!loads) std::memcpy(&stored[static_cast<std::size_t>(offset)], &shared[place], 2);
      }
    }
    std::string list;
    for (const i32 o : offsets) list += fmt::format("{}{}", list.empty() ? "" : ", ", o);
    const std::string load = fmt::format(
        "@%p0 bra WAIT; mbarrier.arrive.expect_tx.shared::cta.b64 _, [%M], {};"
        "cp.async.bulk.tensor.{}d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes "
        "[%m+{}], [%T, {{{}}}], [%M], {{{}}};"
        "WAIT: mbarrier.try_wait.parity.shared.b64 %p1, [%M], 0; @!%p1 bra WAIT;",
        map.box_bytes(), rank, box.base, coordinates(box), list);
    const std::string store = fmt::format(
        "@%p0 bra KEEP; cp.async.bulk.tensor.{}d.global.shared::cta.im2col_no_offs.bulk_group "
        "[%T, {{{}}}], [%m+{}]; cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;",
        rank, coordinates(box), box.base);
    for (const unsigned checks : {0U, unsigned{kCheckAll}}) {
      const Result in = run(text(load), map, shared, tensor, checks);
      ASSERT_EQ(in.shared, loaded) << n << " rank " << rank;
      ASSERT_TRUE(in.findings.empty()) << in.findings[0].text();
      const Result out = run(text(store), map, shared, tensor, checks);
      ASSERT_EQ(out.tensor, stored) << n << " rank " << rank;
    }
  }
}

template <class T, class F>
void reduces(Type type, const std::string& op, const F& operation) {
  Random random(3);
  for (u32 n = 0; n < 4; ++n) {
    Box box = random_box(random, 2 + n % 2);
    TensorMap& map = box.map;
    // The same box with another type.
    map.box[0] = static_cast<u32>(map.box[0] * map.element_bytes() / sizeof(T));
    map.type = type;
    for (u64& dim : map.dims) dim = std::min<u64>(dim, map.strides[0] / sizeof(T));
    const Bytes shared = random_bytes(kShared, n);
    const Bytes tensor = random_bytes(map.tensor_bytes(), n + 1);
    Bytes want = tensor;
    each_element(box, [&](i64 offset, u32 place) {
      if (offset < 0) return;
      T a{}, b{};
      std::memcpy(&a, &want[static_cast<std::size_t>(offset)], sizeof(T));
      std::memcpy(&b, &shared[place], sizeof(T));
      const T result = operation(a, b);
      std::memcpy(&want[static_cast<std::size_t>(offset)], &result, sizeof(T));
    });
    const Result result =
        run(text(store_body(box, "cp.reduce.async.bulk.tensor", "." + op + ".tile")), map, shared,
            tensor);
    ASSERT_EQ(result.tensor, want) << op << " " << n;
  }
}

u16 sum_of(Format format, u16 a, u16 b) {
  const u64 sum =
      encode(format, add(decode(format, a), decode(format, b), Mode::kNearest), Mode::kNearest);
  return static_cast<u16>(sum);
}

TEST(SemanticsTensorCopy, Reduces) {
  reduces<u32>(Type::kU32, "add", [](u32 a, u32 b) { return a + b; });
  reduces<u32>(Type::kU32, "inc", [](u32 a, u32 b) { return a >= b ? 0 : a + 1; });
  reduces<u32>(Type::kU32, "dec", [](u32 a, u32 b) { return a == 0 || a > b ? b : a - 1; });
  reduces<i32>(Type::kS32, "min", [](i32 a, i32 b) { return std::min(a, b); });
  reduces<u64>(Type::kU64, "add", [](u64 a, u64 b) { return a + b; });
  reduces<i64>(Type::kS64, "max", [](i64 a, i64 b) { return std::max(a, b); });
  reduces<u32>(Type::kU32, "and", [](u32 a, u32 b) { return a & b; });
  reduces<u64>(Type::kU64, "or", [](u64 a, u64 b) { return a | b; });
  reduces<i64>(Type::kS64, "xor", [](i64 a, i64 b) { return a ^ b; });
  reduces<u16>(Type::kF16, "add", [](u16 a, u16 b) { return sum_of(kF16, a, b); });
  reduces<u16>(Type::kBf16, "add", [](u16 a, u16 b) { return sum_of(kBf16, a, b); });
}

/// 64 x 64 floats of 2 bytes and a box of 8 x 8.
Box small_box() {
  Box box;
  box.map.type = Type::kBf16;
  box.map.rank = 2;
  box.map.dims = {64, 64};
  box.map.strides = {128};
  box.map.box = {8, 8};
  box.at = {0, 0};
  return box;
}

/// Each block of a cluster of 4 sends one box to those of a mask, at the same place.
TEST(SemanticsTensorCopy, MulticastReachesTheBlocksOfTheMask) {
  const Box box = small_box();
  const std::string body =
      "@%p0 bra MEET; mbarrier.arrive.expect_tx.shared::cta.b64 _, [%M], 128;"
      "MEET: barrier.cluster.arrive; barrier.cluster.wait;"
      "mov.u32 %r8, %cluster_ctarank; shl.b32 %r9, %r8, 3; and.b32 %r10, %r8, 1;"
      "setp.ne.u32 %p2, %r10, 0; shl.b32 %r11, %r8, 8; add.u32 %r11, %r11, %m;"
      // Blocks 0 and 2 send to 0 and 1, or to 2 and 3.
      "or.pred %p2, %p2, %p0; @%p2 bra WAIT; mov.u16 %h0, 3; setp.eq.u32 %p3, %r8, 2; @%p3 mov.u16 "
      "%h0, 12;"
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
      ".multicast::cluster [%r11], [%T, {0, %r9}], [%M], %h0;"
      "WAIT: mbarrier.try_wait.parity.shared.b64 %p1, [%M], 0; @!%p1 bra WAIT;"
      "barrier.cluster.arrive; barrier.cluster.wait;";
  std::string ptx = text(body);
  ptx.replace(ptx.find(".reg .pred"), 0, ".reg .b16 %h<2>; ");
  const Bytes shared(kShared, 0xa5);
  const Bytes tensor = random_bytes(box.map.tensor_bytes(), 5);
  for (const unsigned checks : {0U, unsigned{kCheckAll}}) {
    const Result result = run(ptx, box.map, shared, tensor, checks, 4, {4});
    for (u32 block = 0; block < 4; ++block) {
      const u32 sender = block / 2 * 2;
      for (u32 k = 0; k < 1024; ++k) {
        u8 want = 0xa5;
        if (k / 256 == sender && k % 256 < 128)
          want = tensor[(sender * 8 + k % 256 / 16) * 128 + k % 16];
        ASSERT_EQ(result.shared[block * kShared + k], want) << block << " " << k;
      }
    }
    EXPECT_TRUE(result.findings.empty()) << result.findings[0].text();
  }
}

/// A stretch of bytes, from the first block of each pair to both.
TEST(SemanticsBulk, MulticastReachesTheBlocksOfTheMask) {
  const auto body = [](int mask) {
    return fmt::format(
        "@%p0 bra MEET; mbarrier.arrive.expect_tx.shared::cta.b64 _, [%M], 128;"
        "MEET: barrier.cluster.arrive; barrier.cluster.wait; mov.u32 %r8, %cluster_ctarank;"
        "setp.ne.u32 %p2, %r8, 0; @%p0 bra WAIT; @%p2 bra WAIT; mov.u32 %r9, {};"
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster"
        " [%m+256], [%I+64], 128, [%M], %r9;"
        "WAIT: mbarrier.try_wait.parity.shared.b64 %p1, [%M], 0; @!%p1 bra WAIT;"
        "barrier.cluster.arrive; barrier.cluster.wait;",
        mask);
  };
  const Bytes shared = random_bytes(kShared, 8);
  Bytes want = shared;
  std::copy_n(shared.begin() + 64, 128, want.begin() + 256);
  const TensorMap map = small_box().map;
  for (const unsigned checks : {0U, unsigned{kCheckAll}}) {
    const Result result = run(text(body(3)), map, shared, Bytes(8192), checks, 4, {2});
    for (std::size_t block = 0; block < 4; ++block) {
      const auto first = result.shared.begin() + static_cast<std::ptrdiff_t>(block * kShared);
      ASSERT_TRUE(std::equal(want.begin(), want.end(), first)) << block;
    }
    EXPECT_TRUE(result.findings.empty()) << result.findings[0].text();
  }
  EXPECT_THAT(
      braid::error_of([&] { run(text(body(4)), map, shared, Bytes(8192), 0, 4, {2}); }).second,
      HasSubstr("a multicast to blocks that the cluster does not have (ptx:"));
}

/// A map that the kernel makes of zeros in shared memory, and copies to global memory.
TEST(SemanticsTensorCopy, MapsAreMadeByTheKernel) {
  Box box = small_box();
  const std::string body =
      "@%p0 bra MADE; add.u32 %r8, %m, 4096;"
      "mov.u32 %r9, 0; ZERO: add.u32 %r10, %r8, %r9; st.shared.u32 [%r10], 0; add.u32 %r9, %r9, 4;"
      "setp.lt.u32 %p2, %r9, 128; @%p2 bra ZERO; ld.u64 %d2, [%T];"
      "tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%r8], %d2;"
      "tensormap.replace.tile.rank.shared::cta.b1024.b32 [%r8], 1;"
      "tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%r8], 0, 8;"
      "tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%r8], 1, 8;"
      "tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%r8], 0, 64;"
      "tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%r8], 1, 64;"
      "tensormap.replace.tile.global_stride.shared::cta.b1024.b64 [%r8], 0, 128;"
      "tensormap.replace.tile.element_stride.shared::cta.b1024.b32 [%r8], 0, 1;"
      "tensormap.replace.tile.element_stride.shared::cta.b1024.b32 [%r8], 1, 1;"
      "tensormap.replace.tile.elemtype.shared::cta.b1024.b32 [%r8], 10;"
      "tensormap.replace.tile.interleave_layout.shared::cta.b1024.b32 [%r8], 0;"
      "tensormap.replace.tile.swizzle_mode.shared::cta.b1024.b32 [%r8], 0;"
      "tensormap.replace.tile.swizzle_atomicity.shared::cta.b1024.b32 [%r8], 0;"
      "tensormap.replace.tile.fill_mode.shared::cta.b1024.b32 [%r8], 0;"
      "MADE: bar.sync 0; setp.ge.u32 %p3, %i, 32; @%p3 bra SENT; add.u32 %r8, %m, 4096;"
      "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned "
      "[%I], [%r8], 128; SENT: bar.sync 0; mov.u64 %T, %I;"
      "fence.proxy.tensormap::generic.acquire.gpu [%T], 128; prefetch.tensormap [%T];" +
      load_body(box);
  const Bytes shared = random_bytes(kShared, 6);
  const Bytes tensor = random_bytes(box.map.tensor_bytes(), 7);
  const Result result = run(text(body), box.map, shared, tensor);
  for (u32 k = 0; k < 128; ++k) ASSERT_EQ(result.shared[k], tensor[k / 16 * 128 + k % 16]) << k;
}

/// The counts of a kernel's tensor copy.
Counts counts_of(const Box& box, const std::string& body) {
  Bench bench = Bench::from_ptx(text(body), {.count = true});
  const u64 out = bench.upload(Bytes(kShared));
  const u64 in = bench.upload(Bytes(kShared));
  TensorMap map = box.map;
  map.address = bench.upload(Bytes(map.tensor_bytes()));
  const auto encoded = map.encoded();
  const void* args[] = {&out, &in, encoded.data()};
  bench.stream().launch(bench.function(), {{1}, {kThreads}}, args);
  bench.stream().synchronize();
  const KernelCounts counts = bench.device().inspector()->counts().at(0);
  for (const LineCounts& line : counts.lines) {
    if (line.instruction.find(".tensor.") != std::string::npos) return line.counts;
  }
  return {};
}

TEST(SemanticsTensorCopy, CountsTheBytesInside) {
  Box box = small_box();
  box.map.box = {32, 16};
  const Counts whole = counts_of(box, load_body(box));
  // 16 rows of 64 bytes, 32 pieces of 16 to a request.
  EXPECT_EQ(whole.global_bytes, 1024U);
  EXPECT_EQ(whole.global_sectors, 32U);
  EXPECT_EQ(whole.global_requests, 2U);
  EXPECT_EQ(whole.shared_requests, 2U);
  EXPECT_EQ(whole.shared_wavefronts, 8U);
  EXPECT_EQ(whole.bank_conflicts, 0U);
  // 5 columns of two rows are inside; shared memory gets all of the box.
  box.at = {59, 62};
  for (const std::string& body : {load_body(box), store_body(box)}) {
    const Counts part = counts_of(box, body);
    EXPECT_EQ(part.global_bytes, 20U);
    EXPECT_EQ(part.global_sectors, 2U);
    EXPECT_EQ(part.shared_wavefronts, 8U);
  }
  const Counts reduced = counts_of(box, store_body(box, "cp.reduce.async.bulk.tensor", ".add"));
  EXPECT_EQ(reduced.global_bytes, 20U);
  EXPECT_EQ(reduced.atomics, 10U);
}

TEST(SemanticsTensorCopy, RefusesWhatTheManualForbids) {
  const auto error = [](const std::string& body, const TensorMap& map = small_box().map) {
    return braid::error_of([&] { run(text(body), map, Bytes(kShared), Bytes(8192)); }).second;
  };
  Box box = small_box();
  EXPECT_NO_THROW(run(text(load_body(box)), box.map, Bytes(kShared), Bytes(8192)));
  box.base = 64;
  EXPECT_THAT(error(load_body(box)), HasSubstr("no multiple of 128 (ptx:"));
  box.base = kShared;
  EXPECT_THAT(error(load_body(box)), HasSubstr("leaves the block's shared memory (ptx:"));
  box = small_box();
  box.map.rank = 3;
  box.at = {0, 0, 0};
  EXPECT_THAT(error(load_body(box)), HasSubstr("a tensor map of 2 dims, not of 3 (ptx:"));
  box.at = {0, 0};
  EXPECT_THAT(error(load_body(box)), HasSubstr("expected 3 coordinates, found 2"));
  box = small_box();
  const std::string add = store_body(box, "cp.reduce.async.bulk.tensor", ".inc");
  EXPECT_THAT(error(add), HasSubstr("a reduction that the tensor's type does not have (ptx:"));
  EXPECT_THAT(error("add.u64 %T, %T, 8;" + load_body(box)), HasSubstr("no multiple of 64 (ptx:"));
  EXPECT_THAT(error("add.u64 %T, %I, 0;" + load_body(box)),
              HasSubstr("no tensor map: dim 0 has 0 elements; expected 1 to 2^32 (ptx:"));
  const auto copy = [&](const std::string& form) {
    return error("cp.async.bulk.tensor.2d." + form + ";");
  };
  EXPECT_THAT(copy("shared::cta.global.im2col::w.mbarrier::complete_tx::bytes [%m], [%T, {0, 0}], "
                   "[%M], {0}"),
              HasSubstr("unknown modifier '.im2col::w'"));
  const std::string column =
      "cp.async.bulk.tensor.3d.shared::cta.global.im2col.mbarrier::complete_tx::bytes [%m], "
      "[%T, {0, 0, 0}], [%M], ";
  EXPECT_THAT(error(column + "{0, 0};"), HasSubstr("expected 1 offsets, found 2"));
  EXPECT_THAT(copy("shared::cta.global.tile::gather4.mbarrier::complete_tx::bytes [%m], "
                   "[%T, {0, 0}], [%M]"),
              HasSubstr("expected 5 coordinates, found 2"));
  TensorMap cube = box.map;
  cube.rank = 3;
  cube.dims[2] = 1;
  cube.strides[1] = 128 * 64;
  cube.box[2] = 1;
  EXPECT_THAT(error(column + "{0};", cube),
              HasSubstr("a tensor map of tiles, for a copy of columns (ptx:"));
  cube.pixels = 8;
  EXPECT_THAT(
      error("cp.async.bulk.tensor.3d.global.shared::cta.bulk_group [%T, {0, 0, 0}], [%m];", cube),
      HasSubstr("a tensor map of columns, for a copy of tiles (ptx:"));
  EXPECT_THAT(copy("shared::cta.global.mbarrier::complete_tx::bytes [%m], [%T], [%M]"),
              HasSubstr("operand 2 needs coordinates"));
  EXPECT_THAT(copy("shared::cta.global.mbarrier::complete_tx::bytes [%m, {0}], [%T, {0}], [%M]"),
              HasSubstr("operand 1 has no coordinates"));
  EXPECT_THAT(error("tensormap.replace.tile.swizzle_atomicity.shared::cta.b1024.b32 [%m], 1;"),
              HasSubstr("swizzles of other than 16 bytes are not supported"));
  EXPECT_THAT(copy("global.shared::cta.tile.bulk_group [%T, {0, 0}], [%m], 3, 4"),
              HasSubstr("expected 3 operands, found 4"));
}

// --- The rules of cuTensorMapEncodeTiled ---

std::string problem(const std::function<void(TensorMap&)>& change) {
  TensorMap map = small_box().map;
  map.address = 256;
  change(map);
  return map.problem().value_or("");
}

TEST(TensorMapRules, AreThoseOfTheDriver) {
  EXPECT_EQ(problem([](TensorMap&) {}), "");
  EXPECT_EQ(problem([](auto& m) { m.rank = 0; }), "it has 0 dims; expected 1 to 5");
  EXPECT_EQ(problem([](auto& m) { m.rank = 6; }), "it has 6 dims; expected 1 to 5");
  EXPECT_EQ(problem([](auto& m) { m.address = 264; }),
            "the tensor is at 0x108; expected a multiple of 16 bytes");
  EXPECT_EQ(problem([](auto& m) { m.dims[1] = 0; }), "dim 1 has 0 elements; expected 1 to 2^32");
  EXPECT_EQ(problem([](auto& m) { m.dims[0] = 1ULL << 32; }), "");
  EXPECT_EQ(problem([](auto& m) { m.dims[0] = (1ULL << 32) + 1; }),
            "dim 0 has 4294967297 elements; expected 1 to 2^32");
  EXPECT_EQ(problem([](auto& m) { m.strides[0] = 136; }),
            "dim 1 has a stride of 136 bytes; expected a multiple of 16 bytes below 2^40");
  EXPECT_EQ(
      problem([](auto& m) { m.strides[0] = 1ULL << 40; }),
      "dim 1 has a stride of 1099511627776 bytes; expected a multiple of 16 bytes below 2^40");
  EXPECT_EQ(problem([](auto& m) { m.box[1] = 257; }),
            "the box has 257 elements along dim 1; expected 1 to 256");
  EXPECT_EQ(problem([](auto& m) { m.box[0] = 0; }),
            "the box has 0 elements along dim 0; expected 1 to 256");
  EXPECT_EQ(problem([](auto& m) { m.steps[1] = 9; }),
            "dim 1 has an element stride of 9; expected 1 to 8");
  EXPECT_EQ(problem([](auto& m) { m.box[0] = 12; }),
            "a row of the box has 24 bytes; expected a multiple of 16");
  EXPECT_EQ(problem([](auto& m) {
              m.box[0] = 40;
              m.swizzle = Swizzle::k64;
            }),
            "a row of the box has 80 bytes; expected at most 64, the swizzle's span");
  EXPECT_EQ(problem([](auto& m) {
              m.type = Type::kU16;
              m.nan_fill = true;
            }),
            "only floats can be filled with NaN");
  EXPECT_EQ(problem([](auto& m) { m.pixels = 8; }), "columns of 2 dims; expected 3 to 5");
  const auto columns = [](const std::function<void(TensorMap&)>& change) {
    return problem([&](TensorMap& m) {
      m.rank = 3;
      m.dims[2] = 2;
      m.strides[1] = 128 * 64;
      m.pixels = 8;
      m.box[1] = 0;
      change(m);
    });
  };
  EXPECT_EQ(columns([](auto&) {}), "");
  EXPECT_EQ(columns([](auto& m) { m.pixels = 1025; }),
            "a column has 1025 pixels; expected at most 1024");
  EXPECT_EQ(columns([](auto& m) { m.upper[0] = -64; }), "no pixel of dim 1 is between the corners");
  EXPECT_EQ(columns([](auto& m) { m.lower[0] = -32769; }),
            "a corner is -32769 along dim 1; expected -32768 to 32767");
  EXPECT_EQ(problem([](auto& m) { m.type = static_cast<Type>(8); }),
            "its element type is not supported");
}

}  // namespace
}  // namespace braid::cpu_test
