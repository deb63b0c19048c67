#pragma once

#include "codegen/kernel/phases.h"

namespace braid {

/// All kernels; the first that matches a body is the body's.
[[nodiscard]] std::span<const Kernel> kernels();
[[nodiscard]] const Kernel& find_kernel(const Graph& body,
                                        std::span<const Kernel> among = kernels());

// What the works of a kernel say together.

/// Empty where it can express a body that matches; else the reason, for people.
[[nodiscard]] std::string refuse(const Kernel& kernel, const BodyFacts& facts);
[[nodiscard]] std::vector<Setting> settings(const Kernel& kernel);
[[nodiscard]] Config default_config(const Kernel& kernel, const BodyFacts& facts,
                                    const Target& target);
[[nodiscard]] std::vector<Config> candidates(const Kernel& kernel, const BodyFacts& facts,
                                             const Target& target);

/// The tile program of a spec after all passes. Throws kInvalidArgument where the kernel refuses
/// the body, or the target has too little shared memory.
[[nodiscard]] tile::Program build_program(const Kernel& kernel, const KernelSpec& spec,
                                          const Target& target, int ranks_per_device);

}  // namespace braid
