#pragma once

#include <llvm/Analysis/TargetFolder.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include <cstdint>
#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <vector>

#include "braid/matrix_sums.h"
#include "runtime/cpu/check/sanitizer.h"
#include "runtime/cpu/check/tally.h"
#include "runtime/cpu/ptx/opcodes.h"
#include "runtime/cpu/ptx/ptx.h"
#include "runtime/cpu/run/bulk_copy.h"
#include "runtime/cpu/run/matrix_code.h"
#include "runtime/cpu/run/mbarrier.h"
#include "runtime/cpu/run/runtime_helpers.h"
#include "runtime/cpu/run/tensor_memory.h"
#include "runtime/cpu/run/warp_context.h"
#include "runtime/cpu/run/wgmma.h"
#include "runtime/cpu/translate/control_flow.h"
#include "runtime/cpu/translate/shape_analysis.h"
#include "runtime/cpu/translate/wide_values.h"

namespace braid::cpu {

/// Bytes at the end of the register file through which values are passed to run-time helpers.
inline constexpr std::uint32_t kScratchBytes = 128 * 160;

/// Constants of the type of a value.
inline llvm::Constant* number_like(const llvm::Value* value, std::uint64_t number) {
  return llvm::ConstantInt::get(value->getType(), number);
}
inline llvm::Constant* zero_like(const llvm::Value* value) {
  return llvm::Constant::getNullValue(value->getType());
}
inline llvm::Constant* ones_like(const llvm::Value* value) {
  return llvm::Constant::getAllOnesValue(value->getType());
}

/// Where the variables of a kernel live.
struct Layout {
  std::vector<std::int64_t> offsets;           ///< by variable: in params, shared or local memory
  std::vector<llvm::GlobalVariable*> globals;  ///< by variable, for .global and .const
  std::uint32_t local_bytes = 0;
  std::uint32_t shared_bytes = 0;
};

/// Turns one PTX kernel into one LLVM function that runs one warp.
///
/// Values are iN, or <32 x iN> when they differ over the lanes (see Shape); floats are bitcast
/// where an operation needs them. Registers that live across blocks are kept in a register file in
/// memory; inside a block they are SSA values. Every block may exist twice: for a full warp, and
/// under a mask. Divergent components have a dispatcher that runs the lowest pending block first; a
/// single block that some lanes skip runs in place.
class Translator {
 public:
  Translator(llvm::Module& out, const ptx::Module& module, const ptx::Function& function,
             const Layout& layout, bool aligned, Instrumentation instrumentation, HostCode host,
             MatrixSums sums);

  /// Emits the function under `name` and returns what its launcher must know.
  KernelInfo run(const std::string& name);

 private:
  using Instruction = ptx::Instruction;
  using Operand = ptx::Operand;
  using Op = ptx::Op;
  using Choices = ptx::Choices;
  using Value = llvm::Value;
  /// What translates an instruction: it returns the result, or null after it has written all
  /// results itself.
  using Compute = Value*(const Instruction&);
  /// The same for instructions that have several results or none.
  using Handle = void(const Instruction&);
  struct Handler {
    constexpr Handler(Compute Translator::*compute_it) : compute(compute_it) {}
    constexpr Handler(Handle Translator::*handle_it) : handle(handle_it) {}
    Compute Translator::*compute = nullptr;
    Handle Translator::*handle = nullptr;
  };

