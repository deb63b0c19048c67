#include "runtime/exec/communicator.h"

#include <atomic>
#include <cstring>
#include <exception>

namespace braid {

Communicator::Communicator(Device& device, int rank)
    : words_(device.allocate_host(rank, sizeof(Progress))) {
  forget_progress();
}

void Communicator::forget_progress() {
  const Progress none;
  std::memcpy(reinterpret_cast<void*>(words_->address()), &none, sizeof none);
  calls_ = 0;
}

void Communicator::begin(Stream& stream) { stream.write_value(words_->address(), ++calls_); }

void Communicator::finish(Stream& stream) {
  settle();
  stream.write_value(words_->address() + sizeof(std::uint32_t), calls_);
}

Communicator::Progress Communicator::progress() const {
  auto* words = reinterpret_cast<std::uint32_t*>(words_->address());
  const std::uint32_t ended = std::atomic_ref<std::uint32_t>(words[1]).load();
  return {std::atomic_ref<std::uint32_t>(words[0]).load(), ended};
}

GroupCall::~GroupCall() {
  if (communicator_ == nullptr) return;
  try {
    communicator_->end_group();
  } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch)
    // The first error is more informative.
  }
}

}  // namespace braid
