#include "runtime/cpu/cpu_memory.h"

#include <unistd.h>

#include <iterator>
#include <optional>
#include <set>
#include <string>

#include "ir/non_copyable.h"
#include "runtime/bytes.h"

namespace braid::cpu {
namespace {

constexpr std::string_view kHandleTag = "cpu memory";
constexpr std::uint32_t kHandleFormat = 3;

/// The checks cover accesses by ranks of this device only.
constexpr const char* kWatched =
    "a device that checks or counts what kernels do shares none with another one; expected all "
    "ranks in one process";

/// Addresses that stand for memory of many ranks.
class CpuMulticast final : public Multicast, NonCopyable {
 public:
  CpuMulticast(std::shared_ptr<Core> core, std::span<const int> ranks, std::size_t bytes)
      : core_(std::move(core)), range_(core_->range, bytes) {
    range_.forbid();
    core_->multicasts.add(address(), bytes, {ranks.begin(), ranks.end()});
    if (core_->sanitizer != nullptr) core_->sanitizer->add_multicast(address(), bytes);
  }
  ~CpuMulticast() override {
    core_->multicasts.remove(address());
    if (core_->sanitizer != nullptr) core_->sanitizer->remove_memory(address());
  }
  [[nodiscard]] std::uint64_t address() const override {
    return reinterpret_cast<std::uint64_t>(range_.data());
  }
  [[nodiscard]] std::size_t size() const override { return range_.size(); }
  [[nodiscard]] Core& core() const { return *core_; }

 private:
  std::shared_ptr<Core> core_;
  GuardedMemory range_;
};

class CpuMemory final : public Memory {
 public:
  explicit CpuMemory(std::shared_ptr<Allocation> allocation) : allocation_(std::move(allocation)) {}
  [[nodiscard]] std::uint64_t address() const override { return allocation_->address(); }
  [[nodiscard]] std::size_t size() const override { return allocation_->memory.size(); }
  [[nodiscard]] std::string export_handle() const override {
    Core& core = *allocation_->core;
    MemoryFile& file = allocation_->file;
    const std::lock_guard lock(core.mutex);
    if (!core.watches() && !file.is_open()) file = allocation_->memory.share();
    if (file.is_open()) core.engine.share_memory();
    ByteWriter out;
    out.string(kHandleTag);
    out.value(kHandleFormat);
    out.value<std::int64_t>(::getpid());
    out.value(reinterpret_cast<std::uint64_t>(&core));
    out.value(address());
    out.value<std::uint64_t>(size());
    out.value<std::int64_t>(allocation_->rank);
    out.string(file.is_open() ? file.handle() : "");
    return out.take();
  }
  void bind_multicast(Multicast& multicast, std::size_t offset) override {
    const auto& range = ours<CpuMulticast>(multicast);
    if (&range.core() != allocation_->core.get()) {
      throw_invalid("multicast", "it belongs to another device");
    }
    range.core().multicasts.bind(range.address(), offset, allocation_->rank, address(), size());
  }

 private:
  std::shared_ptr<Allocation> allocation_;
};

/// Memory of the caller's, known to the sanitizer as long as this is there.
class LentMemory final : public Memory, NonCopyable {
 public:
  LentMemory(std::shared_ptr<Core> core, int rank, const MemoryPart& memory)
      : core_(std::move(core)), address_(memory.address), bytes_(memory.bytes) {
    if (core_->sanitizer == nullptr) return;
    if (core_->sanitizer->knows(address_, bytes_)) {
      throw_invalid(memory.name, "some of its bytes are known to the device");
    }
    core_->sanitizer->add_memory(rank, address_, bytes_, memory.name, true);
  }
  ~LentMemory() override {
    if (core_->sanitizer != nullptr) core_->sanitizer->remove_memory(address_);
  }
  [[nodiscard]] std::uint64_t address() const override { return address_; }
  [[nodiscard]] std::size_t size() const override { return bytes_; }

