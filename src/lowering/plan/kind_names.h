#pragma once

#include <string_view>

namespace braid {

// What a plan's text calls a kind, in the order of the enumerators.
inline constexpr std::string_view kArenaNames[] = {"parameters", "workspace", "symmetric:", "io",
                                                   "state"};
inline constexpr std::string_view kBufferNames[] = {"tensor", "flags", "scratch"};
inline constexpr std::string_view kStepNames[] = {"launch",     "copy",         "barrier",
                                                  "collective", "event_record", "event_wait"};
inline constexpr std::string_view kInputNames[] = {"activation", "parameter", "state"};

}  // namespace braid
