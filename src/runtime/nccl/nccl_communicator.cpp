#include "runtime/nccl/nccl_communicator.h"

#include <fmt/format.h>

#include <chrono>
#include <cstring>
#include <functional>
#include <mutex>
#include <thread>
#include <type_traits>
#include <utility>

#include "braid/error.h"
#include "ir/fail.h"
#include "lowering/plan/residency.h"
#include "runtime/nccl/nccl_api.h"

namespace braid {
namespace {

using nccl::Result;

constexpr auto kPollPeriod = std::chrono::microseconds(50);
constexpr int kFirstWithFloat8 = 22400;

constexpr std::pair<ReduceOp, nccl::RedOp> kRedOps[] = {{ReduceOp::kSum, nccl::kSum},
                                                        {ReduceOp::kAvg, nccl::kAvg},
                                                        {ReduceOp::kMax, nccl::kMax},
                                                        {ReduceOp::kMin, nccl::kMin},
                                                        {ReduceOp::kProduct, nccl::kProd}};
/// Those that NCCL can reduce.
constexpr std::pair<DType, nccl::DataType> kDataTypes[] = {
    {DType::kF32, nccl::kFloat32},      {DType::kF16, nccl::kFloat16},
    {DType::kBF16, nccl::kBfloat16},    {DType::kI32, nccl::kInt32},
    {DType::kI64, nccl::kInt64},        {DType::kI8, nccl::kInt8},
    {DType::kU8, nccl::kUint8},         {DType::kF8E4M3, nccl::kFloat8e4m3},
    {DType::kF8E5M2, nccl::kFloat8e5m2}};

/// NCCL's number for a key of the table; -1 if it has none.
template <class Table, class Key>
int number_of(const Table& table, Key key) {
  for (const auto& [known, number] : table) {
    if (known == key) return number;
  }
  return -1;
}

template <class T>
T* at(std::uint64_t address) {
  return reinterpret_cast<T*>(address);
}

class NcclCommunicator final : public Communicator {
 public:
  NcclCommunicator(Device& device, NcclOptions options)
      : Communicator(device, options.rank),
        api_(nccl::Api::get()),
        device_(device),
        options_(std::move(options)),
        where_(fmt::format("group '{}', rank {}", options_.group, options_.rank)),
        comm_(static_cast<nccl::Comm>(options_.callers)) {}
  ~NcclCommunicator() override { release(); }

  /// The first member creates the id for all.
  [[nodiscard]] std::string offer() override {
    if (options_.index != 0 || options_.callers != nullptr) return {};
    nccl::UniqueId id{};
    run(api_.ncclGetUniqueId, &id);
    return {id.internal, sizeof id.internal};
  }
  void connect(std::span<const std::string> offers) override {
    if (options_.callers != nullptr) return check_callers();
    release();
    nccl::UniqueId id{};
    if (offers[0].size() != sizeof id.internal) {
      throw_internal(where_, "an id of {} bytes; expected {}", offers[0].size(),
                     sizeof id.internal);
    }
    std::memcpy(id.internal, offers[0].data(), sizeof id.internal);
    nccl::Config config;
    config.blocking = 0;  // non-blocking, so that waiting for a missing member can be given up
    config.max_ctas = static_cast<int>(kCommunicatorBlocks);
    ready_ = aborted_ = false;
    device_.with_current(options_.rank, [&] {
      run(api_.ncclCommInitRankConfig, &comm_, static_cast<int>(options_.members), id,
          static_cast<int>(options_.index), &config);
    });
  }
  void begin_group() override { run(api_.ncclGroupStart); }
  void end_group() override { run(api_.ncclGroupEnd); }
  void settle() override {
    const auto deadline =
        std::chrono::steady_clock::now() + std::chrono::nanoseconds(options_.timeout_ns);
    for (;;) {
      Result state = nccl::kSuccess;
      {
        const std::lock_guard lock(mutex_);
        if (aborted_) throw_environment(where_, "the communicator was aborted");
        run(api_.ncclCommGetAsyncError, comm_, &state);
      }
      check(state, "ncclCommGetAsyncError");
      ready_ = state == nccl::kSuccess;
      if (ready_) return;
      if (std::chrono::steady_clock::now() > deadline) {
        abort();
        throw Error(ErrorCode::kTimeout, where_,
                    fmt::format("the other members did not come within {:g} s",
                                static_cast<double>(options_.timeout_ns) * 1e-9));
      }
      std::this_thread::sleep_for(kPollPeriod);
    }
  }
  void enqueue(const CollectiveCall& work, Stream& stream) override {
    auto* handle = static_cast<nccl::StreamHandle>(stream.handle());
    const std::lock_guard lock(mutex_);
    if (aborted_ || comm_ == nullptr) {
      throw_environment(where_, "the communicator was aborted; expected recover() first");
    }
    const auto enqueued = [&] { call(work, handle); };
    device_.with_current(options_.rank, std::ref(enqueued));  // called through a reference, which
                                                              // needs no memory
  }
  [[nodiscard]] std::string async_error() override {
    const std::lock_guard lock(mutex_);
    if (comm_ == nullptr || aborted_) return {};
    Result state = nccl::kSuccess;
    if (api_.ncclCommGetAsyncError(comm_, &state) != nccl::kSuccess) return {};
    if (state == nccl::kSuccess || state == nccl::kInProgress) return {};
    try {
      check(state, "a peer or a link failed");
    } catch (const Error& error) {
      return error.what();
    }
    return {};
  }
  void abort() noexcept override {
    const std::lock_guard lock(mutex_);
    if (aborted_ || comm_ == nullptr) return;
    aborted_ = true;
    try {
      device_.with_current(options_.rank, [&] { api_.ncclCommAbort(comm_); });
    } catch (const Error&) {  // NOLINT(bugprone-empty-catch)
      // A lost device ends all work by itself.
    }
  }