 private:
  std::shared_ptr<Core> core_;
  std::uint64_t address_;
  std::size_t bytes_;
};

constexpr const char* kUnknown = "no allocation of the cpu device holds the address";

}  // namespace

std::unique_ptr<Memory> allocate_memory(const std::shared_ptr<Core>& core, int rank,
                                        std::size_t bytes) {
  auto allocation = std::make_shared<Allocation>(core, rank, bytes);
  const std::lock_guard lock(core->mutex);
  core->allocations[allocation->address()] = allocation;
  return std::make_unique<CpuMemory>(std::move(allocation));
}

std::unique_ptr<Memory> import_memory(const std::shared_ptr<Core>& core, std::string_view handle) {
  ByteReader in(handle);
  if (in.string() != kHandleTag) {
    throw_invalid("memory", "the bytes are no handle of a cpu device's memory");
  }
  const auto format = in.value<std::uint32_t>();
  if (format != kHandleFormat) {
    throw_invalid("memory", "the handle is of format " + std::to_string(format) + "; expected " +
                                std::to_string(kHandleFormat) +
                                ": the same version of braid on all ranks");
  }
  const auto process = in.value<std::int64_t>();
  const auto device = in.value<std::uint64_t>();
  const auto address = in.value<std::uint64_t>();
  const auto bytes = in.value<std::uint64_t>();
  const auto rank = in.value<std::int64_t>();
  const std::string_view file = in.string();
  if (!in.done() || rank < 0 || rank >= core->world)
    throw_invalid("memory", "the handle is damaged");
  if (process != ::getpid() || device != reinterpret_cast<std::uint64_t>(core.get())) {
    if (core->watches() || file.empty()) throw_environment("memory", kWatched);
    core->engine.share_memory();
    return std::make_unique<CpuMemory>(
        std::make_shared<Allocation>(core, static_cast<int>(rank), bytes, MemoryFile::open(file)));
  }
  const std::lock_guard lock(core->mutex);
  const auto found = core->allocations.find(address);
  std::shared_ptr<Allocation> allocation;
  if (found != core->allocations.end()) allocation = found->second.lock();
  if (allocation == nullptr) throw_environment("memory", "was freed before it was imported");
  return std::make_unique<CpuMemory>(std::move(allocation));
}

std::unique_ptr<Memory> find_memory(const std::shared_ptr<Core>& core, std::uint64_t address) {
  std::shared_ptr<Allocation> allocation;  // destroyed outside the lock, if it is the last
                                           // reference
  const std::lock_guard lock(core->mutex);
  const auto next = core->allocations.upper_bound(address);
  if (next != core->allocations.begin()) allocation = std::prev(next)->second.lock();
  if (allocation == nullptr || address - allocation->address() >= allocation->memory.size()) {
    throw_invalid("memory", kUnknown);
  }
  return std::make_unique<CpuMemory>(std::move(allocation));
}

std::unique_ptr<Memory> lend_memory(const std::shared_ptr<Core>& core, int rank,
                                    const MemoryPart& memory) {
  if (memory.address == 0 || memory.bytes == 0) throw_invalid(memory.name, "no bytes to lend");
  return std::make_unique<LentMemory>(core, rank, memory);
}

void check_memory(Core& core, std::uint64_t address, std::size_t bytes, const char* where) {
  if (bytes == 0) return;
  const std::optional<std::size_t> left = core.range.left(address);
  if (!left && address != 0 && !core.watches()) return;
  if (left.value_or(0) == 0) throw_invalid(where, kUnknown);
  if (*left >= bytes) return;
  throw_invalid(
      where, std::to_string(*left) + " bytes at that address; expected " + std::to_string(bytes));
}

std::unique_ptr<Multicast> create_multicast(const std::shared_ptr<Core>& core,
                                            std::span<const int> ranks, std::size_t bytes) {
  std::set<int> distinct;
  for (const int rank : ranks) {
    if (!distinct.insert(rank).second) {
      throw_invalid("multicast", "rank " + std::to_string(rank) + " twice; expected it once");
    }
  }
  if (ranks.empty() || bytes == 0) {
    throw_invalid("multicast", std::to_string(bytes) + " bytes for " +
                                   std::to_string(ranks.size()) + " ranks; expected some");
  }
  return std::make_unique<CpuMulticast>(core, ranks, bytes);
}

}  // namespace braid::cpu