  /// A register inside a block: `value` in its own shape, `lanes` as a vector once needed.
  struct Cached {
    Value* value = nullptr;
    Value* lanes = nullptr;
    bool dirty = false;
  };
  /// What a run-time helper is given: a value, or a number or a code of 32 bits.
  struct Argument {
    Argument(Value* value) : value(value) {}
    template <class T, std::enable_if_t<std::is_integral_v<T> || std::is_enum_v<T>, int> = 0>
    Argument(T number) : number(static_cast<std::uint32_t>(number)) {}
    template <class T, std::enable_if_t<std::is_class_v<T> && kIsCodeWord<T>, int> = 0>
    Argument(const T& code) {
      std::memcpy(&number, &code, sizeof code);
    }
    Value* value = nullptr;
    std::uint32_t number = 0;
  };
  /// What a block hands on to another one, which only it leads to.
  struct Inheritance {
    std::unordered_map<int, Cached> values;
    llvm::BasicBlock* from = nullptr;
  };
  struct Address {
    ptx::Space space = ptx::Space::kGeneric;
    bool table = false;
    Value* base = nullptr;     ///< i64, with `table` or `offsets`
    Shape shape;               ///< with `table`
    Value* offsets = nullptr;  ///< <32 x i32>: the lanes' offsets from `base` in shared memory
    Value* lanes = nullptr;    ///< <32 x i64>, made when needed
  };
  struct Access {
    ptx::Space space = ptx::Space::kGeneric;
    ptx::Type type;
    unsigned count = 1;
    bool strong = false;
    std::uint8_t scope = 0;  ///< as AccessCode::scope
    llvm::AtomicOrdering ordering = llvm::AtomicOrdering::Monotonic;
  };
  /// The values of a store, as Sanitizer::Values, where they are known.
  struct Stored {
    Value* start;
    unsigned bytes, count;
  };
  /// Operands of ldmatrix and stmatrix.
  struct Matrices {
    bool exchanged = false;  ///< .trans
    std::vector<Operand> registers;
    Address where;
    Value* lanes = nullptr;  ///< lanes that have the addresses of rows
  };
  enum class Rounding : std::uint8_t { kNearest, kZero, kDown, kUp };
  /// The modifiers of cvt.
  struct Conversion {
    Rounding rounding = Rounding::kNearest;
    int integral = -1;  ///< rounds to an integer, in the order of Rounding
    bool ftz = false;
    bool positive = false;
    bool saturate = false;
    bool finite = false;  ///< saturates at the largest finite value
  };

  // Control flow: translate_control.cpp
  void assign_slots();
  llvm::BasicBlock* copy_of(int block, bool full);
  void emit_block(int block, bool full);
  void run_under(Value* lanes);
  void emit_body(int block);
  std::uint32_t emit_instruction(std::uint32_t i, std::uint32_t last);
  void emit_end(int block, bool full);
  void go(int from, int to, bool full);
  void spread(int from, Value* taken_mask, Value* next_mask);
  int conditional_block(const Block& block) const;
  bool gains_from_full_mask(const Block& block) const;
  void emit_conditional(int from, int block, bool full, Value* lanes);
  void tell_action();
  void store_action();
  void add_pending(int component, int block, Value* mask);
  void leave(int from, bool full, Value* dying);
  void find_partial_warps();
  llvm::BasicBlock* dispatcher(int component);
  bool may_pend(int component) const;
  void emit_dispatcher(int component);
  void back_edge(int from, int to);
  Value* resume_pointer();
  void park();
  Value* predicate_of_end(const Block& block);
  void write_back(const BitSet& live);
  // Wide accesses with guards: translate_guards.cpp
  bool is_guarded_row(std::uint32_t instruction) const;
  std::vector<int> guards_of_rows(std::uint32_t first, std::uint32_t last) const;
  std::vector<std::uint32_t> in_order_of_use(const Block& block, std::uint32_t first,
                                             std::uint32_t last) const;
  bool emit_for_all_lanes(int block, std::uint32_t first, std::uint32_t last);
  void join(const Block& block, const std::unordered_map<int, Cached>& all,
            llvm::BasicBlock* all_end, llvm::BasicBlock* some_end);
  // Values that stay in the host's registers from block to block: translate_blocks.cpp
  std::vector<int> carried(int block) const;
  bool inherits(int from, int to) const;
  void leave_for(int from, int to);
  void take_over(int block);

  void store_register(int reg, Value* value);
  llvm::BasicBlock* new_block(const char* name);
  void split(Value* condition, const char* name, llvm::function_ref<void()> body,
             llvm::MDNode* weights = nullptr);
  void split_unlikely(Value* condition, llvm::function_ref<void()> body);

