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

DType moved_dtype(const Program& program, const Inst& change) {
  const Inst& value = program.at(change.args[0]);
  return value.op == Op::kMap && value.fn == Fn::kRound ? value.dtype : DType::kF32;
}

int block_threads(const Program& program) {
  int roles = 0;
  for (const Id id : program.body)
    roles += program.at(id).op == Op::kRole ? program.at(id).warps : 0;
  return 32 * (roles == 0 ? program.num_warps : roles);
}

}  // namespace braid::tile
