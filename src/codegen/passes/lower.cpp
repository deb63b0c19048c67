#include "codegen/passes/lower.h"

#include "codegen/passes/allocate_shared.h"
#include "codegen/passes/assign_layouts.h"
#include "codegen/passes/lower_tensors.h"
#include "codegen/passes/lower_to_threads.h"
#include "codegen/passes/pipeline.h"
#include "codegen/passes/prefetch.h"
#include "codegen/passes/remove_dead.h"
#include "codegen/passes/spread_copies.h"

namespace braid::tile {

void lower(Program& program, int num_stages) {
  lower_tensors(program);
  pipeline(program, num_stages);
  prefetch(program);
  remove_dead(program);
  assign_layouts(program);
  allocate_shared(program);
  lower_to_threads(program);
  spread_copies(program);
}

}  // namespace braid::tile
