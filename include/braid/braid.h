/** @file
 * braid from C, and from whatever calls C: a graph in, runs on the caller's streams.
 *
 * Every function but the first two returns a status and says why in braid_last_error(). Handles
 * name things and are no pointers: one that is null, destroyed, or of another kind is
 * BRAID_INVALID_ARGUMENT. Different threads may use different executables at the same time, and
 * one executable one after the other, but for braid_run_rank and braid_cancel. Nothing here prints
 * or exits; a warning goes to the callback of the world, or nowhere. A child that is forked once a
 * world is open must not use braid unless exec follows: what is of that world refuses it.
 *
 * docs/embedding.md says how the calls fit together, and where an example is. */
#ifndef BRAID_BRAID_H_
#define BRAID_BRAID_H_

#include <stddef.h>
#include <stdint.h>

#include "braid/export.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Names as C has them. NOLINTBEGIN(readability-identifier-naming) */

typedef enum braid_status {
  BRAID_OK = 0,
  BRAID_INVALID_ARGUMENT = 1, /**< bad input: a graph, a tensor, a handle */
  BRAID_ENVIRONMENT = 2,      /**< something is missing or broken on this machine */
  BRAID_TIMEOUT = 3,          /**< a wait inside a kernel ran past its deadline */
  BRAID_INTERNAL = 4,         /**< a bug in braid */
  BRAID_OUT_OF_MEMORY = 5,    /**< of the host */
  BRAID_CANCELLED = 6,        /**< by a callback, or braid_cancel */
} braid_status;

typedef struct braid_world_tag* braid_world;
typedef struct braid_executable_tag* braid_executable;
typedef struct braid_plan_tag* braid_plan;
typedef struct braid_stream_tag* braid_stream;
typedef struct braid_event_tag* braid_event;
typedef struct braid_graph_tag* braid_graph;
typedef struct braid_memory_tag* braid_memory;
typedef struct braid_symmetric_tag* braid_symmetric;

/** "0.1.0". */
BRAID_API const char* braid_version(void);
/** Why this thread's last call failed, on one line: "place: what was found; what was expected".
 * Empty where it did not. Good until the thread's next call. */
BRAID_API const char* braid_last_error(void);

/** Where kernels run. All zero, but for `bytes`, are the defaults. */
typedef struct braid_world_options {
  size_t bytes;          /**< sizeof(braid_world_options), maybe of an older, smaller one */
  const char* device;    /**< "cuda" or "cpu"; null: cuda where there is a GPU */
  int32_t world;         /**< ranks, all of this process unless there is a `host`; 0: one */
  int32_t threads;       /**< of the cpu device; 0: all cores */
  const char* cache_dir; /**< of compiled kernels; null: the default one */
  const char* target;    /**< "sm_90a", "H100"; null: the GPU's own, on cpu what the graph needs */
  double timeout_s;      /**< how long a wait for a peer may take; 0: 30 s on cuda, 120 s on cpu */
  /** Told of what costs speed only. May be null, as all callbacks. */
  void (*warning)(void* context, const char* what);
  /** Before each kernel that is compiled or taken from the cache; at the end `done == total`. Not 0
   * cancels. */
  int (*progress)(void* context, size_t done, size_t total, const char* what);
  /** Both or neither: where memory comes from that ranks do not share and the caller does not bind.
   * `allocate` gives memory of the device, 256-byte aligned, or 0. */
  uint64_t (*allocate)(void* context, int32_t rank, size_t bytes);
  void (*free)(void* context, int32_t rank, uint64_t address, size_t bytes);
  void* context; /**< of the callbacks */
  /** How many processes compile at one time what no cache holds; 0: this one does. They run
   * `compile_worker`, or where that is null the braid-worker beside libbraid.so. */
  int32_t compile_processes;
  const char* compile_worker;
  /** Not 0: braid_compile of a graph with buckets returns when the first one can be used, and a
   * thread, from which `progress` is told, compiles the others: see braid_ready. */
  int32_t compile_in_background;
  /** Where rank 0 listens, of a world that has but one rank in each process: all of them say the
   * same, and their own `rank`. Null: all ranks live in this process. */
  const char* host;
  int32_t port;          /**< 0: 29500; where another has it they meet beside it, by `job` */
  int32_t rank;          /**< of this process; as `port`, refused without a `host` */
  const char* job;       /**< tells this job's processes from others; may be null */
  double meet_timeout_s; /**< how long the others may take to come, or be silent; 0: 30 s */
} braid_world_options;

