#pragma once

#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "braid/device.h"
#include "runtime/cpu/cpu_device.h"

namespace braid::cpu_test {

/// Compiles CUDA C++ to PTX with the NVRTC that braid uses. Throws
/// std::runtime_error with the log.
std::string compile_cuda(const std::string& source);

/// The text of the braid::Error that `body` throws; none where it throws none.
std::string error_of(const std::function<void()>& body);

/// A device with one rank (by default), one stream and one loaded kernel "k".
class Bench {
 public:
  explicit Bench(const std::string& cuda, const CpuOptions& options = {.threads = 2});
  static Bench from_ptx(const std::string& ptx, const CpuOptions& options = {.threads = 2});

  /// Device memory that holds a copy of `values`.
  template <class T>
  std::uint64_t upload(const std::vector<T>& values) {
    memory_.push_back(device_->allocate(0, values.size() * sizeof(T)));
    std::memcpy(reinterpret_cast<void*>(memory_.back()->address()), values.data(),
                values.size() * sizeof(T));
    return memory_.back()->address();
  }
  template <class T>
  std::vector<T> download(std::uint64_t address, std::size_t count) {
    std::vector<T> values(count);
    std::memcpy(values.data(), reinterpret_cast<const void*>(address), count * sizeof(T));
    return values;
  }

  template <class... Args>
  void run(Dim3 grid, Dim3 block, std::uint32_t shared, const Args&... args) {
    const void* pointers[] = {static_cast<const void*>(&args)..., nullptr};
    stream_->launch(*function_, {grid, block, shared}, {pointers, sizeof...(args)});
    stream_->synchronize();
  }

  [[nodiscard]] Device& device() { return *device_; }
  [[nodiscard]] Stream& stream() { return *stream_; }
  [[nodiscard]] Function& function() { return *function_; }

 private:
  Bench() = default;
  std::unique_ptr<Device> device_;
  std::vector<std::unique_ptr<Memory>> memory_;
  std::unique_ptr<Module> module_;
  std::unique_ptr<Stream> stream_;
  Function* function_ = nullptr;
};

/// Deterministic random 64-bit numbers.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15ULL + 1) {}
  std::uint64_t next() {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return state_ * 0x2545f4914f6cdd1dULL;
  }

 private:
  std::uint64_t state_;
};

}  // namespace braid::cpu_test
