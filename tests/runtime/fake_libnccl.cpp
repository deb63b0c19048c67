// A stand-in for NCCL: the calls of src/runtime/nccl/nccl_api.h over the stand-in driver's memory
// and streams, and POSIX shared memory between processes. It checks arguments, buffers, streams and
// the current GPU, that all members make the same calls in the same order (else they all fail), and
// group calls; counts live communicators; and fails the call it is told to fail.
#include "runtime/fake_libnccl.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "braid/tensor.h"
#include "runtime/fake_nccl_segment.h"

namespace {

using braid::DType;
using braid::HostTensor;
using braid::fake::kMaxMembers;
using braid::fake::kOperandBytes;
using braid::fake::Operation;
using braid::fake::Segment;
using Kind = Operation::Kind;

constexpr int kInvalidArgument = 4;
constexpr int kSystemError = 2;
constexpr int kInternalError = 3;
constexpr int kInvalidUsage = 5;
constexpr int kInProgress = 7;
constexpr auto kLongest = std::chrono::seconds(20);

struct UniqueId {
  char internal[128];
};
/// ncclConfig_t, as far as it is looked at.
struct Config {
  std::size_t size;
  unsigned magic, version;
  int blocking, cga_cluster_size, min_ctas, max_ctas;
};

int number(const char* variable, int otherwise) {
  const char* text = std::getenv(variable);
  return text == nullptr ? otherwise : std::atoi(text);
}

struct State {
  State() {
    control.version = number("FAKE_NCCL_VERSION", control.version);
    control.fail_call = number("FAKE_NCCL_FAIL_CALL", 0);
  }
  ~State() {
    if (control.live_comms != 0) {
      std::fprintf(stderr, "stand-in: %d communicators leaked\n", control.live_comms);
    }
  }
  std::mutex mutex;
  braid::FakeNccl control;
  std::string last_error;
};
State& state() {
  static State instance;
  return instance;
}

int failed(int result, std::string why) {
  const std::lock_guard lock(state().mutex);
  state().last_error = std::move(why);
  return result;
}

/// The error that this call is told to fail with, or 0.
int enter(const char* call) {
  const std::lock_guard lock(state().mutex);
  braid::FakeNccl& control = state().control;
  const bool now = ++control.calls == control.fail_call;
  if (!now && control.fail != call) return 0;
  state().last_error = "told to fail";
  return control.error;
}

/// A function of the driver that braid has loaded.
template <class Function>
Function driver(const char* name) {
  static void* library = dlopen(std::getenv("BRAID_LIBCUDA"), RTLD_NOW | RTLD_LOCAL);
  return reinterpret_cast<Function>(dlsym(library, name));
}
int current_gpu() {
  int gpu = -1;
  return driver<int (*)(int*)>("cuCtxGetDevice")(&gpu) == 0 ? gpu : -1;
}
void* current_context() {
  void* context = nullptr;
  driver<int (*)(void**)>("cuCtxGetCurrent")(&context);
  return context;
}
bool lies_on(int gpu, const void* memory, std::size_t bytes) {
  const auto address = reinterpret_cast<unsigned long long>(memory);
  return driver<int (*)(unsigned long long, std::size_t)>("fake_cuda_owner")(address, bytes) == gpu;
}

/// One communicator; work in flight holds it, too.
struct Comm {
  std::string name;
  int members = 0, index = 0, gpu = 0;
  void* context = nullptr;
  bool blocking = true;
  std::unique_ptr<Segment> segment;
  std::thread init;
  std::atomic<int> result = kInProgress;  ///< of the communicator
  std::atomic<bool> aborted = false;
  std::atomic<int> in_flight = 0;

