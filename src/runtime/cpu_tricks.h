#pragma once

namespace braid {

/// What makes the `cpu` device fast and changes no result (docs/architecture.md says what each is).
/// Each has a switch, so that a wrong result can be looked for by halves.
#define BRAID_CPU_TRICKS(TRICK) \
  TRICK(shared_fibers)          \
  TRICK(direct_launches)        \
  TRICK(kept_values)            \
  TRICK(wide_values)            \
  TRICK(joined_products)        \
  TRICK(common_work)            \
  TRICK(recomputed_values)      \
  TRICK(guarded_rows)           \
  TRICK(prefetches)

struct CpuTricks {
#define BRAID_CPU_TRICK(name) bool name = true;
  BRAID_CPU_TRICKS(BRAID_CPU_TRICK)
#undef BRAID_CPU_TRICK
};

/// All but those that $BRAID_CPU_WITHOUT names. Throws kInvalidArgument for a name it does not
/// know.
CpuTricks cpu_tricks_from_environment();

}  // namespace braid