  // One instruction: translate.cpp
  static Handler handler(Op op);
  static bool is_grouped(const Instruction& instruction);
  void emit(const Instruction& instruction);
  void emit_plain(const Instruction& instruction);
  [[noreturn]] void bad(const Instruction& instruction, const std::string& why) const;
  [[noreturn]] void bad_combination(const Instruction& instruction) const;
  void need(const Instruction& instruction, std::size_t operands) const;

  // Values: translate_value.cpp
  llvm::Type* integer(unsigned bits, bool scalar) const;
  llvm::Type* floating(ptx::Type type, bool scalar) const;
  Value* constant(unsigned bits, std::uint64_t value) const;
  Value* splat(Value* scalar);
  Value* table_vector(const Shape& shape, unsigned bits);
  Value* lanes_of(Value* base, const Shape& shape);
  unsigned register_bits(int reg) const;
  Value* register_file(std::uint32_t offset);
  Value* slot_pointer(int reg);
  Cached& load_register(int reg);
  Value* read_scalar(const Operand& operand, unsigned bits);
  Value* read_lanes(const Operand& operand, unsigned bits);
  Value* read(const Operand& operand, unsigned bits);
  Value* read_predicate(const Operand& operand);
  Value* read_float(const Operand& operand, ptx::Type type);
  Value* resize(Value* value, unsigned bits, bool is_signed);
  void write(const Operand& operand, Value* value);
  void write_register(int reg, Value* value);
  void write_float(const Operand& operand, Value* value, ptx::Type type);
  Value* special(ptx::Special special, bool scalar);
  Value* warp_special(ptx::Special special);
  Value* context_field(std::size_t offset);
  Value* field(std::size_t offset, unsigned bits);
  Value* scalar_address(const Operand& variable);
  Value* bits_to_float(Value* bits, ptx::Type type);
  Value* float_to_bits(Value* value, ptx::Type type);
  Value* intrinsic(llvm::Intrinsic::ID id, std::initializer_list<Value*> arguments);
  Value* by_halves(std::initializer_list<Value*> values,
                   llvm::function_ref<Value*(llvm::ArrayRef<Value*>)> body);
  Value* scratch(unsigned index);
  Value* to_scratch(unsigned index, Value* lanes);
  std::uint32_t scratch_place(unsigned index) const;
  Value* constant_words(llvm::ArrayRef<std::uint32_t> words);
  Value* from_scratch(unsigned index, llvm::Type* type);
  Value* call(const char* name, llvm::ArrayRef<Argument> arguments, llvm::Type* result = nullptr);
  Value* map_lanes(const char* helper, std::initializer_list<Value*> arguments,
                   std::optional<Argument> mode = std::nullopt);
  Value* pointer_to(Value* address) { return b_.CreateIntToPtr(address, b_.getPtrTy()); }
  /// Of <32 x i1>: a bit for each lane.
  Value* lane_bits(Value* lanes) { return b_.CreateBitCast(lanes, b_.getInt32Ty()); }
  Value* execution_mask();
  Value* execution_bits();
  Value* live_lanes();
  Value* uniform(Value* scalar);
  Value* with_predicate(const Instruction& i, Value* result, Value* predicate);
  Value* both_halves(const Instruction& instruction, ptx::Type type, std::size_t inputs,
                     const std::function<Value*(llvm::ArrayRef<Value*>)>& body);

  // Which registers are defined, under checks: translate_defined.cpp
  void find_undefined(const std::function<std::uint32_t(std::uint32_t)>& place);
  bool is_tracked(int reg) const;
  bool any_tracked(const std::vector<int>& registers) const;
  Value* defined_pointer(int reg);
  Value* defined(const Operand& operand);
  Value* lanes_of_guard(const Instruction& i);
  void check_defined(const Operand& operand, Value* lanes, std::string_view use);
  void track(const Instruction& i);
  void track_choice(const Instruction& i);
  Value* defined_results(const Instruction& i, Value* lanes);

  // Counting: translate_counts.cpp
  void add_to(std::size_t tally, std::size_t offset, Value* amount);
  void count_block(int block);
  void count_parting(int block, Value* lanes);
  void count_barrier();
  std::uint32_t count_place() const;
  void count_access(Address& address, AccessCode code, Value* lanes);
  void count_shared(const Shape& shape, Value* base, AccessCode code, std::uint32_t mask);
  void find_joined_loads();

