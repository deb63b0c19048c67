#pragma once

#include "codegen/tile/builder.h"
#include "ir/scalar.h"

namespace braid::tile {

/// A tile value with the interface of the generic arithmetic in ir/scalar.h.
struct TileExpr {
  Builder* builder;
  Id id;
};
inline bool is_float(TileExpr a) { return a.builder->type(a.id).kind == Kind::kF32; }
inline TileExpr operator+(TileExpr a, TileExpr b) {
  return {a.builder, a.builder->map(is_float(a) ? Fn::kAdd : Fn::kWrapAdd, {a.id, b.id})};
}
inline TileExpr operator-(TileExpr a, TileExpr b) {
  return {a.builder, a.builder->map(is_float(a) ? Fn::kSub : Fn::kWrapSub, {a.id, b.id})};
}
inline TileExpr operator*(TileExpr a, TileExpr b) {
  return {a.builder, a.builder->map(is_float(a) ? Fn::kMul : Fn::kWrapMul, {a.id, b.id})};
}
inline TileExpr operator/(TileExpr a, TileExpr b) {
  return {a.builder, a.builder->map(Fn::kDiv, {a.id, b.id})};
}
inline TileExpr operator-(TileExpr a) {
  return {a.builder, a.builder->map(is_float(a) ? Fn::kNeg : Fn::kWrapNeg, {a.id})};
}
inline TileExpr operator&(TileExpr a, TileExpr b) {
  return {a.builder, a.builder->map(Fn::kBitAnd, {a.id, b.id})};
}
inline TileExpr operator|(TileExpr a, TileExpr b) {
  return {a.builder, a.builder->map(Fn::kBitOr, {a.id, b.id})};
}
inline TileExpr operator^(TileExpr a, TileExpr b) {
  return {a.builder, a.builder->map(Fn::kBitXor, {a.id, b.id})};
}
inline TileExpr operator<<(TileExpr a, TileExpr b) {
  return {a.builder, a.builder->map(Fn::kShiftLeft, {a.id, b.id})};
}
inline TileExpr operator>>(TileExpr a, TileExpr b) {
  return {a.builder, a.builder->map(Fn::kShiftRight, {a.id, b.id})};
}
inline TileExpr abs(TileExpr a) { return {a.builder, a.builder->map(Fn::kAbs, {a.id})}; }
#define BRAID_UNARY(Name, name, value, cuda) \
  inline TileExpr name(TileExpr a) { return {a.builder, a.builder->map(Fn::k##Name, {a.id})}; }
#define BRAID_BINARY(Name, name, value, cuda)                      \
  inline TileExpr name(TileExpr a, TileExpr b) {                   \
    return {a.builder, a.builder->map(Fn::k##Name, {a.id, b.id})}; \
  }
BRAID_SCALAR_FUNCTIONS(BRAID_UNARY, BRAID_BINARY)
#undef BRAID_UNARY
#undef BRAID_BINARY
inline TileExpr maximum(TileExpr a, TileExpr b) {
  return {a.builder, a.builder->map(Fn::kMax, {a.id, b.id})};
}
inline TileExpr minimum(TileExpr a, TileExpr b) {
  return {a.builder, a.builder->map(Fn::kMin, {a.id, b.id})};
}
/// Truth values are the integers 0 and 1.
inline TileExpr less(TileExpr a, TileExpr b) {
  return {a.builder, a.builder->map(Fn::kToI64, {a.builder->map(Fn::kLt, {a.id, b.id})})};
}
inline TileExpr equal(TileExpr a, TileExpr b) {
  return {a.builder, a.builder->map(Fn::kToI64, {a.builder->map(Fn::kEq, {a.id, b.id})})};
}
inline TileExpr select(TileExpr condition, TileExpr a, TileExpr b) {
  const Id zero = a.builder->constant(Kind::kI64, 0);
  const Id no = a.builder->map(Fn::kEq, {condition.id, zero});
  return {a.builder, a.builder->map(Fn::kSelect, {no, b.id, a.id})};
}
inline TileExpr like(TileExpr a, double constant) {
  return {a.builder, a.builder->constant(a.builder->type(a.id).kind, constant)};
}
inline TileExpr like(TileExpr a, std::int64_t constant) {
  if (is_float(a)) return like(a, static_cast<double>(static_cast<float>(constant)));
  return {a.builder, a.builder->integer(constant, a.builder->type(a.id).kind)};
}

inline TileExpr truncated_quotient(TileExpr a, TileExpr b) { return a / b; }
inline TileExpr divided(TileExpr a, TileExpr b, Quotient quotient) {
  return is_float(a) ? a / b : divided_integers(a, b, quotient);
}

}  // namespace braid::tile
