#pragma once

#include <span>
#include <string>
#include <vector>

#include "codegen/kernel/kernel.h"
#include "codegen/tile/builder.h"

// Kernels that are joined to one: the nodes of its body are kernels, each with its configuration.
// All blocks meet between one and the next (Meet::kHere), so what one computes lies in memory for
// those behind it, as an output of the joined kernel. All its blocks are resident at once.

namespace braid {

/// One of the kernels in a program; of a body that is not joined, the only one.
struct Stage {
  const Kernel& kernel;
  BodyFacts facts;
  const Config& config;
  tile::Operands operands = {};
};
/// They refer to the spec's body.
[[nodiscard]] std::vector<Stage> stages_of(const KernelSpec& spec);

/// Why the kernels of a joined body cannot be one; empty where they can.
[[nodiscard]] std::string refuse_joined(const Graph& body);

/// The tile program before the passes, of blocks for which there is room.
[[nodiscard]] tile::Program build_phases(std::span<const Stage> stages, const Target& target,
                                         std::int64_t room);
/// The same after all passes. Throws kInvalidArgument where the target has too little shared
/// memory.
[[nodiscard]] tile::Program build_program(std::span<const Stage> stages, const KernelSpec& spec,
                                          const Target& target, int ranks_per_device);

}  // namespace braid