  // Integer arithmetic: translate_integer.cpp
  Compute op_add_sub, op_multiply, op_divide, op_min_max, op_sign, op_packed_integers, op_sad,
      op_dot_product;
  Value* multiply_low(Value* a, Value* b);
  Value* multiply_high(Value* a, Value* b, unsigned bits, bool is_signed);
  Value* widen(const Operand& operand, ptx::Type from, unsigned to);
  Value* add_with_carry(const Instruction& i, bool add, Value* a, Value* b);
  void check_no_wrap(const Operand& operand, Value* base, bool is_signed);

  // Video instructions: translate_video.cpp
  Compute op_video, op_video_mad, op_video_packed;
  Value* number(std::uint64_t value, unsigned bits);
  Value* part(Value* word, const Operand::Parts& parts, unsigned k, bool is_signed, unsigned bits);
  Value* whole_or_part(const Instruction& i, std::size_t n, bool is_signed, unsigned bits);
  Value* to_range(Value* value, unsigned width, bool to_signed, bool from_signed);
  Value* video_result(const Instruction& i, Value* a, Value* b);

  // Bits, comparisons and moves: translate_bits.cpp
  Compute op_logic, op_shift, op_bit_field, op_count_bits, op_find_set, op_bit_mask, op_extend,
      op_permute, op_funnel, op_lop3, op_select, op_select_by_sign, op_compare, op_move, op_cvta,
      op_isspacep;
  Handle op_move_vector;
  Value* low_bits(const Operand& count, bool wraps);
  Value* bit_count(const Operand& operand, bool wraps);
  void move_pair(const Instruction& i);
  void move_elements(const Instruction& i, std::size_t count, unsigned bits);
  Value* compare(const Instruction& i, const Choices& mods, ptx::Type type, unsigned half);
  Value* set_of(const Instruction& i, ptx::Type result, llvm::ArrayRef<Value*> truths);

  // Floats: translate_float.cpp
  Compute op_float_arithmetic, op_fma, op_float_mixed, op_root, op_copysign, op_testp,
      op_float_min_max, op_float_sign;
  static Rounding rounding_of(const Choices& mods);
  Value* flush(Value* value, bool ftz, ptx::Type type = {ptx::Kind::kFloat, 32, 1});
  Value* relu(Value* value);
  Value* clamp(Value* value, bool saturate);
  enum class Arithmetic : std::uint8_t { kAdd, kSub, kMul, kDiv };
  static Arithmetic arithmetic_of(const Instruction& i);
  Value* float_binary(Arithmetic operation, ptx::Type type, Rounding rounding, Value* a, Value* b);
  Value* fused(ptx::Type type, Rounding rounding, Value* a, Value* b, Value* c);
  Value* fused_double(Value* a, Value* b, Value* c);
  Value* odd_float(Value* value);
  Value* make_odd(Value* near, Value* exact, Value* too_big);
  Value* float_extreme(bool minimum, bool propagate, Value* a, Value* b);
  Value* extreme_by_range(bool minimum, Value* a, Value* b);
  Value* is_filled(Value* value, ptx::Type type);

  // Approximations: translate_approximate.cpp
  Compute op_float_divide, op_transcendental;
  Value* power_of_two(Value* x);
  Value* power_by_scaling(Value* x);
  Value* powers_of_two(Value* x);
  Value* quotient_by_scalar(Value* a, Value* b);

