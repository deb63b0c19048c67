#include "runtime/nccl/nccl_communicator.h"

#include <fmt/format.h>

#include <chrono>
#include <cstring>
#include <functional>
#include <thread>
#include <utility>

#include "braid/error.h"
#include "lowering/plan/residency.h"

namespace braid {
namespace {

using nccl::Result;

constexpr auto kPollPeriod = std::chrono::microseconds(50);
constexpr int kFirstWithFloat8 = 22400;

nccl::RedOp red_op(ReduceOp op) {
  switch (op) {
    case ReduceOp::kSum:
      return nccl::kSum;
    case ReduceOp::kAvg:
      return nccl::kAvg;
    case ReduceOp::kMax:
      return nccl::kMax;
    case ReduceOp::kMin:
      return nccl::kMin;
    case ReduceOp::kProduct:
      return nccl::kProd;
  }
  return nccl::kSum;
}

/// The NCCL type in which the dtype is reduced; -1 if NCCL cannot.
nccl::DataType data_type(DType dtype, int version) {
  switch (dtype) {
    case DType::kF32:
      return nccl::kFloat32;
    case DType::kF16:
      return nccl::kFloat16;
    case DType::kBF16:
      return nccl::kBfloat16;
    case DType::kI32:
      return nccl::kInt32;
    case DType::kI64:
      return nccl::kInt64;
    case DType::kU8:
      return nccl::kUint8;
    case DType::kF8E4M3:
      return version < kFirstWithFloat8 ? -1 : nccl::kFloat8e4m3;
    case DType::kF8E5M2:
      return version < kFirstWithFloat8 ? -1 : nccl::kFloat8e5m2;
    case DType::kBool:
      return -1;
  }
  return -1;
}

template <class T>
T* at(std::uint64_t address) {
  return reinterpret_cast<T*>(address);
}

}  // namespace

NcclCommunicator::NcclCommunicator(Device& device, Options options)
    : Communicator(device, options.rank),
      api_(nccl::Api::get()),
      device_(device),
      options_(std::move(options)),
      where_(fmt::format("group '{}', rank {}", options_.group, options_.rank)),
      comm_(static_cast<nccl::Comm>(options_.callers)) {}

NcclCommunicator::~NcclCommunicator() { release(); }

void NcclCommunicator::check(Result result, const char* call) const {
  api_.check(result, call, comm_, where_);
}

/// The first member creates the id for all.
std::string NcclCommunicator::offer() {
  if (options_.index != 0 || options_.callers != nullptr) return {};
  nccl::UniqueId id{};
  check(api_.ncclGetUniqueId(&id), "ncclGetUniqueId");
  return {id.internal, sizeof id.internal};
}

void NcclCommunicator::connect(std::span<const std::string> offers) {
  if (options_.callers != nullptr) return check_callers();
  release();
  nccl::UniqueId id{};
  if (offers[0].size() != sizeof id.internal) {
    throw_internal(where_, fmt::format("an id of {} bytes; expected {}", offers[0].size(),
                                       sizeof id.internal));
  }
  std::memcpy(id.internal, offers[0].data(), sizeof id.internal);
  nccl::Config config;
  config.blocking = 0;  // non-blocking, so that waiting for a missing member can be given up
  config.max_ctas = static_cast<int>(kCommunicatorBlocks);
  ready_ = aborted_ = false;
  device_.with_current(options_.rank, [&] {
    check(api_.ncclCommInitRankConfig(&comm_, static_cast<int>(options_.members), id,
                                      static_cast<int>(options_.index), &config),
          "ncclCommInitRankConfig");
  });
}

void NcclCommunicator::check_callers() const {
  if (aborted_) {
    throw_environment(where_,
                      "the caller's ncclComm_t was aborted when a peer was lost; expected a "
                      "new world with a new one");
  }
  int ranks = 0;
  int rank = 0;
  check(api_.ncclCommCount(comm_, &ranks), "ncclCommCount");
  check(api_.ncclCommUserRank(comm_, &rank), "ncclCommUserRank");
  if (ranks == static_cast<int>(options_.members) && rank == static_cast<int>(options_.index))
    return;
  throw_invalid(where_, fmt::format("the caller's ncclComm_t is of rank {} of {}; expected rank {} "
                                    "of {}",
                                    rank, ranks, options_.index, options_.members));
}

void NcclCommunicator::begin_group() { check(api_.ncclGroupStart(), "ncclGroupStart"); }

void NcclCommunicator::end_group() { check(api_.ncclGroupEnd(), "ncclGroupEnd"); }

void NcclCommunicator::settle() {
  const auto deadline =
      std::chrono::steady_clock::now() + std::chrono::nanoseconds(options_.timeout_ns);
  for (;;) {
    Result state = nccl::kSuccess;
    {
      const std::lock_guard lock(mutex_);
      if (aborted_) throw_environment(where_, "the communicator was aborted");
      check(api_.ncclCommGetAsyncError(comm_, &state), "ncclCommGetAsyncError");
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

void NcclCommunicator::enqueue(const CollectiveCall& work, Stream& stream) {
  auto* handle = static_cast<nccl::StreamHandle>(stream.handle());
  const std::lock_guard lock(mutex_);
  if (aborted_ || comm_ == nullptr) {
    throw_environment(where_, "the communicator was aborted; expected recover() first");
  }
  const auto enqueued = [&] { call(work, handle); };
  device_.with_current(options_.rank, std::ref(enqueued));  // called through a reference, which
                                                            // needs no memory
}

void NcclCommunicator::call(const CollectiveCall& work, nccl::StreamHandle stream) {
  using Op = CollectiveCall::Op;
  const void* send = at<const void>(work.send);
  void* receive = at<void>(work.receive);
  const std::size_t bytes = work.count * dtype_size(work.dtype);
  if (work.op == Op::kAllToAll) return all_to_all(work, stream);
  // Data that is only moved is treated as bytes.
  if (work.op == Op::kBroadcast) {
    return check(api_.ncclBroadcast(send, receive, bytes, nccl::kUint8, work.root, comm_, stream),
                 "ncclBroadcast");
  }
  if (work.op == Op::kAllGather) {
    return check(api_.ncclAllGather(send, receive, bytes, nccl::kUint8, comm_, stream),
                 "ncclAllGather");
  }
  const nccl::DataType type = data_type(work.dtype, api_.number);
  if (type < 0) {
    throw_invalid(where_,
                  fmt::format("NCCL {} cannot reduce {}; expected f32, f16, bf16, i32, i64, "
                              "u8, or with NCCL 2.24 f8e4m3 or f8e5m2",
                              api_.version, dtype_name(work.dtype)));
  }
  const nccl::RedOp op = red_op(work.reduce);
  if (work.op == Op::kAllReduce) {
    return check(api_.ncclAllReduce(send, receive, work.count, type, op, comm_, stream),
                 "ncclAllReduce");
  }
  check(
      api_.ncclReduceScatter(send, receive, work.count / options_.members, type, op, comm_, stream),
      "ncclReduceScatter");
}

void NcclCommunicator::all_to_all(const CollectiveCall& work, nccl::StreamHandle stream) {
  const std::size_t size = dtype_size(work.dtype);
  std::uint64_t send = work.send;
  std::uint64_t receive = work.receive;
  GroupCall group(*this);
  for (std::size_t member = 0; member < options_.members; ++member) {
    const std::size_t there = work.send_counts[member] * size;
    const std::size_t back = work.receive_counts[member] * size;
    const int peer = static_cast<int>(member);
    if (there > 0) {
      check(api_.ncclSend(at<const void>(send), there, nccl::kUint8, peer, comm_, stream),
            "ncclSend");
    }
    if (back > 0) {
      check(api_.ncclRecv(at<void>(receive), back, nccl::kUint8, peer, comm_, stream), "ncclRecv");
    }
    send += there;
    receive += back;
  }
  group.end();
}

std::string NcclCommunicator::async_error() {
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

void NcclCommunicator::abort() noexcept {
  const std::lock_guard lock(mutex_);
  if (aborted_ || comm_ == nullptr) return;
  aborted_ = true;
  try {
    device_.with_current(options_.rank, [&] { api_.ncclCommAbort(comm_); });
  } catch (const Error&) {  // NOLINT(bugprone-empty-catch)
    // A lost device ends all work by itself.
  }
}

void NcclCommunicator::release() noexcept {
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

}  // namespace braid
