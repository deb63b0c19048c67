#pragma once

#include <cstdint>

#include "runtime/cpu/run/block_runner.h"

// What helpers that know of their warp have in common.

namespace braid::cpu {

using Warp = BlockRunner::Warp;

template <auto kMember>
struct MemberHelper;
template <class Result, class... Args, Result (BlockRunner::*kMember)(Warp&, Args...)>
struct MemberHelper<kMember> {
  static Result call(Warp& warp, Args... args) { return (warp.runner->*kMember)(warp, args...); }
};
template <class... Args, void (Sanitizer::*kMember)(WarpCheck&, Args...)>
struct MemberHelper<kMember> {
  static void call(Warp& warp, Args... args) {
    (warp.runner->sanitizer()->*kMember)(warp.check, args...);
  }
};

template <class... Args, void (BlockCounter::*kMember)(Args...)>
struct MemberHelper<kMember> {
  static void call(Warp& warp, Args... args) { (warp.runner->counter().*kMember)(args...); }
};

/// The helper that calls this member of the warp's runner, its sanitizer or its counter, and does
/// no more.
template <auto kMember>
inline constexpr auto* kEntry = &MemberHelper<kMember>::call;

/// Tells the mbarrier at an address that bytes of a lane's copy have come.
void complete_bytes(Warp& warp, int lane, std::uint64_t address, std::uint32_t bytes,
                    std::uint32_t line);
/// An arrival there by what a lane has issued.
void arrive_later(Warp& warp, int lane, std::uint64_t address, std::uint32_t line);

}  // namespace braid::cpu
