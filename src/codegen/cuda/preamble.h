#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "codegen/tile/tile.h"
#include "codegen/units.h"

namespace braid::tile {

/// An access to the same elements on all ranks by one statement.
struct MultimemAccess {
  DType dtype;
  int width;
  bool whole;  ///< Inst::whole
  int world;
};

/// Collects the helper functions that a kernel calls, as CUDA text, each once. They are neither
/// templates (one that is instantiated once costs NVRTC more than a function) nor from headers (30
/// to 900 ms per compile). A function that returns a helper's name also adds the helper.
class Preamble {
 public:
  /// `void f(V* v, const E* p, bool ok)`: loads elements in one access and converts them to
  /// computed values; zeros when not ok.
  std::string load(DType dtype, int width);
  /// `void f(E* p, const V* v, bool ok)`: converts and stores elements in one access.
  std::string store(DType dtype, int width);
  /// `void f(E* to, const F* from, bool ok)`: elements of another dtype.
  std::string cast(DType from, DType to, int width);
  std::string round(DType dtype);
  /// An expression: an element as in memory becomes a computed value.
  std::string widened(DType dtype, const std::string& element);
  /// Converts a float to an integer as one cvt does: truncated and saturated.
  std::string saturate(DType dtype);
  /// The maximum of two floats or integers; NaN wins, and -0 is below +0.
  std::string max_of(Kind kind) { return extreme("max", '>', kind); }
  std::string min_of(Kind kind) { return extreme("min", '<', kind); }
  std::string abs_of(Kind kind);
  std::string exp2();

  /// The names of what meets, `void f()`, and of what votes, `bool f(bool)`: for all threads of the
  /// block or, after `meet_by_role`, for so many, which are the first ones.
  std::string barrier() const { return meeting_ == 0 ? "__syncthreads" : "meet"; }
  std::string vote() const { return meeting_ == 0 ? "__syncthreads_or" : "meet_or"; }
  void meet_by_role(int threads);

  /// Declares dynamic shared memory as `smem`.
  void shared();
  /// `unsigned f(const void* p)`: a shared-window address.
  void shared_address();
  /// `void f(unsigned to, const void* from, bool ok)`: a copy into shared memory by a unit; zeros
  /// when not ok.
  std::string copy(const Unit& unit, int bytes);
  std::string commit_group();
  /// Waits until at most `groups` groups are in flight, then has a block barrier.
  std::string wait_group(int groups);

  /// `void f(unsigned* r, unsigned from)`.
  std::string ldmatrix(bool trans);
  /// ldmatrix.trans for 8-bit elements: fragments of 16 columns, one with the even ones and one
  /// with the odd ones.
  std::string ldmatrix_trans_bytes();
  /// `void f(float* c, const unsigned* a, const unsigned* b)`; of the sums every `step`th is used.
  /// For 8-bit floats the operands are fragments from widen_fragment.
  std::string mma(DType a, DType b, int step);
  /// `void f(unsigned* to, const unsigned* from)` doubles the `words` where the target needs it.
  std::string widen_fragment(DType dtype, int words);
  /// `unsigned f(const float* v)`: packs one word of a fragment.
  std::string pack(DType dtype);

  /// What arrives at an mbarrier and waits for it: init_mbarrier, arrive, arrive_expecting,
  /// await_phase.
  void mbarriers();
  /// `void f(unsigned to, const void* map, unsigned full, int col, int row, ...)`: a box of a
  /// tensor of so many dims, at as many coordinates.
  std::string copy_tile(int dims);
  /// `void f(const void* map, unsigned from, int col, int row)`, and its group and fence.
  std::string push_tile();
  /// `void f(unsigned to, unsigned a, b, c, d)`: four matrices.
  std::string stmatrix();
  /// Descriptors and the group of asynchronous products: descriptor, wgmma_fence, wgmma_commit.
  void products();
  std::string wgmma_wait(int under_way);
  /// `void f(float* d, unsigned long long a, unsigned long long b, bool adds)`: 64 rows.
  std::string wgmma(DType a, DType b, int cols, bool trans_a, bool trans_b);
  /// The same with `const unsigned* a`: a fragment, four words.
  std::string wgmma_from_registers(DType dtype, int cols, bool trans_b);

  /// Of products whose sums are in tensor memory: descriptor, commit_products, alloc_sums,
  /// free_sums, and fences before_meeting and after_meeting, for what is done there.
  void products_in_sums();
  /// `void f(unsigned to, unsigned long long a, unsigned long long b, bool adds)`: 128 rows.
  std::string product_in_sums(DType a, DType b, int cols, bool trans_a, bool trans_b);
  /// `void f(float* v, unsigned from)`: so many columns of the thread's row, which are there once
  /// await_sums has returned.
  std::string load_sums(int cols);

  /// The type of a parameter that is so many bytes by value.
  std::string bytes(int size, int alignment);

  /// Declares the record with which a kernel reports errors.
  void record();
  void bad_index();
  void meet_blocks();
  /// Declares the marks with which a kernel records what its blocks do.
  void marks();
  /// Flags, signal and wait, for blocks of `threads` threads.
  void comm(int world, int threads);
  /// signal_one and wait_one, for one rank; needs comm.
  void comm_one();
  /// await_alone, of a role of one thread.
  void comm_alone();
  /// wait_slots, for all ranks in several slots; needs comm.
  void comm_slots(int world, int threads);
  /// The definition of packets; needs comm.
  void packets();
  /// `void f(const Comm& c, unsigned char* base, long long at, const V* v, bool ok)`: sends one
  /// packet with the `width` elements from element `at` on; needs packets.
  std::string ll_store(DType dtype, int width);
  /// `void f(float* v, const unsigned char* base, long long at, bool ok)`: the sum over all ranks
  /// of the elements at base[at], zeros when not ok. If the access is not whole: `(float* v, const
  /// Peers& peers, const unsigned char* multicast, ..., bool ok0, bool ok1, ...)`.
  std::string multimem_reduce(const MultimemAccess& access);
  /// The same with `const float* v`, stored to all ranks.
  std::string multimem_store(const MultimemAccess& access);
  /// `void f(V* v, unsigned payload, bool ok0, ...)`: unpacks elements; zero where not ok.
  std::string unpack(DType dtype, int width);

  [[nodiscard]] std::string text() const;

 private:
  std::string cast_of_integers(DType from, DType to, int width);
  void multimem_one(const MultimemAccess& access);
  std::string multimem(std::string_view what, const MultimemAccess& access,
                       const std::string& vector, const std::vector<std::string>& values);
  std::string narrowed(DType dtype, const std::string& value);
  std::string narrowed_word(DType dtype, int first, int width);
  std::string extreme(std::string_view name, char sign, Kind kind);
  enum Section {
    kTypes,
    kAccess,
    kMath,
    kShared,
    kCopy,
    kMatrix,
    kProduct,
    kAsync,
    kFailing,
    kCommunicating,
    kPackets,
    kPacketAccess,
    kMarking,
    kMultimemOne,
    kMultimem
  };
  /// Adds a helper. Helpers are printed in the order of sections, then by name.
  std::string need(Section section, const std::string& name, std::string text);

  std::map<std::pair<Section, std::string>, std::string> texts_;
  int meeting_ = 0;  ///< threads; 0: all
};

}  // namespace braid::tile
