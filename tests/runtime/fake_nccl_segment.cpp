#include "runtime/fake_nccl_segment.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <stdexcept>
#include <thread>

namespace braid::fake {
namespace {

constexpr std::size_t kHead = std::size_t{64} << 10U;
constexpr std::size_t kBytes = kHead + kMaxMembers * kOperandBytes;

}  // namespace

Segment::Segment(std::string name, int members, int index, int gpu)
    : name_(std::move(name)), members_(members), index_(index) {
  static_assert(sizeof(Shared) <= kHead);
  const int file = ::shm_open(name_.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600);
  if (file < 0 || ::ftruncate(file, kBytes) != 0) throw std::runtime_error("no shared memory");
  void* mapped = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  ::close(file);
  if (mapped == MAP_FAILED) throw std::runtime_error("no shared memory");
  bytes_ = static_cast<std::uint8_t*>(mapped);
  shared_ = reinterpret_cast<Shared*>(bytes_);  // zero bytes are one that nobody has come to
  int none = 0;
  const bool same = shared_->members.compare_exchange_strong(none, members) || none == members;
  if (!same || slot(index).came.exchange(1) != 0) {
    ::munmap(bytes_, kBytes);
    throw std::runtime_error("the members contradict each other");
  }
  slot(index).gpu = gpu;
  slot(index).process = ::getpid();
  if (++shared_->came == members_) forget_name();
}

Segment::~Segment() {
  forget_name();
  ::munmap(bytes_, kBytes);
}

void Segment::forget_name() {
  if (!name_.empty()) ::shm_unlink(name_.c_str());
  name_.clear();
}

bool Segment::wait(const std::function<bool()>& ready, const std::function<bool()>& stop) const {
  while (!ready()) {
    if (stop()) return false;
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  return true;
}

bool Segment::meet(const std::function<bool()>& stop) {
  const bool met = wait([&] { return shared_->came == members_; }, stop);
  if (met) name_.clear();  // the last one has taken it away
  return met;
}

int Segment::gpu(int member) const { return slot(member).gpu; }
int Segment::process(int member) const { return slot(member).process; }

bool Segment::exchange(const Operation& own, const void* operand, std::size_t bytes,
                       const std::function<bool()>& stop) {
  const auto all = [&](std::atomic<std::uint64_t> Slot::*counter, std::uint64_t round) {
    return wait(
        [&, counter] {
          for (int m = 0; m < members_; ++m) {
            if (slot(m).*counter < round) return false;
          }
          return true;
        },
        stop);
  };
  if (!all(&Slot::left, round_)) return false;
  ++round_;
  slot(index_).operation = own;
  std::memcpy(bytes_ + kHead + static_cast<std::size_t>(index_) * kOperandBytes, operand, bytes);
  slot(index_).arrived = round_;
  return all(&Slot::arrived, round_);
}

const Operation& Segment::operation(int member) const { return slot(member).operation; }

const std::uint8_t* Segment::operand(int member) const {
  return bytes_ + kHead + static_cast<std::size_t>(member) * kOperandBytes;
}

void Segment::leave() { slot(index_).left = round_; }

}  // namespace braid::fake
