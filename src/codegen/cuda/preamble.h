#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "codegen/tile/tile.h"

namespace braid::tile {

/// Elements of all ranks that one statement accesses.
struct MultimemAccess {
  DType dtype;
  int width;
  bool whole;  ///< Inst::whole
  int world;
};

/// The helpers a kernel calls, as CUDA text, each once and only those that were asked for; no
/// template, for one that is instantiated once costs NVRTC more than the function it stands for,
/// and no header: headers cost 30 to 900 ms per compile. A function that gives a name also notes
/// that the kernel needs it.
class Preamble {
 public:
  /// `void f(V* v, const E* p, bool ok)`: elements in one access, as computed values; zeros when
  /// not ok.
  std::string load(DType dtype, int width);
  /// `void f(E* p, const V* v, bool ok)`.
  std::string store(DType dtype, int width);
  /// The value nearest to x that the dtype can hold.
  std::string round(DType dtype);
  /// x as one cvt makes it an integer: towards zero, into its range.
  std::string saturate(DType dtype);
  /// Two floats or integers; NaN wins, and -0 is below +0.
  std::string max_of(Kind kind) { return extreme("max", '>', kind); }
  std::string min_of(Kind kind) { return extreme("min", '<', kind); }
  std::string abs_of(Kind kind);

  /// Dynamic shared memory as `smem`.
  void shared();
  /// The address of a place in it: `unsigned f(const void* p)`.
  void shared_address();
  /// `void f(unsigned to, const void* from, bool ok)`: zeros when not ok.
  std::string copy_async(int bytes);
  std::string commit_group();
  /// Waits until at most so many groups are in flight, then a block barrier.
  std::string wait_group(int groups);

  /// `void f(unsigned* r, unsigned from)`.
  std::string ldmatrix(bool trans);
  /// The same of 8-bit elements: fragments of 16 columns, the even ones and the odd ones.
  std::string ldmatrix_trans_bytes();
  /// `void f(float* c, const unsigned* a, const unsigned* b)`, of whose sums every `step`th counts.
  /// That of 8-bit floats takes what widen_fragment makes of fragments.
  std::string mma(DType a, DType b, int step);
  /// `void f(unsigned* to, const unsigned* from)`: `words` become twice as many, where need be.
  std::string widen_fragment(DType dtype, int words);
  /// `unsigned f(const float* v)`: one word of a fragment.
  std::string pack(DType dtype);

  /// What arrives at an mbarrier and waits for it: init_mbarrier, arrive, arrive_expecting,
  /// await_phase.
  void mbarriers();
  /// `void f(unsigned to, const void* map, unsigned full, int col, int row)`: a box of a tensor.
  std::string copy_tile();
  /// `void f(const void* map, unsigned from, int col, int row)`, and its group and fence.
  std::string push_tile();
  /// `void f(unsigned to, unsigned a, b, c, d)`: four matrices.
  std::string stmatrix();
  /// Descriptors and the group of asynchronous products: operand, begin_products, commit_products.
  void products();
  std::string await_products(int under_way);
  /// `void f(float* d, unsigned long long a, unsigned long long b, bool adds)`: 64 rows.
  std::string wgmma(DType dtype, int cols, bool trans_a, bool trans_b);

  /// The type of a parameter that is so many bytes by value.
  std::string bytes(int size, int alignment);

  /// What a kernel that can fail tells the host.
  void record();
  void bad_index();
  /// What a kernel tells of its blocks' doings.
  void marks();
  /// Flags, signal, wait; `threads` of a block.
  void comm(int world, int threads);
  /// signal_one, wait_one: one rank at a time; beside comm.
  void comm_one();
  /// wait_slots: of all ranks, in several slots; beside comm.
  void comm_slots(int world, int threads);
  /// What packets are; beside comm.
  void packets();
  /// Beside packets: `void f(const Comm& c, unsigned char* base, long long at, const V* v, bool
  /// ok)`: one packet, of `width` elements from element `at` on.
  std::string ll_store(DType dtype, int width);
  /// `void f(float* v, const unsigned char* base, long long at, bool ok)`: the sum over all ranks
  /// of elements at base[at], zeros where not ok. Where the access is not whole: `(float* v, const
  /// Peers& peers, const unsigned char* multicast, ..., bool ok0, bool ok1, ...)`.
  std::string multimem_reduce(const MultimemAccess& access);
  /// The same of a `const float* v` that is stored to all ranks.
  std::string multimem_store(const MultimemAccess& access);
  /// `void f(V* v, unsigned payload, bool ok0, ...)`: an element that is not ok is zero.
  std::string unpack(DType dtype, int width);

  [[nodiscard]] std::string text() const;

 private:
  void multimem_one(const MultimemAccess& access);
  std::string multimem(std::string_view what, const MultimemAccess& access,
                       const std::string& vector, const std::vector<std::string>& values);
  std::string widened(DType dtype, const std::string& element);
  std::string narrowed(DType dtype, const std::string& value);
  std::string narrowed_word(DType dtype, int first, int width);
  std::string extreme(std::string_view name, char sign, Kind kind);
  /// Adds a helper; helpers stand in the order of `section`, then of their names.
  std::string need(int section, const std::string& name, std::string text);

  std::map<std::pair<int, std::string>, std::string> texts_;
};

/// A loop over more ranks than this stays a loop: unrolled, the text and the time to compile it
/// grow with the ranks.
inline constexpr int kUnrolledRanks = 16;

}  // namespace braid::tile