  ~Comm() {
    if (init.joinable()) init.join();
  }
  [[nodiscard]] std::function<bool()> stop() {
    const auto deadline = std::chrono::steady_clock::now() + kLongest;
    return [this, deadline] { return aborted || std::chrono::steady_clock::now() > deadline; };
  }
  void meet() {
    int outcome = 0;
    if (!segment->meet(stop())) outcome = kSystemError;
    for (int m = 0; m < members && outcome == 0; ++m) {
      const bool same = segment->gpu(m) == gpu && segment->process(m) == segment->process(index);
      if (m == index || !same) continue;
      outcome = failed(kInvalidUsage, fmt::format("Duplicate GPU detected : rank {} and rank {} "
                                                  "both on CUDA device {}",
                                                  index, m, gpu));
    }
    result = outcome;
  }
};
using CommRef = std::shared_ptr<Comm>;

DType dtype_of(int type) {
  switch (type) {
    case 0:
      return DType::kI8;
    case 2:
      return DType::kI32;
    case 4:
      return DType::kI64;
    case 6:
      return DType::kF16;
    case 7:
      return DType::kF32;
    case 9:
      return DType::kBF16;
    default:
      return DType::kU8;
  }
}

std::vector<double> values_of(const std::uint8_t* bytes, DType dtype, std::size_t count) {
  HostTensor tensor;
  tensor.dtype = dtype;
  tensor.shape = {static_cast<std::int64_t>(count)};
  const auto* from = reinterpret_cast<const std::byte*>(bytes);
  tensor.data.assign(from, from + count * dtype_size(dtype));
  return tensor.to_doubles();
}

double reduced(int op, double a, double b) {
  switch (op) {
    case 1:
      return a * b;
    case 2:
      return std::max(a, b);
    case 3:
      return std::min(a, b);
    default:
      return a + b;
  }
}

/// One collective of one member.
struct Task {
  CommRef comm;
  const char* call = "";
  void* stream = nullptr;
  Operation operation;
  std::vector<std::pair<const std::uint8_t*, std::size_t>> sends;  ///< of an exchange, by member
  std::vector<std::uint8_t*> receives;
  bool lost = false;

