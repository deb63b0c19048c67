#pragma once

#include <mutex>
#include <span>
#include <string>

#include "runtime/exec/communicator.h"
#include "runtime/nccl/nccl_api.h"

namespace braid {

/// An NCCL communicator, created through the rendezvous or supplied by the caller.
class NcclCommunicator final : public Communicator {
 public:
  struct Options {
    std::string group;
    int rank = 0;              ///< rank in the world
    std::size_t index = 0;     ///< index in the group
    std::size_t members = 1;   ///< size of the group
    std::uint64_t timeout_ns;  ///< limit of the wait for the others
    void* callers = nullptr;   ///< the caller's ncclComm_t, or null
  };
  /// Throws kEnvironment, with how to get it, if NCCL is missing.
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
  /// Destroys the communicator, which must not be in use.
  void release() noexcept;

  const nccl::Api& api_;
  Device& device_;
  Options options_;
  std::string where_;  ///< for errors: "group 'tp', rank 1"
  std::mutex mutex_;   ///< guards comm_ and aborted_, which abort() uses from another thread
  nccl::Comm comm_ = nullptr;
  bool ready_ = false;  ///< all members have joined
  bool aborted_ = false;
};

}  // namespace braid
