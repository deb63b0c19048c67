#pragma once

#include "runtime/cpu/translate/emitter.h"

// Floats, as handlers of several kinds of instructions treat them.

namespace braid::cpu {

enum class Rounding : std::uint8_t { kNearest, kZero, kDown, kUp };
enum class Arithmetic : std::uint8_t { kAdd, kSub, kMul, kDiv };

/// The rounding from "rn|rz|rm|rp" and others; without one, to nearest.
Rounding rounding_of(const Choices& mods);
/// `.ftz`: a subnormal f32, or a value that is or rounds to a subnormal f16, becomes a zero of its
/// sign.
Value* flush(Emitter& e, Value* value, bool ftz, ptx::Type type = {ptx::Kind::kFloat, 32, 1});
/// `.relu`: what is not above zero becomes +0; NaN stays.
Value* relu(Emitter& e, Value* value);
/// `.sat`: into [0, 1], NaN to 0.
Value* clamp(Emitter& e, Value* value, bool saturate);
/// Rounds f64 to f32 so that the sticky bit survives: a second rounding to 16 bits is then exact.
Value* odd_float(Emitter& e, Value* value);
Value* float_binary(Emitter& e, Arithmetic operation, ptx::Type type, Rounding rounding, Value* a,
                    Value* b);
/// f32 to the bits of bf16; NaN becomes 0x7fff.
Value* round_to_bfloat(Emitter& e, Value* value, Rounding rounding);
Value* round_to_half(Emitter& e, Value* value, Rounding rounding);
/// Puts code in place of the calls of `round_function` that are left: wide stores have their own.
void expand_roundings(Emitter& e);

}  // namespace braid::cpu
