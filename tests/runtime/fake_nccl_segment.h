#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace braid::fake {

inline constexpr int kMaxMembers = 8;
inline constexpr std::size_t kOperandBytes = std::size_t{1} << 20U;

/// What one member asks for; all of a communicator must ask for the same.
struct Operation {
  enum class Kind : std::uint32_t {
    kNone,
    kAllReduce,
    kBroadcast,
    kReduceScatter,
    kAllGather,
    kExchange
  };
  Kind kind = Kind::kNone;
  std::int32_t type = 0, reduce = 0, root = 0;
  std::uint64_t count = 0;
  /// For an exchange, which may differ between members: bytes to each member, and from it.
  std::array<std::uint64_t, kMaxMembers> sends{}, receives{};
};

/// Memory that the members of one communicator share, in one process or many. It is named by the
/// unique id until all have come, and by nothing from then on.
class Segment {
 public:
  /// Throws std::runtime_error where the system has none, or where members contradict each other.
  Segment(std::string name, int members, int index, int gpu);
  ~Segment();
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;

  /// Waits until all have come; false where `stop` says so first. Then the GPUs are known.
  bool meet(const std::function<bool()>& stop);
  [[nodiscard]] int gpu(int member) const;
  [[nodiscard]] int process(int member) const;

  /// One round: what this member asks for and its operand, for those of all. False where `stop`
  /// says so before all have come.
  bool exchange(const Operation& own, const void* operand, std::size_t bytes,
                const std::function<bool()>& stop);
  [[nodiscard]] const Operation& operation(int member) const;
  [[nodiscard]] const std::uint8_t* operand(int member) const;
  /// The round's operands are read.
  void leave();

 private:
  struct Slot {
    std::atomic<int> came{0};
    int gpu = 0, process = 0;
    std::atomic<std::uint64_t> arrived{0}, left{0};
    Operation operation;
  };
  struct Shared {
    std::atomic<int> members{0};
    std::atomic<int> came{0};
    std::array<Slot, kMaxMembers> slots;
  };
  [[nodiscard]] Slot& slot(int member) const {
    return shared_->slots[static_cast<std::size_t>(member)];
  }
  bool wait(const std::function<bool()>& ready, const std::function<bool()>& stop) const;
  void forget_name();

  std::string name_;
  int members_, index_;
  std::uint64_t round_ = 0;
  std::uint8_t* bytes_ = nullptr;
  Shared* shared_ = nullptr;
};

}  // namespace braid::fake
