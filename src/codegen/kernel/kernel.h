#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/kernel_spec.h"
#include "codegen/tile/builder.h"

namespace braid {

/// One way to compute a body as one kernel: everything that is known of it stands in its record,
/// which is one file, and one line of the list in registry.cpp. A body finds its template by
/// asking; nobody else knows a name.
struct Template {
  std::string_view name;              ///< for people, and the stem of its kernels' names
  std::span<const Setting> settings;  ///< what it reads of a config
  /// Whether such a body is this template's, be it able to express it or not.
  bool (*matches)(const Graph& body);
  /// Empty when it can express a body that matches; else the reason, for people.
  std::string (*refuse)(const Graph& body);
  Config (*default_config)(const Graph& body, const Target& target);
  /// What a tuner may choose from, the default among them. None changes an order of summation, so
  /// results do not depend on the choice.
  std::vector<Config> (*candidates)(const Graph& body, const Target& target);
  /// A rough time of its matmuls in their tiles, without the launch; null where it has none.
  double (*rough_ns)(const KernelSpec& spec, const Bindings& bindings,
                     const Target& target) = nullptr;
  /// The tile program before the passes. `ranks_per_device` bounds a grid that waits. The kernel is
  /// named by the template unless the program has an entry already.
  tile::Program (*build)(const KernelSpec& spec, const Target& target, int ranks_per_device);
};

/// All templates; the first that matches a body is the body's.
[[nodiscard]] std::span<const Template* const> templates();
[[nodiscard]] const Template& find_template(const Graph& body,
                                            std::span<const Template* const> among = templates());

/// The tile program of a spec after all passes. Throws kInvalidArgument where the template refuses
/// the body, or the target has too little shared memory.
[[nodiscard]] tile::Program build_program(const Template& maker, const KernelSpec& spec,
                                          const Target& target, int ranks_per_device);

}  // namespace braid