  // Conversions: translate_convert.cpp
  Compute op_convert, op_convert_to_small, op_convert_by_bits, op_convert_small_by_bits,
      op_convert_from_small, op_convert_to_exponent, op_convert_from_exponent,
      op_convert_tensor_float, op_pack;
  Value* round_integral(Value* value, int mode);
  Value* round_to_bfloat(Value* value, Rounding rounding);
  Value* round_in_function(Value* value);
  Value* round_by_host(Value* value);
  void expand_roundings();
  Value* round_by_bits(Value* value, Rounding rounding);
  Value* round_to_half(Value* value, Rounding rounding);
  Value* float_to_integer(Value* value, ptx::Type from, ptx::Type to);
  Value* to_16(Value* value, ptx::Type type, const Conversion& how);
  Value* convert_integers(const Instruction& i, ptx::Type from, ptx::Type to, bool saturate);
  Value* convert_integer_to_float(const Instruction& i, ptx::Type from, ptx::Type to,
                                  const Conversion& how);
  Value* convert_floats(const Instruction& i, ptx::Type from, ptx::Type to, const Conversion& how);
  Value* join_parts(Value* low, Value* high, unsigned place);
  Value* part_to_convert(const Instruction& i, ptx::Type packed, unsigned k);
  Value* convert_by_bits(const Instruction& i, const Operand& source, Value* random, unsigned mode);

  // Memory: translate_memory.cpp
  Handle op_load, op_store, op_prefetch, op_multimem, op_fence, op_copy_async, op_copy_group,
      op_nothing, op_elsewhere;
  Compute op_policy;
  Address address(const Instruction& i, const Operand& operand, ptx::Space space);
  Address cluster_address(const Operand& base, std::int64_t offset);
  Value* whole_address(Value* low, ptx::Space space);
  Value* address_lanes(Address& address);
  Value* address_pointer(Address& address);
  Value* address_offsets(Address& address, unsigned scratch_index);
  Value* call_first_active(Value* lanes);
  Value* last_of(Value* lanes);
  Value* dump_address();
  static bool is_consecutive(const Shape& shape, unsigned bytes);
  static std::uint8_t scope_of(const Choices& mods);
  void check(Address& address, AccessCode code, Value* lanes = nullptr, const Stored& values = {});
  void judge(Address& address, AccessCode code, Value* lanes, const Stored& values = {});
  void check_load(Address& address, const Access& access, llvm::ArrayRef<Operand> results);
  void check_store(Address& address, const Access& access, llvm::ArrayRef<Operand> sources);
  static AccessCode access_code(const Access& access, AccessCode::Kind kind);
  /// Whether no instruction reads the register.
  [[nodiscard]] bool is_unread(const Operand& result) const;
  void check_overlap(const Address& address, const Access& access);
  void check_copy(Address& to, Address& from, Value* sizes, std::uint8_t bytes);
  Access parse_access(const Instruction& i) const;
  std::vector<Operand> elements_of(const Instruction& i, const Operand& operand,
                                   std::size_t count) const;
  void load_strong(const Access& access, Address& address, llvm::ArrayRef<Operand> results);
  void store_strong(const Access& access, Address& address, llvm::ArrayRef<Value*> values);
  Value* somewhere(Value* pointer);

  std::vector<Value*> values_to_keep(const Access& access, llvm::ArrayRef<Operand> results);
  void load_consecutive(const Access& access, Address& address, llvm::ArrayRef<Operand> results);
  void copy_lanes(Value* to, Value* from, const Access& access, Value* lanes);
  Value* whole_vectors(Value* pointer, Value* lanes, llvm::function_ref<void()> otherwise);
  void load_apart(const Access& access, Value* lanes, llvm::ArrayRef<Operand> results);
  Value* extended(const Operand& result, Value* value, ptx::Type type);
  void write_loaded(const Operand& result, Value* value, ptx::Type type);
  MultimemCode multimem_code(const Instruction& i) const;

  // Prefetching: translate_streams.cpp
  BitSet find_block_registers() const;
  void find_streams(const std::function<std::uint32_t(std::uint32_t)>& place);
  void prefetch_next(const Instruction& i, const Access& access, const Address& address);

  // Recomputed values: translate_recompute.cpp
  void find_recomputed();
  void recompute(int reg);

  // Work that one warp does for all of its block: translate_common.cpp
  void find_common_work();
  void emit_common_work(int block);

  // Atomics: translate_atomic.cpp
  Handle op_atomic, op_atomic_vector;
  static AtomicKind atomic_kind(ptx::Type type);
  static AccessCode atomic_access(const Instruction& i);
  static bool operates_on(AtomicOp operation, ptx::Type type);
  void reduce(const Instruction& i, ptx::Space space);
  void atomic_pair(const Instruction& i, ptx::Space space);

