// A kernel in the tile language's text form on the ranks of the cpu device.

#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "braid/executable.h"
#include "codegen/protocol.h"
#include "codegen/tile/tile.h"
#include "findings.h"
#include "runtime/compile/compiler.h"

namespace braid::testing {

using Floats = std::vector<float>;

/// A rank's arena: its head, the step's words, and an operand for the peers.
inline constexpr std::int64_t kFlagsAt = 256;
inline constexpr std::int64_t kScratchAt = 4096;
inline constexpr std::int64_t kOperandAt = 1 << 17;

/// The parameters of every kernel that communicates, and its warps.
std::string head_of_probe(int world);

/// Through all passes, verified before and after.
tile::Program finished(const std::string& text);
/// For the cpu device, with lines for the sanitizer.
CompiledKernel compiled(const tile::Program& program);
/// NVRTC takes it for three targets, and nothing spills.
void expect_compiles(const tile::Program& program);

struct ProbeOptions {
  int world = 2;
  Checks checks = kCheckAll;
  std::string schedule = {};
  std::uint64_t timeout_ns = 60'000'000'000U;
};

/// The ranks of a probe, their arenas zeroed. One world for each set of runs.
class ProbeWorld {
 public:
  ProbeWorld(const tile::Program& program, const CompiledKernel& kernel,
             const ProbeOptions& options = {});

  template <class T>
  void add_input(int rank, const std::vector<T>& values) {
    Rank& r = at(rank);
    r.inputs.push_back(allocate(rank, sizeof(T) * values.size()));
    put(rank, r.inputs.back(), values.data(), sizeof(T) * values.size());
  }
  void add_output(int rank, std::size_t floats) {
    at(rank).outputs.push_back(allocate(rank, 4 * floats));
  }
  template <class T>
  void write_arena(int rank, std::int64_t offset, const std::vector<T>& values) {
    put(rank, at(rank).arena + static_cast<std::uint64_t>(offset), values.data(),
        sizeof(T) * values.size());
  }

  /// Enqueues a run of one rank, or of all; parameter `input i` is input first_input + i, `output
  /// i` is output first_output + i.
  void launch(int rank, std::size_t first_input, std::size_t first_output);
  void launch(std::size_t first_input = 0, std::size_t first_output = 0) {
    for (int r = 0; r < options_.world; ++r) launch(r, first_input, first_output);
  }
  /// Whether all ended well.
  bool synchronize();
  Floats output(int rank, std::size_t index, std::size_t floats);
  std::vector<std::uint32_t> arena_words(int rank, std::int64_t offset, std::size_t count);
  protocol::Record record(int rank);
  std::vector<Finding> findings() { return found_by(world_.device()); }

 private:
  struct Rank {
    std::unique_ptr<Module> module;
    std::unique_ptr<Stream> stream;
    std::uint64_t arena = 0, record = 0;
    std::vector<std::uint64_t> inputs, outputs;
  };
  Rank& at(int rank) { return ranks_[static_cast<std::size_t>(rank)]; }
  std::uint64_t allocate(int rank, std::size_t bytes);
  void put(int rank, std::uint64_t address, const void* data, std::size_t bytes);
  void get(int rank, void* data, std::uint64_t address, std::size_t bytes);
  std::vector<std::uint64_t> words_of(int rank, const KernelParam& param, std::size_t first_input,
                                      std::size_t first_output);

  const tile::Program& program_;
  ProbeOptions options_;
  int shared_output_ = -1;  ///< the one that lies in the arena
  World world_;
  std::vector<std::unique_ptr<Memory>> memory_;
  std::vector<Rank> ranks_;
};

}  // namespace braid::testing