  void run();
  void finish();
  void exchange_chunks();
  void reduce(std::size_t first, std::size_t count);
};

void Task::reduce(std::size_t first, std::size_t count) {
  const DType dtype = dtype_of(operation.type);
  const std::size_t size = dtype_size(dtype);
  std::vector<double> result = values_of(comm->segment->operand(0) + first * size, dtype, count);
  for (int m = 1; m < comm->members; ++m) {
    const auto more = values_of(comm->segment->operand(m) + first * size, dtype, count);
    for (std::size_t i = 0; i < count; ++i)
      result[i] = reduced(operation.reduce, result[i], more[i]);
  }
  for (double& value : result) value /= operation.reduce == 4 ? comm->members : 1;
  const HostTensor rounded =
      HostTensor::from_doubles(dtype, {static_cast<std::int64_t>(count)}, result);
  std::memcpy(receives[0], rounded.data.data(), count * size);
}

void Task::exchange_chunks() {
  for (int from = 0; from < comm->members; ++from) {
    const Operation& theirs = comm->segment->operation(from);
    const std::uint8_t* chunk = comm->segment->operand(from);
    for (int to = 0; to < comm->index; ++to) chunk += theirs.sends[static_cast<std::size_t>(to)];
    const std::uint64_t bytes = theirs.sends[static_cast<std::size_t>(comm->index)];
    if (bytes > 0) std::memcpy(receives[static_cast<std::size_t>(from)], chunk, bytes);
  }
}

void Task::finish() {
  const std::uint64_t bytes = operation.count * dtype_size(dtype_of(operation.type));
  switch (operation.kind) {
    case Kind::kAllReduce:
      return reduce(0, operation.count);
    case Kind::kReduceScatter:
      return reduce(static_cast<std::size_t>(comm->index) * operation.count, operation.count);
    case Kind::kBroadcast:
      std::memcpy(receives[0], comm->segment->operand(operation.root), bytes);
      return;
    case Kind::kAllGather:
      for (int m = 0; m < comm->members; ++m) {
        std::memcpy(receives[0] + static_cast<std::size_t>(m) * bytes, comm->segment->operand(m),
                    bytes);
      }
      return;
    case Kind::kExchange:
      return exchange_chunks();
    case Kind::kNone:
      return;
  }
}

/// Why the members do not make one call; empty where they do.
std::string mismatch(const Comm& comm) {
  const Operation& own = comm.segment->operation(comm.index);
  for (int m = 0; m < comm.members; ++m) {
    const Operation& other = comm.segment->operation(m);
    bool same = other.kind == own.kind && other.type == own.type && other.reduce == own.reduce &&
                other.root == own.root && other.count == own.count;
    for (int a = 0; a < comm.members && own.kind == Kind::kExchange; ++a) {
      // Every pair is looked at, so that all members find the same.
      same = same && comm.segment->operation(a).sends[static_cast<std::size_t>(m)] ==
                         other.receives[static_cast<std::size_t>(a)];
    }
    if (!same) return fmt::format("ranks {} and {} do not make the same call", comm.index, m);
  }
  return {};
}

void Task::run() {
  std::vector<std::uint8_t> operand;
  for (const auto& [from, bytes] : sends) operand.insert(operand.end(), from, from + bytes);
  // A lost one waits as a kernel whose peer is gone would.
  const auto stop = comm->stop();
  while (lost && !stop()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  if (lost || comm->aborted ||
      !comm->segment->exchange(operation, operand.data(), operand.size(), stop)) {
    if (comm->result == 0) comm->result = failed(kSystemError, "a peer did not come");
    return;
  }
  if (const std::string why = mismatch(*comm); !why.empty()) {
    comm->result = failed(kInvalidUsage, why);
  } else {
    finish();
  }
  comm->segment->leave();
}

thread_local int depth = 0;
thread_local std::vector<Task> queued;
thread_local std::vector<CommRef> starting;
thread_local int group_error = 0;  ///< of a call in the group, which then does nothing

std::mutex comms_mutex;
std::vector<CommRef> comms;

CommRef find(void* handle) {
  const std::lock_guard lock(comms_mutex);
  for (const CommRef& comm : comms) {
    if (comm.get() == handle) return comm;
  }
  return nullptr;
}
CommRef take(void* handle) {
  const std::lock_guard lock(comms_mutex);
  for (std::size_t i = 0; i < comms.size(); ++i) {
    if (comms[i].get() != handle) continue;
    CommRef comm = comms[i];
    comms.erase(comms.begin() + static_cast<std::ptrdiff_t>(i));
    const std::lock_guard state_lock(state().mutex);
    --state().control.live_comms;
    return comm;
  }
  return nullptr;
}

int start(const Task& task) {
  using HostFunction = void (*)(void*);
  if (task.operation.kind == Kind::kExchange) {
    std::size_t bytes = 0;
    for (const auto& [from, size] : task.sends) bytes += size;
    if (bytes > kOperandBytes) return failed(kInternalError, "too much for the stand-in");
  }
  auto* work = new Task(task);
  ++task.comm->in_flight;
  driver<int (*)(void*)>("cuCtxPushCurrent_v2")(task.comm->context);
  const int result = driver<int (*)(void*, HostFunction, void*)>("cuLaunchHostFunc")(
      task.stream,
      [](void* data) {
        const std::unique_ptr<Task> owned(static_cast<Task*>(data));
        owned->run();
        --owned->comm->in_flight;
      },
      work);
  void* popped = nullptr;
  driver<int (*)(void**)>("cuCtxPopCurrent_v2")(&popped);
  if (result == 0) return 0;
  --task.comm->in_flight;
  delete work;
  return failed(1, fmt::format("cuLaunchHostFunc: {}", result));
}

/// All of the outermost group.
int end_group() {
  const std::vector<Task> tasks = std::exchange(queued, {});
  const std::vector<CommRef> inits = std::exchange(starting, {});
  int result = 0;
  for (const CommRef& comm : inits) {
    comm->init = std::thread([comm = comm.get()] { comm->meet(); });
  }
  for (const CommRef& comm : inits) {
    if (!comm->blocking) {
      result = kInProgress;
      continue;
    }
    comm->init.join();
    if (comm->result != 0) return comm->result;
  }
  for (const Task& task : tasks) {
    if (const int error = start(task)) return error;
  }
  return result;
}

void note(const Task& task) {
  const std::lock_guard lock(state().mutex);
  braid::FakeNccl& control = state().control;
  control.ops.push_back(fmt::format("{} {} type {} op {} rank {}", task.call, task.operation.count,
                                    task.operation.type, task.operation.reduce, task.comm->index));
}

/// Into the group's queue, where sends and receives of one member become one exchange.
void queue(Task task) {
  if (task.operation.kind == Kind::kExchange) {
    for (Task& other : queued) {
      if (other.comm != task.comm || other.operation.kind != Kind::kExchange) continue;
      for (std::size_t m = 0; m < kMaxMembers; ++m) {
        other.operation.sends[m] += task.operation.sends[m];
        other.operation.receives[m] += task.operation.receives[m];
        if (task.sends[m].second > 0) other.sends[m] = task.sends[m];
        if (task.receives[m] != nullptr) other.receives[m] = task.receives[m];
      }
      return;
    }
  }
  {
    const std::lock_guard lock(state().mutex);
    task.lost = state().control.lose_op > 0 && --state().control.lose_op == 0;
  }
  queued.push_back(std::move(task));
}

/// What every call that enqueues has in common.
struct Call {
  const char* name;
  void* handle;
  void* stream;
  Operation operation;
  const void* send;
  std::uint64_t send_bytes;
  void* receive;
  std::uint64_t receive_bytes;
  int peer = -1;  ///< of a send or receive
};

int check_and_queue(const Call& c) {
  if (const int error = enter(c.name)) return error;
  const CommRef comm = find(c.handle);
  if (comm == nullptr || comm->aborted) return failed(kInvalidArgument, "no communicator");
  if (comm->result != 0) return failed(kInvalidUsage, "the communicator is not ready");
  if (c.operation.type < 0 || c.operation.type > 11 || c.operation.reduce < 0 ||
      c.operation.reduce > 4 || c.operation.root < 0 || c.operation.root >= comm->members ||
      c.peer >= comm->members || c.operation.type == 8 || c.operation.type > 9) {
    return failed(kInvalidArgument, "an argument is out of range");
  }
  if (current_gpu() != comm->gpu) return failed(kInvalidUsage, "another GPU is current");
  if ((c.send_bytes > 0 && !lies_on(comm->gpu, c.send, c.send_bytes)) ||
      (c.receive_bytes > 0 && !lies_on(comm->gpu, c.receive, c.receive_bytes))) {
    return failed(kInvalidArgument, "a buffer does not lie on the GPU");
  }
  Task task{comm, c.name, c.stream, c.operation, {}, {}, false};
  const auto* send = static_cast<const std::uint8_t*>(c.send);
  if (c.operation.kind == Kind::kExchange) {
    const auto peer = static_cast<std::size_t>(c.peer);
    task.sends.resize(kMaxMembers);
    task.receives.resize(kMaxMembers);
    task.operation.sends[peer] = c.send_bytes;
    task.operation.receives[peer] = c.receive_bytes;
    task.sends[peer] = {send, c.send_bytes};
    task.receives[peer] = static_cast<std::uint8_t*>(c.receive);
  } else {
    if (c.send_bytes > kOperandBytes) return failed(kInternalError, "too much for the stand-in");
    task.sends = {{send, c.send_bytes}};
    task.receives = {static_cast<std::uint8_t*>(c.receive)};
  }
  note(task);
  queue(std::move(task));
  return 0;
}

int enqueue(const Call& c) {
  const int error = check_and_queue(c);
  if (depth > 0 && error != 0) group_error = error;
  return depth > 0 || error != 0 ? error : end_group();
}

std::uint64_t size_of(int type) { return dtype_size(dtype_of(type)); }

}  // namespace

extern "C" {

braid::FakeNccl* fake_nccl() { return &state().control; }

int ncclGetVersion(int* version) {
  *version = state().control.version;
  return enter("ncclGetVersion");
}
const char* ncclGetErrorString(int result) {
  static constexpr const char* kTexts[] = {"no error",
                                           "unhandled cuda error",
                                           "unhandled system error",
                                           "internal error",
                                           "invalid argument",
                                           "invalid usage",
                                           "remote process exited or there was a network error",
                                           "NCCL operation in progress"};
  return result >= 0 && result < 8 ? kTexts[result] : "unknown result code";
}
const char* ncclGetLastError(void*) {
  static thread_local std::string text;
  const std::lock_guard lock(state().mutex);
  text = state().last_error;
  return text.c_str();
}
int ncclGetUniqueId(UniqueId* id) {
  if (const int error = enter("ncclGetUniqueId")) return error;
  static std::atomic<int> made = 0;
  *id = {};
  const auto now = std::chrono::steady_clock::now().time_since_epoch().count();
  fmt::format_to(id->internal, "/braid_fake_nccl_{}_{}_{}", ::getpid(), now, made++);
  return 0;
}
int ncclCommInitRankConfig(void** handle, int members, UniqueId id, int index, Config* config) {
  if (const int error = enter("ncclCommInitRankConfig")) return error;
  *handle = nullptr;
  if (members < 1 || members > kMaxMembers || index < 0 || index >= members ||
      id.internal[0] != '/') {
    return failed(kInvalidArgument, "no rank of a communicator");
  }
  if (config == nullptr || config->magic != 0xcafebeef || config->version < 21400 ||
      config->size < sizeof(Config)) {
    return failed(kInvalidArgument, "ncclConfig_t argument not initialized via the initializer");
  }
  const auto comm = std::make_shared<Comm>();
  comm->name = id.internal;
  comm->members = members;
  comm->index = index;
  comm->gpu = current_gpu();
  comm->context = current_context();
  comm->blocking = config->blocking != 0;
  if (comm->gpu < 0) return failed(kInvalidUsage, "no GPU is current");
  try {
    comm->segment = std::make_unique<Segment>(comm->name, members, index, comm->gpu);
  } catch (const std::exception& problem) {
    return failed(kSystemError, problem.what());
  }
  {
    const std::lock_guard lock(state().mutex);
    state().control.max_ctas = config->max_ctas;
    state().control.blocking = config->blocking;
    ++state().control.live_comms;
  }
  {
    const std::lock_guard lock(comms_mutex);
    comms.push_back(comm);
  }
  *handle = comm.get();
  starting.push_back(comm);
  return depth > 0 ? 0 : end_group();
}
int ncclCommDestroy(void* handle) {
  const int error = enter("ncclCommDestroy");
  const CommRef comm = take(handle);
  if (comm == nullptr) return failed(kInvalidArgument, "no communicator");
  while (comm->in_flight > 0) std::this_thread::sleep_for(std::chrono::microseconds(50));
  return error;
}
int ncclCommAbort(void* handle) {
  const int error = enter("ncclCommAbort");
  const CommRef comm = take(handle);
  if (comm == nullptr) return failed(kInvalidArgument, "no communicator");
  comm->aborted = true;
  while (comm->in_flight > 0) std::this_thread::sleep_for(std::chrono::microseconds(50));
  return error;
}
int ncclCommGetAsyncError(void* handle, int* error) {
  const CommRef comm = find(handle);
  if (comm == nullptr) return failed(kInvalidArgument, "no communicator");
  *error = comm->result;
  return enter("ncclCommGetAsyncError");
}
int ncclCommCount(void* handle, int* count) {
  const CommRef comm = find(handle);
  if (comm == nullptr) return failed(kInvalidArgument, "no communicator");
  *count = comm->members;
  return enter("ncclCommCount");
}
int ncclCommUserRank(void* handle, int* rank) {
  const CommRef comm = find(handle);
  if (comm == nullptr) return failed(kInvalidArgument, "no communicator");
  *rank = comm->index;
  return enter("ncclCommUserRank");
}
int ncclGroupStart() {
  if (const int error = enter("ncclGroupStart")) return error;
  ++depth;
  return 0;
}
int ncclGroupEnd() {
  int error = enter("ncclGroupEnd");
  if (depth == 0) return failed(kInvalidUsage, "no group was started");
  if (--depth > 0) {
    if (error != 0) group_error = error;
    return error;
  }
  const int inside = std::exchange(group_error, 0);
  if (error == 0) error = inside;
  {
    const std::lock_guard lock(state().mutex);
    ++state().control.groups;
  }
  if (error == 0) return end_group();
  queued.clear();
  for (const CommRef& comm : std::exchange(starting, {})) comm->result = error;
  return error;
}
int ncclAllReduce(const void* send, void* receive, std::size_t count, int type, int op, void* comm,
                  void* stream) {
  const std::uint64_t bytes = count * size_of(type);
  return enqueue({"ncclAllReduce",
                  comm,
                  stream,
                  {Kind::kAllReduce, type, op, 0, count},
                  send,
                  bytes,
                  receive,
                  bytes});
}
int ncclBroadcast(const void* send, void* receive, std::size_t count, int type, int root,
                  void* comm, void* stream) {
  const std::uint64_t bytes = count * size_of(type);
  return enqueue({"ncclBroadcast",
                  comm,
                  stream,
                  {Kind::kBroadcast, type, 0, root, count},
                  send,
                  bytes,
                  receive,
                  bytes});
}
int ncclReduceScatter(const void* send, void* receive, std::size_t count, int type, int op,
                      void* comm, void* stream) {
  const std::uint64_t bytes = count * size_of(type);
  const CommRef found = find(comm);
  const std::uint64_t all = bytes * static_cast<std::uint64_t>(found ? found->members : 1);
  return enqueue({"ncclReduceScatter",
                  comm,
                  stream,
                  {Kind::kReduceScatter, type, op, 0, count},
                  send,
                  all,
                  receive,
                  bytes});
}
int ncclAllGather(const void* send, void* receive, std::size_t count, int type, void* comm,
                  void* stream) {
  const std::uint64_t bytes = count * size_of(type);
  const CommRef found = find(comm);
  const std::uint64_t all = bytes * static_cast<std::uint64_t>(found ? found->members : 1);
  return enqueue({"ncclAllGather",
                  comm,
                  stream,
                  {Kind::kAllGather, type, 0, 0, count},
                  send,
                  bytes,
                  receive,
                  all});
}
int ncclSend(const void* send, std::size_t count, int type, int peer, void* comm, void* stream) {
  return enqueue({"ncclSend",
                  comm,
                  stream,
                  {Kind::kExchange, type},
                  send,
                  count * size_of(type),
                  nullptr,
                  0,
                  peer});
}
int ncclRecv(void* receive, std::size_t count, int type, int peer, void* comm, void* stream) {
  return enqueue({"ncclRecv",
                  comm,
                  stream,
                  {Kind::kExchange, type},
                  nullptr,
                  0,
                  receive,
                  count * size_of(type),
                  peer});
}

}  // extern "C"