  // mbarrier objects, bulk copies and clusters: translate_cluster.cpp
  Compute op_mbarrier, op_pending_count, op_map_address, op_cluster_rank;
  Handle op_copy_arrive, op_store_async, op_reduce_async, op_cluster_barrier;
  Address barrier_address(const Instruction& i, const Operand& operand);
  Value* mbarrier(Address& where, MbarrierCode code, AccessCode access, Value* counts,
                  Value* states);
  void complete_bytes(const Instruction& i, std::size_t n, ptx::Space space, Value* bytes);
  [[nodiscard]] bool maps_addresses() const;
  Value* cluster_pointer(Value* lanes, bool to_shared);

  // Bulk copies: translate_bulk.cpp
  Handle op_copy_bulk, op_prefetch_bulk, op_store_bulk, op_try_cancel, op_copy_tensor,
      op_replace_tensormap, op_copy_tensormap, op_bulk_group, op_fence_async;
  Compute op_query_cancel;
  void copy_bulk(const Instruction& i, BulkCode code, Value* to, Value* from);
  Value* bulk_address(const Instruction& i, std::size_t operand, ptx::Space space);
  void set_reduction(const Instruction& i, BulkCode& code) const;

  // Whole warps: translate_warp.cpp
  Compute op_shuffle, op_vote, op_active_mask, op_match, op_reduce, op_reduce_float,
      op_barrier_reduce, op_movmatrix;
  Handle op_elect, op_warp_barrier, op_barrier, op_sleep, op_trap, op_ldmatrix, op_stmatrix;
  void check_members(const Operand& members, Value* awaited = nullptr);
  Value* reduce(const Instruction& i, unsigned op, bool is_signed, Value* a);
  Value* uniform_operand(const Instruction& i, std::size_t n);
  Value* barrier(Value* id, Value* threads, Value* votes, BarrierKind how);
  Matrices parse_matrices(const Instruction& i, std::size_t memory);
  Value* transposed(Value* matrix);
  Value* transposed_bytes(Value* matrix);
  Value* row_pointer(Address& address, unsigned lane);
  bool passes_in_slot(const Operand& operand) const;
  std::uint32_t place_of_input(const Operand& operand, unsigned scratch_index);
  std::uint32_t place_of_result(const Operand& operand, unsigned scratch_index) const;
  void take_result(const Operand& operand, unsigned scratch_index);

  // mma: translate_mma.cpp
  bool adds_as_hopper(std::uint32_t code) const;
  std::uint32_t mma_code(const Instruction& i) const;
  std::uint32_t emit_mma(std::uint32_t first, std::uint32_t last);

  // wmma, and the shapes of mma that go one by one: translate_matrix.cpp
  Handle op_matrix, op_wmma_memory;
  MatrixCode matrix_code(const Instruction& i) const;
  Value* constant_code(const MatrixCode& code);
  void check_types(const Instruction& i, const MatrixCode& code) const;
  std::uint8_t choice_of(const Instruction& i, std::size_t n, const Operand& operand, unsigned end,
                         unsigned step) const;
  Value* scale_selectors(const Instruction& i, std::size_t n, unsigned scales);
  void check_matrix(const MatrixCode& code, ptx::Space space, Value* base, Value* stride,
                    AccessCode::Kind kind);
  // Warp groups: translate_wgmma.cpp
  Handle op_wgmma, op_wgmma_fence, op_wgmma_commit, op_wgmma_wait;
  std::uint32_t wgmma_type(const Instruction& i) const;
  WgmmaCode wgmma_code(const Instruction& i) const;
  MatrixCode sparse_code(const Instruction& i) const;
  std::uint32_t place_of_accumulator(const Instruction& i, const Operand& operand);
  Value* first_lane(const Operand& operand, unsigned bits);
  Value* lanes_here();
  void number_accumulators();
  std::uint32_t number_of(const Operand& reg) const;
  void order_wgmma(bool fences);
  void track_accumulators(const Instruction& i);

