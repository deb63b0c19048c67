#pragma once

#include <atomic>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/exec/communicator.h"
#include "runtime/nccl/nccl_api.h"

namespace braid {

/// A communicator of NCCL, made through the rendezvous, or the caller's.
class NcclCommunicator final : public Communicator {
 public:
  struct Options {
    std::string group;
    int rank = 0;              ///< of the world
    std::size_t index = 0;     ///< of the rank in the group
    std::size_t members = 1;   ///< of the group
    std::uint64_t timeout_ns;  ///< of the others' coming
    void* callers = nullptr;   ///< the caller's ncclComm_t, if any
  };
  /// Throws kEnvironment, with how to get it, where there is no NCCL.
  NcclCommunicator(Device& device, Options options);
  ~NcclCommunicator() override;
  NcclCommunicator(const NcclCommunicator&) = delete;
  NcclCommunicator& operator=(const NcclCommunicator&) = delete;

  [[nodiscard]] std::string offer() override;
  void connect(std::span<const std::string> offers) override;
  void begin_group() override;
  void end_group() override;
  void settle() override;
  void enqueue(const CollectiveCall& call, Stream& stream) override;
  [[nodiscard]] std::string async_error() override;
  void abort() noexcept override;

 private:
  void check(nccl::Result result, const char* call) const;
  void check_callers() const;
  void call(const CollectiveCall& call, nccl::StreamHandle stream);
  void all_to_all(const CollectiveCall& call, nccl::StreamHandle stream);
  /// Gives the communicator back; it may be in use no more.
  void release() noexcept;

  const nccl::Api& api_;
  Device& device_;
  Options options_;
  std::string where_;  ///< for errors: "group 'tp', rank 1"
  std::mutex mutex_;   ///< of comm_ and aborted_, which abort() uses from its own thread
  nccl::Comm comm_ = nullptr;
  bool ready_ = false;  ///< all members have come
  bool aborted_ = false;
};

}  // namespace braid
