#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "braid/device.h"
#include "braid/world.h"
#include "lowering/plan/program.h"
#include "runtime/exec/communicator.h"

namespace braid {

/// The communicators of a program's collective steps: one per such group and rank of this process.
class Communicators {
 public:
  using Callers = decltype(WorldOptions::nccl_communicators);
  /// `callers` are WorldOptions::nccl_communicators. Throws kEnvironment, with how to get it, if
  /// NCCL is needed and missing.
  Communicators(const Program& program, Device& device, std::span<const int> ranks,
                const Callers& callers, std::uint64_t timeout_ns);

  [[nodiscard]] bool empty() const { return groups_.empty(); }
  /// Null if the program has no collective step of the group.
  [[nodiscard]] Communicator* find(std::string_view group, std::size_t local) const;
  [[nodiscard]] std::span<const std::unique_ptr<Communicator>> all() const { return all_; }
  /// The name of all()[index]: "group 'tp', rank 1".
  [[nodiscard]] std::string name(std::size_t index) const;

  /// The offers of ranks[local]. connect() on other processes takes those of all ranks of the
  /// world.
  [[nodiscard]] std::string offers(std::size_t local);
  void connect(std::span<const std::string> offers);
  void abort() noexcept;

 private:
  const Program& program_;
  std::vector<int> ranks_;
  std::vector<std::string> groups_;
  std::vector<std::unique_ptr<Communicator>> all_;  ///< at [local * groups + group]
};

}  // namespace braid