/** Sets `world`, `rank`, `host`, `port`, `job` and `meet_timeout_s` by what the launcher of this
 * process has put into its environment (docs/command.md); none where it is the only one. The texts
 * are good until the thread's next call of this. */
BRAID_API braid_status braid_options_from_environment(braid_world_options* options);
/** `options` may be null. With a `host` it returns when all ranks are there; they make the same
 * calls of those that say so, in the same order, braid_compile, braid_load and braid_another
 * among them. */
BRAID_API braid_status braid_world_open(const braid_world_options* options, braid_world* world);
/** The world lives on until its executables, plans and streams are gone, too. */
BRAID_API braid_status braid_world_destroy(braid_world world);
/** Called by all ranks: returns once all have come here, as they should before they end. */
BRAID_API braid_status braid_world_barrier(braid_world world);

/** What the executables of a world did since it was opened. Those of a warm server compile nothing.
 */
typedef struct braid_metrics {
  uint64_t kernels_compiled, kernels_from_cache;
  double compile_ms;
  uint64_t plans, runs, failures; /**< prepared, enqueued, of runs */
} braid_metrics;
BRAID_API braid_status braid_world_metrics(braid_world world, braid_metrics* metrics);

/** Lowers and compiles a graph (JSON, NUL-terminated; docs/graph.schema.json), or takes its kernels
 * from the cache, and allocates what it needs. */
BRAID_API braid_status braid_compile(braid_world world, const char* graph_json,
                                     braid_executable* executable);
/** Bytes that the executable of a graph would take on each rank; nothing is compiled or allocated.
 * `bound`: of those, what a caller who binds all inputs, parameters and outputs does not need. */
BRAID_API braid_status braid_memory_estimate(braid_world world, const char* graph_json,
                                             int64_t* bytes, int64_t* bound);
/** Writes plan and kernels into a directory, for braid_load: no NVRTC and no graph needed there. */
BRAID_API braid_status braid_save(braid_executable executable, const char* directory);
/** Refuses what another version of braid wrote, and what is for another GPU or number of ranks. */
BRAID_API braid_status braid_load(braid_world world, const char* directory,
                                  braid_executable* executable);
/** The same program once more, to run beside it in another thread: nothing is compiled again, and
 * parameters are there once. What else is bound is to be bound anew. */
BRAID_API braid_status braid_another(braid_executable executable, braid_executable* another);
/** Waits for its runs. */
BRAID_API braid_status braid_executable_destroy(braid_executable executable);

/** An input, parameter or output of an executable. Newer libraries may add to its end. */
typedef struct braid_tensor_info {
  const char* name;
  const char* dtype;        /**< as in a graph */
  int32_t dims;             /**< how many */
  const char* const* shape; /**< of each dim, as in a graph: "8", "2*T" */
  int32_t parameter;        /**< of an input, 1: it is given once, 0: anew for each run */
  int32_t per_rank;         /**< of an input, 1: ranks have their own, 0: all have the same */
} braid_tensor_info;
/** A symbol of an executable: from `min` to `max`, in steps of `multiple_of`. Likewise. */
typedef struct braid_symbol_info {
  const char* name;
  int64_t min, max, multiple_of;
} braid_symbol_info;
/** One of the inputs (parameters among them) or outputs, in the order of the graph, or of the
 * symbols: number `index` from 0 on, null past the last. It stays as long as the executable. */
BRAID_API braid_status braid_input(braid_executable executable, size_t index,
                                   const braid_tensor_info** input);
BRAID_API braid_status braid_output(braid_executable executable, size_t index,
                                    const braid_tensor_info** output);
