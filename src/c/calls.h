#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <new>
#include <string>

#include "braid/braid.h"
#include "braid/error.h"
#include "braid/executable.h"
#include "braid/rendezvous.h"
#include "braid/symmetric_memory.h"
#include "braid/world.h"
#include "c/handles.h"
#include "c/listing.h"

// Shared by all calls of the C interface: the objects behind handles, and how a call ends.

namespace braid::c {

struct OpenWorld {
  World world;
  std::shared_ptr<Rendezvous> rendezvous;  ///< null where all ranks live here
  PassConfig passes;                       ///< for what is compiled in it
};
struct Compiled {
  World world;
  Executable executable;
  Listing listing;
};
struct RankStream {
  World world;
  int rank;
  std::unique_ptr<Stream> stream;
};
struct RankEvent {
  World world;
  std::unique_ptr<Event> event;
};
struct RankGraph {
  World world;
  std::unique_ptr<RecordedGraph> graph;
};

struct RankMemory {
  World world;
  std::unique_ptr<Memory> memory;
};
struct RankKernel {
  World world;
  int rank;
  std::string entry;
  int registers;  ///< of a thread; 0 where they are unknown
  std::unique_ptr<Module> module;
  Function* function;  ///< of the module
};
struct Symmetric {
  World world;
  SymmetricMemory memory;
};

/// The only state of the C interface in this process.
struct Tables {
  std::atomic<std::uintptr_t> last = 0;
  Handles<OpenWorld> worlds{"world", last};
  Handles<Compiled> executables{"executable", last};
  Handles<Executable::Plan> plans{"plan", last};
  Handles<RankStream> streams{"stream", last};
  Handles<RankEvent> events{"event", last};
  Handles<RankGraph> graphs{"graph", last};
  Handles<RankMemory> memories{"memory", last};
  Handles<Symmetric> symmetric{"symmetric memory", last};
  Handles<RankKernel> kernels{"kernel", last};
};
Tables& tables();

/// Thrown where a callback says to stop.
struct Cancelled {};

std::string& last_error();
braid_status status_of(ErrorCode code);
/// Returns the status, and keeps why.
braid_status fail(braid_status status, const char* why) noexcept;

/// Does the work of one call. No exception leaves it.
template <class Work>
braid_status call(Work work) noexcept {
  try {
    last_error().clear();
    work();
    last_error().clear();  // a callback may have called something that failed
    return BRAID_OK;
  } catch (const Error& error) {
    return fail(status_of(error.code()), error.what());
  } catch (const Cancelled&) {
    return fail(BRAID_CANCELLED, "progress: was told to stop");
  } catch (const std::bad_alloc&) {
    return fail(BRAID_OUT_OF_MEMORY, "out of memory");
  } catch (const std::exception& error) {
    return fail(BRAID_INTERNAL, error.what());
  }
}

template <class T>
T* given(T* pointer, const char* what) {
  if (pointer == nullptr) throw_invalid(what, "is null");
  return pointer;
}

/// Throws, of `what`, where the worlds are two.
void check_same_world(const World& a, const World& b, const char* what);

template <class Handle, class T>
braid_status destroy(Handles<T>& table, Handle handle) {
  return call([&] { (void)table.take(handle); });
}

}  // namespace braid::c
