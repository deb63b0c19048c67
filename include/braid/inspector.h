#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "braid/counts.h"
#include "braid/export.h"
#include "braid/finding.h"

namespace braid {

class Memory;

/// A named range of device memory.
struct MemoryPart {
  std::uint64_t address = 0;
  std::size_t bytes = 0;
  std::string name;
};

/// What a device that checks or counts kernels has seen (WorldOptions::sanitize,
/// WorldOptions::count). Kernels for such a device are compiled with line information.
class BRAID_API Inspector {
 public:
  virtual ~Inspector() = default;
  /// Names the parts of the allocation that starts at `memory`, replacing earlier names. A device
  /// that checks accesses allows only these parts and uses the names in its findings.
  virtual void name_parts(std::uint64_t memory, std::span<const MemoryPart> parts) = 0;
  /// Tells of bytes of the caller's that kernels of `rank` may use while the result exists. They
  /// count as written, and findings call them `name`. A device that checks accesses allows no other
  /// memory that it did not allocate. Throws kInvalidArgument where it knows some of them already.
  [[nodiscard]] virtual std::unique_ptr<Memory> lend(int rank, const MemoryPart& memory) = 0;
  /// The findings so far; empty with checks off.
  [[nodiscard]] virtual std::vector<Finding> findings() = 0;
  /// Harmless findings, of kind "note": warps that write the same value to one address, and racing
  /// reads whose value is not used.
  [[nodiscard]] virtual std::vector<Finding> notes() = 0;
  /// For Schedule::Kind::kAll: says that a run is over and its streams are synchronized. Returns
  /// whether another interleaving is left to run. All runs must do the same work. False for other
  /// schedules.
  virtual bool next_interleaving() = 0;
  /// The counts of each kernel so far, in the order of first launches; empty unless the device
  /// counts. No work may be in flight.
  [[nodiscard]] virtual std::vector<KernelCounts> counts() = 0;
  /// Forgets all findings, notes and counts. No work may be in flight.
  virtual void forget() = 0;
};

}  // namespace braid
