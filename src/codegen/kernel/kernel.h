#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/kernel_spec.h"
#include "codegen/tile/builder.h"

namespace braid {

/// A way to compute a body as one kernel. Each template has a file with its record, and a line in
/// registry.cpp. A body finds its template by asking them in order; no other code names a template.
struct Template {
  std::string_view name;              ///< shown to people, and the stem of its kernels' names
  std::span<const Setting> settings;  ///< settings that it reads from a config
  /// Whether bodies like this belong to the template, even if it refuses them.
  bool (*matches)(const Graph& body);
  /// Why it cannot express a matching body, for people; empty where it can.
  std::string (*refuse)(const Graph& body);
  Config (*default_config)(const Graph& body, const Target& target);
  /// The configurations that a tuner may choose from, the default included. None changes the order
  /// of a sum, so results do not depend on the choice.
  std::vector<Config> (*candidates)(const Graph& body, const Target& target);
  /// A rough time of its matmuls with their tiles, without the launch; null if it has none.
  double (*rough_ns)(const KernelSpec& spec, const Bindings& bindings,
                     const Target& target) = nullptr;
  /// The tile program before the passes. `ranks_per_device` bounds the grid of a kernel that waits.
  /// The kernel is named after the template unless the program sets an entry.
  tile::Program (*build)(const KernelSpec& spec, const Target& target, int ranks_per_device);
};

/// All templates; a body belongs to the first that matches.
[[nodiscard]] std::span<const Template* const> templates();
[[nodiscard]] const Template& find_template(const Graph& body,
                                            std::span<const Template* const> among = templates());

/// The tile program of a spec after all passes. Throws kInvalidArgument where the template refuses
/// the body, or the target has too little shared memory.
[[nodiscard]] tile::Program build_program(const Template& maker, const KernelSpec& spec,
                                          const Target& target, int ranks_per_device);

}  // namespace braid