  // Tensor memory: translate_tensor_memory.cpp
  Handle op_tensor_alloc, op_tensor_dealloc, op_tensor_relinquish, op_tensor_load, op_tensor_store,
      op_tensor_wait, op_tensor_fence, op_tensor_commit, op_tensor_copy, op_tensor_multiply;
  Value* tensor_address(const Operand& operand);
  TensorMoveCode tensor_move_code(const Instruction& i, std::size_t registers) const;
  TensorMmaCode tensor_mma_code(const Instruction& i) const;

  llvm::Module& out_;
  llvm::LLVMContext& llvm_;
  const ptx::Module& module_;
  const ptx::Function& function_;
  const Layout& layout_;
  bool aligned_;
  Instrumentation instrumentation_;
  HostCode host_;
  MatrixSums sums_;
  ControlFlow flow_;
  CountSites sites_;
  std::vector<JoinedLoad> joined_;  ///< by instruction, if accesses are counted
  JoinedLoad joined_now_;
  ShapeAnalysis shapes_;
  llvm::IRBuilder<llvm::TargetFolder> b_;
  /// A function that rounds 32 f32 to bf16, until expand_roundings(); null if the host cannot.
  llvm::Function* round_ = nullptr;
  WideValues wide_;
  /// For results of min and max: the same result with the NaN's original payload.
  llvm::DenseMap<Value*, Value*> raw_extremes_;

  llvm::Function* kernel_ = nullptr;
  Value* context_ = nullptr;
  Value* registers_ = nullptr;
  std::vector<std::int32_t> slots_;
  std::vector<bool> in_place_;               ///< by register: helpers access it in its slot
  std::vector<std::int32_t> recomputed_;     ///< by register: the instruction to recompute it with;
                                             ///< -1 if kept
  std::vector<std::int32_t> stream_slots_;   ///< by instruction: slot of its last address; -1 for
                                             ///< none
  std::vector<bool> is_common_;              ///< by instruction: it is common work
  std::vector<bool> is_common_result_;       ///< by register
  std::vector<std::int32_t> defined_slots_;  ///< by register: slot with the lanes that wrote it; -1
                                             ///< for all
  std::uint32_t register_bytes_ = 0;

  // Slots of the control flow's state in the register file. It is in memory, because its values
  // would meet in a phi at every join, which costs the code generator more than everything else.
  std::vector<std::uint32_t> pending_slots_;  ///< by block: lanes waiting to run it
  std::uint32_t live_slot_ = 0;
  std::uint32_t mask_slot_ = 0;
  std::vector<std::uint32_t> bits_slots_;  ///< by component: its pending blocks
  std::vector<unsigned> bits_words_;       ///< by component: size of that in 64-bit words
  std::vector<std::uint32_t> rotate_slots_;
  std::vector<llvm::BasicBlock*> dispatchers_;
  std::vector<llvm::BasicBlock*> copies_[2];
  std::vector<std::pair<int, bool>> work_;
  std::unordered_map<int, Inheritance> inherited_;  ///< by block
  std::vector<llvm::BasicBlock*> resumes_;          ///< where a parked warp goes on
  std::vector<bool> may_pend_;
  std::vector<bool> may_be_partial_;
  std::vector<std::int32_t> accumulators_;  ///< by register: its number in wgmma checks, or -1
  BitSet read_;  ///< registers that some instruction reads, if accesses are checked
  std::vector<int> component_order_;  ///< position of a block in its component

  // State while a block is emitted.
  std::unordered_map<int, Cached> cache_;
  std::unordered_map<int, llvm::PHINode*> carried_;  ///< values carried by a one-block loop
  Value* mask_ = nullptr;                            ///< <32 x i1>, null for all lanes
  Value* mask_bits_ = nullptr;                       ///< i32, ~0 for all
  Value* parked_ = nullptr;  ///< of its last barrier: how the run ends, kEnds to go on
  Value* guard_lanes_ = nullptr;
  Value* guard_scalar_ = nullptr;
  bool divergent_ = false;
  bool looks_ = false;  ///< Block::looks
  bool recomputing_ = false;
  bool scalar_ = false;  ///< the current instruction computes on bases
  Shape result_shape_;
  std::uint32_t line_ = 0;
};

}  // namespace braid::cpu
