#include "codegen/passes/lower.h"

#include "codegen/passes/allocate_shared.h"
#include "codegen/passes/assign_layouts.h"
#include "codegen/passes/lower_tensors.h"
#include "codegen/passes/lower_to_threads.h"
#include "codegen/passes/pipeline.h"
#include "codegen/passes/prefetch.h"
#include "codegen/passes/remove_dead.h"
#include "codegen/passes/spread_copies.h"
#include "codegen/tile/verify.h"
#include "codegen/tile/walk.h"
#include "codegen/units.h"

namespace braid::tile {

namespace {

/// In builds with assertions, as a program that is ill-formed may still be right for its user.
void check([[maybe_unused]] const Program& program) {
#ifndef NDEBUG
  verify(program);
#endif
}

}  // namespace

void lower(Program& program, const Target& target, int num_stages) {
  program.target = target;
  check(program);
  for_each_inst(program, [&](Id id) { static_cast<void>(unit_of(program, program.at(id))); });
  lower_tensors(program);
  pipeline(program, num_stages);
  prefetch(program);
  remove_dead(program);
  assign_layouts(program);
  allocate_shared(program);
  lower_to_threads(program);
  spread_copies(program);
  check(program);
}

}  // namespace braid::tile