BRAID_API braid_status braid_symbol(braid_executable executable, size_t index,
                                    const braid_symbol_info** symbol);

/** A dense row-major tensor. */
typedef struct braid_tensor {
  void* data;             /**< of the device, or of the host where a call says so */
  const char* dtype;      /**< as in a graph: "f32", "bf16", "f8e4m3", "i64", ... */
  int32_t dims;           /**< how many */
  const int64_t* shape;   /**< of each dim */
  const int64_t* strides; /**< in elements; null: row-major. Others are refused. */
} braid_tensor;

/** Has an input, parameter or output of a rank in the caller's device memory, which is never copied
 * and must stay as long as plans that were prepared with it may run. Its first dim may be longer
 * than what a plan needs. For the plans prepared from now on. */
BRAID_API braid_status braid_bind(braid_executable executable, int32_t rank, const char* name,
                                  const braid_tensor* tensor);
struct DLManagedTensor; /**< dlpack/dlpack.h */
/** The same of a DLPack tensor, on the rank's GPU, or on the CPU for the cpu device. It stays the
 * caller's: only its memory is kept. */
BRAID_API braid_status braid_bind_dlpack(braid_executable executable, int32_t rank,
                                         const char* name, const struct DLManagedTensor* tensor);

/** All that can fail or be slow, for one value of each symbol. Many plans live side by side. */
BRAID_API braid_status braid_prepare(braid_executable executable, const char* const* symbols,
                                     const int64_t* values, size_t count, braid_plan* plan);
BRAID_API braid_status braid_plan_destroy(braid_plan plan);
/** Whether braid_prepare of these values need not wait for a compile: 1, but for buckets that are
 * still compiled (compile_in_background). It has the one that it waits for compiled first. */
BRAID_API braid_status braid_ready(braid_executable executable, const char* const* symbols,
                                   const int64_t* values, size_t count, int32_t* ready);

/** Copy host memory into an input, and an output out of the last run, whole; `tensor` and `bytes`
 * must fit the plan. Both wait. */
BRAID_API braid_status braid_set_input(braid_executable executable, int32_t rank, const char* name,
                                       const braid_tensor* tensor);
BRAID_API braid_status braid_get_output(braid_executable executable, int32_t rank, const char* name,
                                        void* data, size_t bytes);

/** Enqueues a run on all ranks and returns. `streams`: of each rank in order, behind which the run
 * comes, and which go on behind it; with `count` 0 the executable's own. */
BRAID_API braid_status braid_run(braid_executable executable, braid_plan plan,
                                 const braid_stream* streams, size_t count);
/** One rank's part of that, from a thread for each GPU, all at one time; each rank gets the same
 * plans in the same order. `stream`: of the rank, or null. */
BRAID_API braid_status braid_run_rank(braid_executable executable, braid_plan plan, int32_t rank,
                                      braid_stream stream);
/** From any thread: ends what in the runs of an executable waits for other ranks. Those runs are
 * lost, as braid_synchronize then says once: BRAID_CANCELLED. */
BRAID_API braid_status braid_cancel(braid_executable executable);
/** Waits for all runs; the first error of one is its status. */
BRAID_API braid_status braid_synchronize(braid_executable executable);
/** Called by all ranks after a run that failed, where they live in several processes: the next run
 * starts afresh. */
BRAID_API braid_status braid_recover(braid_executable executable);

BRAID_API braid_status braid_stream_create(braid_world world, int32_t rank, braid_stream* stream);
/** A stream of the caller's, a CUstream, which stays until this handle is destroyed. */
BRAID_API braid_status braid_stream_wrap(braid_world world, int32_t rank, void* raw,
                                         braid_stream* stream);
BRAID_API braid_status braid_stream_synchronize(braid_stream stream);
BRAID_API braid_status braid_stream_destroy(braid_stream stream);

