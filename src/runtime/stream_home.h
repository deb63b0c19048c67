#pragma once

#include <functional>
#include <string>

#include "braid/device.h"
#include "braid/error.h"

namespace braid {

/// Throws kInvalidArgument at `where` if the stream belongs to another rank or device.
inline void check_stream(const std::string& where, const Stream& stream, Stream::Home expected) {
  const Stream::Home found = stream.home();
  if (found == expected) return;
  const std::string rank = std::to_string(expected.rank);
  if (found.rank != expected.rank) {
    throw_invalid(where, "found a stream of rank " + std::to_string(found.rank) +
                             "; expected one of rank " + rank);
  }
  throw_invalid(where, "the stream of rank " + rank + " is of another device than the world's");
}

/// The same for an event or a graph, named by `what`, that is used on a stream.
inline void check_same_home(const char* what, Stream::Home found, Stream::Home stream) {
  if (found.rank != stream.rank) {
    throw_invalid(what, "is of rank " + std::to_string(found.rank) + "; expected rank " +
                            std::to_string(stream.rank) + ", the stream's");
  }
  if (found.device != stream.device) throw_invalid(what, "is of another device than the stream");
}

/// Throws kInvalidArgument if there is nothing to call on the device.
inline void check_callback(const std::function<void()>& work) {
  if (!work) throw_invalid("work", "is empty; expected a function");
}

}  // namespace braid
