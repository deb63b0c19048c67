#include "codegen/tile/tile.h"

#include <cmath>
#include <limits>

namespace braid::tile {

double float_identity(Fn fn) {
  return fn == Fn::kMax ? -INFINITY : fn == Fn::kMin ? INFINITY : fn == Fn::kMul ? 1 : 0;
}

std::int64_t integer_identity(Fn fn) {
  using Limits = std::numeric_limits<std::int64_t>;
  return fn == Fn::kMax       ? Limits::min()
         : fn == Fn::kMin     ? Limits::max()
         : fn == Fn::kWrapMul ? 1
                              : 0;
}

}  // namespace braid::tile