/** A point in a stream, for which another one, of any rank of the world, waits. */
BRAID_API braid_status braid_event_create(braid_world world, int32_t rank, braid_event* event);
BRAID_API braid_status braid_event_record(braid_event event, braid_stream stream);
BRAID_API braid_status braid_stream_wait(braid_stream stream, braid_event event);
BRAID_API braid_status braid_event_destroy(braid_event event);

/** What comes on the stream from now on is recorded and not done: runs, too, where the streams of
 * all ranks are captured. */
BRAID_API braid_status braid_begin_capture(braid_stream stream);
/** The executables and the memory that the graph uses must stay as long as it does. */
BRAID_API braid_status braid_end_capture(braid_stream stream, braid_graph* graph);
/** All of it again, on a stream of the rank; the order among other runs is the caller's. */
BRAID_API braid_status braid_replay(braid_graph graph, braid_stream stream);
BRAID_API braid_status braid_graph_destroy(braid_graph graph);

/** Memory of a rank, for tensors to bind, to copy, and for braid_symmetric_register: 256-byte
 * aligned, and not zeroed. A GPU may take 2 MiB and more for it. */
BRAID_API braid_status braid_memory_allocate(braid_world world, int32_t rank, size_t bytes,
                                             braid_memory* memory);
BRAID_API braid_status braid_memory_address(braid_memory memory, void** address);
/** No work that uses it may be in flight. */
BRAID_API braid_status braid_memory_destroy(braid_memory memory);
/** Enqueue a copy of device memory to device memory, of any rank, from the host, which may change
 * the bytes once the stream is synchronized, and to the host, which may read them then. */
BRAID_API braid_status braid_copy(braid_stream stream, void* to, const void* from, size_t bytes);
BRAID_API braid_status braid_copy_from_host(braid_stream stream, void* to, const void* from,
                                            size_t bytes);
BRAID_API braid_status braid_copy_to_host(braid_stream stream, void* to, const void* from,
                                          size_t bytes);

/** Memory of the caller's own that all ranks of the world reach: as many bytes on each. Called by
 * all ranks, which say the same, as the next one. The bytes are not zeroed. */
BRAID_API braid_status braid_symmetric_allocate(braid_world world, const char* name, size_t bytes,
                                                braid_symmetric* memory);
/** The same of memory that is there, allocated on the device, of each of the `count` ranks of this
 * process; it must stay until the handle is destroyed. */
BRAID_API braid_status braid_symmetric_register(braid_world world, const char* name,
                                                void* const* data, size_t count, size_t bytes,
                                                braid_symmetric* memory);
/** Where `rank`, of this process, finds the bytes of `peer`, itself or another one. */
BRAID_API braid_status braid_symmetric_address(braid_symmetric memory, int32_t rank, int32_t peer,
                                               void** address);
/** Enqueues that the rank meets all others that do the same on this channel, 0 to 7: what each did
 * before on its stream, the others see after. */
BRAID_API braid_status braid_symmetric_barrier(braid_symmetric memory, int32_t rank,
                                               braid_stream stream, int32_t channel);
/** Enqueues that `peer` may pass one more wait for this rank, and a wait for one of `peer`. */
BRAID_API braid_status braid_symmetric_put_signal(braid_symmetric memory, int32_t rank,
                                                  int32_t peer, braid_stream stream,
                                                  int32_t channel);
BRAID_API braid_status braid_symmetric_wait_signal(braid_symmetric memory, int32_t rank,
                                                   int32_t peer, braid_stream stream,
                                                   int32_t channel);
/** Once streams are synchronized: the error of a wait in vain, or of a rank that is lost. All waits
 * give up from then on, until all ranks have called braid_symmetric_recover with no work in flight.
 */
BRAID_API braid_status braid_symmetric_check(braid_symmetric memory);
BRAID_API braid_status braid_symmetric_recover(braid_symmetric memory);
/** No work that uses it may be in flight, on peers neither (braid_world_barrier). */
BRAID_API braid_status braid_symmetric_destroy(braid_symmetric memory);

/* NOLINTEND(readability-identifier-naming) */
#ifdef __cplusplus
}
#endif
#endif /* BRAID_BRAID_H_ */
