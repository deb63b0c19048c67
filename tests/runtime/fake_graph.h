#pragma once

#include <map>
#include <vector>

#include "runtime/fake_state.h"

namespace braid::fake {

/// What streams record instead of doing it. A replay does it in the order in which it was recorded,
/// on one stream.
struct Capture {
  Handle* origin;
  std::vector<Work> works;
  /// For each participating stream, how much of each stream precedes its next work.
  std::map<const Handle*, std::map<const Handle*, int>> seen;
  bool over = false;
};

/// Whether the stream records the work.
bool record_work(Handle& stream, const Work& work);
/// Whether these are calls of a capture; with the CUresult of that.
struct InCapture {
  bool is = false;
  int result = 0;
};
InCapture record_event(Handle& event, Handle& stream);
InCapture record_wait(Handle& stream, const Handle& event);

}  // namespace braid::fake