 private:
  void check(Result result, const char* call) const { api_.check(result, call, comm_, where_); }
  /// Calls a function and checks its result.
  template <class... Parameters>
  void run(const LibraryFunction<nccl::Result(Parameters...)>& function,
           std::type_identity_t<Parameters>... args) const {
    check(function(args...), function.name);
  }
  void check_callers() const {
    if (aborted_) {
      throw_environment(where_,
                        "the caller's ncclComm_t was aborted when a peer was lost; expected a "
                        "new world with a new one");
    }
    int ranks = 0;
    int rank = 0;
    run(api_.ncclCommCount, comm_, &ranks);
    run(api_.ncclCommUserRank, comm_, &rank);
    if (ranks == static_cast<int>(options_.members) && rank == static_cast<int>(options_.index))
      return;
    throw_invalid(where_, "the caller's ncclComm_t is of rank {} of {}; expected rank {} of {}",
                  rank, ranks, options_.index, options_.members);
  }
  void call(const CollectiveCall& work, nccl::StreamHandle stream) {
    using Op = CollectiveCall::Op;
    const void* send = at<const void>(work.send);
    void* receive = at<void>(work.receive);
    const std::size_t bytes = work.count * dtype_size(work.dtype);
    if (work.op == Op::kAllToAll) return all_to_all(work, stream);
    // Data that is only moved is treated as bytes.
    if (work.op == Op::kBroadcast) {
      return run(api_.ncclBroadcast, send, receive, bytes, nccl::kUint8, work.root, comm_, stream);
    }
    if (work.op == Op::kAllGather) {
      return run(api_.ncclAllGather, send, receive, bytes, nccl::kUint8, comm_, stream);
    }
    const nccl::DataType type = number_of(kDataTypes, work.dtype);
    if (type < 0 || (is_float8(work.dtype) && api_.number < kFirstWithFloat8)) {
      throw_invalid(
          where_,
          "NCCL {} cannot reduce {}; expected f32, f16, bf16, i32, i64, i8, u8, or with NCCL "
          "2.24 f8e4m3 or f8e5m2",
          api_.version, dtype_name(work.dtype));
    }
    const nccl::RedOp op = number_of(kRedOps, work.reduce);
    if (work.op == Op::kAllReduce) {
      return run(api_.ncclAllReduce, send, receive, work.count, type, op, comm_, stream);
    }
    run(api_.ncclReduceScatter, send, receive, work.count / options_.members, type, op, comm_,
        stream);
  }
  void all_to_all(const CollectiveCall& work, nccl::StreamHandle stream) {
    const std::size_t size = dtype_size(work.dtype);
    std::uint64_t send = work.send;
    std::uint64_t receive = work.receive;
    GroupCall group(*this);
    for (std::size_t member = 0; member < options_.members; ++member) {
      const std::size_t there = work.send_counts[member] * size;
      const std::size_t back = work.receive_counts[member] * size;
      const int peer = static_cast<int>(member);
      if (there > 0) {
        run(api_.ncclSend, at<const void>(send), there, nccl::kUint8, peer, comm_, stream);
      }
      if (back > 0) run(api_.ncclRecv, at<void>(receive), back, nccl::kUint8, peer, comm_, stream);
      send += there;
      receive += back;
    }
    group.end();
  }
  /// Destroys the communicator, which must not be in use.
  void release() noexcept {
    const std::lock_guard lock(mutex_);
    const nccl::Comm comm = std::exchange(comm_, nullptr);
    if (comm == nullptr || aborted_ || options_.callers != nullptr) return;
    try {
      // A communicator that is not ready would wait for the others.
      device_.with_current(options_.rank,
                           [&] { ready_ ? api_.ncclCommDestroy(comm) : api_.ncclCommAbort(comm); });
    } catch (const Error&) {  // NOLINT(bugprone-empty-catch)
    }
  }

  const nccl::Api& api_;
  Device& device_;
  NcclOptions options_;
  std::string where_;  ///< for errors: "group 'tp', rank 1"
  std::mutex mutex_;   ///< guards comm_ and aborted_, which abort() uses from another thread
  nccl::Comm comm_ = nullptr;
  bool ready_ = false;  ///< all members have joined
  bool aborted_ = false;
};

}  // namespace

std::unique_ptr<Communicator> make_nccl_communicator(Device& device, NcclOptions options) {
  return std::make_unique<NcclCommunicator>(device, std::move(options));
}

}  // namespace braid
