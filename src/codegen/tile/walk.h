#pragma once

#include "codegen/tile/tile.h"

namespace braid::tile {

/// Calls body(id) for every instruction that stands in a block, in order, what has a body before
/// it.
template <class Body>
void for_each_inst(const Program& program, const std::vector<Id>& block, const Body& body) {
  for (Id id : block) {
    body(id);
    for_each_inst(program, program.at(id).body, body);
  }
}
template <class Body>
void for_each_inst(const Program& program, const Body& body) {
  for_each_inst(program, program.body, body);
}

}  // namespace braid::tile
