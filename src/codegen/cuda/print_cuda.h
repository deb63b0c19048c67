#pragma once

#include <string>

#include "codegen/tile/tile.h"

namespace braid::tile {

/// The CUDA C++ text of a program after all passes.
std::string print_cuda(const Program& program);

}  // namespace braid::tile
