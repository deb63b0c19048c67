/** @file
 * The C interface of braid: compiles a graph and runs it on the caller's streams.
 *
 * Every function but the first two returns a status; braid_last_error() has the message. A call
 * that fails sets the handle that it would have returned to null. Handles are names, not pointers:
 * a null, destroyed or wrong kind of handle gives BRAID_INVALID_ARGUMENT. Threads may use different
 * executables at the same time. One executable may be used by one thread at a time, except for
 * braid_run_rank and braid_cancel. Nothing here prints or exits; warnings go to the world's
 * callback, or nowhere. A child forked after a world was opened must not use braid before exec; the
 * world's handles refuse it. No function may be called after main has returned (from atexit
 * handlers, or destructors of static objects).
 *
 * docs/embedding.md shows how the calls fit together and names an example. */
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
typedef struct braid_kernel_tag* braid_kernel;

/** "0.1.0". */
BRAID_API const char* braid_version(void);
/** Why this thread's last call failed, on one line: "place: what was found; what was expected".
 * Empty if it succeeded. Valid until the thread's next call. */
BRAID_API const char* braid_last_error(void);

/** Where kernels run. All fields zero, except `bytes`, means the defaults. */
typedef struct braid_world_options {
  size_t bytes;          /**< sizeof(braid_world_options); an older, smaller one is fine */
  const char* device;    /**< "cuda" or "cpu"; null: cuda where there is a GPU */
  int32_t world;         /**< ranks, all in this process unless `host` is set; 0: one */
  int32_t threads;       /**< threads of the cpu device; 0: one per core */
  const char* cache_dir; /**< of compiled kernels; null: the default one */
  const char* target;    /**< "sm_90a", "H100:mma.sync"; null: the GPU's own, on cpu the graph's */
  double timeout_s;      /**< limit of a wait for a peer; 0: 30 s on cuda, 120 s on cpu */
  /** Called about what costs only speed. All callbacks may be null. */
  void (*warning)(void* context, const char* what);
  /** Called before each kernel that is compiled or taken from the cache, and at the end with
   * `done == total`. A result other than 0 cancels. */
  int (*progress)(void* context, size_t done, size_t total, const char* what);
  /** Set both or neither. They allocate memory that ranks do not share and the caller does not
   * bind. `allocate` returns device memory, 256-byte aligned, or 0. */
  uint64_t (*allocate)(void* context, int32_t rank, size_t bytes);
  void (*free)(void* context, int32_t rank, uint64_t address, size_t bytes);
  void* context; /**< passed to the callbacks */
  /** Number of processes that compile kernels no cache holds; 0: this process compiles. They run
   * `compile_worker`, or where that is null the braid-worker beside libbraid.so. */
  int32_t compile_processes;
  const char* compile_worker;
  /** Not 0: for a graph with buckets, braid_compile returns when the first bucket can be used. A
   * thread, which also calls `progress`, compiles the others: see braid_ready. */
  int32_t compile_in_background;
  /** Host of rank 0, which listens there, for a world with one rank per process. All processes
   * pass the same host and their own `rank`. Null: all ranks are in this process. */
  const char* host;
  int32_t port;          /**< 0: 29500; see SocketOptions::port in rendezvous.h */
  int32_t rank;          /**< of this process; like `port`, refused without a `host` */
  const char* job;       /**< tells this job's processes from others; may be null */
  double meet_timeout_s; /**< limit for the others to arrive, and of their silence; 0: 30 s */
  const char* tune_db;   /**< file of `braid tune` with configurations of kernels; null: none */
  /** Options of passes, for braid_compile and braid_memory_estimate: "NAME=VALUE" with the names of
   * docs/passes.md; "enable=PASS,PASS" adds passes. Null ends the list; a null list is empty. */
  const char* const* pass_options;
  /** Checks of the cpu device: "all", or some of "bounds,init,race,sync"; null: none. A checked run
   * uses one thread. See braid_findings. */
  const char* sanitize;
  int32_t count; /**< not 0: the cpu device counts what kernels do; see braid_kernel_counts */
} braid_world_options;

/** Sets `world`, `rank`, `host`, `port`, `job` and `meet_timeout_s` from the launcher's environment
 * variables (docs/command.md). Changes nothing where this is the only process. The strings are
 * valid until the thread's next call of this function. */
BRAID_API braid_status braid_options_from_environment(braid_world_options* options);
/** Opens the device. `options` may be null. With a `host` it returns when all ranks are there. All
 * ranks then make the same calls, in the same order, of functions marked "called by all ranks" and
 * of braid_compile, braid_load and braid_another. */
BRAID_API braid_status braid_world_open(const braid_world_options* options, braid_world* world);
/** Destroys the handle. The world itself lives until its executables, plans and streams are gone.
 * */
BRAID_API braid_status braid_world_destroy(braid_world world);
/** Called by all ranks: returns once all have called it. Ranks should call it before they exit. */
BRAID_API braid_status braid_world_barrier(braid_world world);

/** Counters over all executables of a world since it was opened. A warm server compiles nothing. */
typedef struct braid_metrics {
  uint64_t kernels_compiled, kernels_from_cache;
  double compile_ms;
  uint64_t plans, runs, failures; /**< plans prepared, runs enqueued, runs failed */
} braid_metrics;
BRAID_API braid_status braid_world_metrics(braid_world world, braid_metrics* metrics);

/** Lowers a graph (JSON, NUL-terminated; docs/graph.schema.json), compiles its kernels or takes
 * them from the cache, and allocates its memory. */
BRAID_API braid_status braid_compile(braid_world world, const char* graph_json,
                                     braid_executable* executable);
/** Sets `bytes` to what the executable of a graph would allocate on each rank, and `bound` to the
 * part of it that a caller saves who binds all inputs, parameters and outputs. Compiles and
 * allocates nothing. */
BRAID_API braid_status braid_memory_estimate(braid_world world, const char* graph_json,
                                             int64_t* bytes, int64_t* bound);
/** Writes the plan and its kernels into a directory. braid_load needs neither NVRTC nor the graph.
 * */
BRAID_API braid_status braid_save(braid_executable executable, const char* directory);
/** Loads what braid_save wrote. BRAID_INVALID_ARGUMENT for a format or a kernel's text of another
 * version of braid, for another GPU and for another number of ranks. */
BRAID_API braid_status braid_load(braid_world world, const char* directory,
                                  braid_executable* executable);
/** A second instance of the same program, to run beside it in another thread. Nothing is compiled
 * again, and both share the parameters. Other tensors must be bound again. */
BRAID_API braid_status braid_another(braid_executable executable, braid_executable* another);
/** Waits for its runs, then destroys it. */
BRAID_API braid_status braid_executable_destroy(braid_executable executable);

/** An input, parameter or output of an executable. Newer versions may append fields. */
typedef struct braid_tensor_info {
  const char* name;
  const char* dtype;        /**< as in a graph */
  int32_t dims;             /**< how many */
  const char* const* shape; /**< of each dim, as in a graph: "8", "2*T" */
  int32_t parameter;        /**< inputs only; 1: supplied once, 0: anew for each run, 2: a state,
                             * zero at first and kept as runs leave it */
  int32_t per_rank;         /**< inputs only; 1: ranks have their own, 0: all the same */
} braid_tensor_info;
/** A symbol of an executable: from `min` to `max`, in steps of `multiple_of`. Newer versions may
 * append fields. */
typedef struct braid_symbol_info {
  const char* name;
  int64_t min, max, multiple_of;
} braid_symbol_info;
/** Describes the input (parameters included), output or symbol number `index`, counted from 0 in
 * the graph's order; null past the last. The result lives as long as the executable. */
BRAID_API braid_status braid_input(braid_executable executable, size_t index,
                                   const braid_tensor_info** input);
BRAID_API braid_status braid_output(braid_executable executable, size_t index,
                                    const braid_tensor_info** output);
BRAID_API braid_status braid_symbol(braid_executable executable, size_t index,
                                    const braid_symbol_info** symbol);

/** A dense row-major tensor. */
typedef struct braid_tensor {
  void* data;             /**< on the device, or on the host where a call says so */
  const char* dtype;      /**< as in a graph: "f32", "bf16", "f8e4m3", "i64", ... */
  int32_t dims;           /**< how many */
  const int64_t* shape;   /**< of each dim */
  const int64_t* strides; /**< in elements; null: row-major. Others are refused. */
} braid_tensor;

/** Places an input, parameter or output of a rank in the caller's device memory, for plans prepared
 * from now on. The memory is never copied and must stay valid while such plans may run. Its first
 * dim may be longer than a plan needs. */
BRAID_API braid_status braid_bind(braid_executable executable, int32_t rank, const char* name,
                                  const braid_tensor* tensor);
struct DLManagedTensor; /**< dlpack/dlpack.h */
/** braid_bind for a DLPack tensor, on the rank's GPU, or on the CPU for the cpu device. The caller
 * keeps ownership of the tensor; only its memory is used. */
BRAID_API braid_status braid_bind_dlpack(braid_executable executable, int32_t rank,
                                         const char* name, const struct DLManagedTensor* tensor);

/** Makes a plan for one value of each symbol: does everything that can fail or is slow. Any number
 * of plans may exist. */
BRAID_API braid_status braid_prepare(braid_executable executable, const char* const* symbols,
                                     const int64_t* values, size_t count, braid_plan* plan);
BRAID_API braid_status braid_plan_destroy(braid_plan plan);
/** Sets `ready` to 0 where braid_prepare for these values would wait for a bucket that is still
 * being compiled (compile_in_background), else to 1. braid_prepare moves the bucket that it waits
 * for to the front. */
BRAID_API braid_status braid_ready(braid_executable executable, const char* const* symbols,
                                   const int64_t* values, size_t count, int32_t* ready);

/** Copies a whole input from host memory, or a whole output of the last run to host memory.
 * `tensor` and `bytes` must fit the plan. Both functions wait. */
BRAID_API braid_status braid_set_input(braid_executable executable, int32_t rank, const char* name,
                                       const braid_tensor* tensor);
BRAID_API braid_status braid_get_output(braid_executable executable, int32_t rank, const char* name,
                                        void* data, size_t bytes);

/** Enqueues a run on all ranks and returns. `streams` has one stream for each rank, in order: the
 * run follows earlier work on them and precedes later work. With `count` 0 it uses the executable's
 * own streams. BRAID_INVALID_ARGUMENT for the first input that has no value on some rank: it was
 * neither set, for whatever plan, nor bound before braid_prepare. States begin with zeros. */
BRAID_API braid_status braid_run(braid_executable executable, braid_plan plan,
                                 const braid_stream* streams, size_t count);
/** Enqueues one rank's part of a run, from one thread per GPU, all at the same time. Each rank must
 * get the same plans in the same order. `stream` belongs to the rank, or is null for the
 * executable's own. */
BRAID_API braid_status braid_run_rank(braid_executable executable, braid_plan plan, int32_t rank,
                                      braid_stream stream);
/** Ends all waits for other ranks in the executable's runs; any thread may call it. Those runs are
 * lost, and the next braid_synchronize returns BRAID_CANCELLED once. */
BRAID_API braid_status braid_cancel(braid_executable executable);
/** Waits for all runs and returns the first error of any. */
BRAID_API braid_status braid_synchronize(braid_executable executable);
/** Called by all ranks after a failed run, where they are in several processes: the next run starts
 * afresh. */
BRAID_API braid_status braid_recover(braid_executable executable);

BRAID_API braid_status braid_stream_create(braid_world world, int32_t rank, braid_stream* stream);
/** Wraps the caller's CUstream `raw`, which must outlive the handle. */
BRAID_API braid_status braid_stream_wrap(braid_world world, int32_t rank, void* raw,
                                         braid_stream* stream);
BRAID_API braid_status braid_stream_synchronize(braid_stream stream);
BRAID_API braid_status braid_stream_destroy(braid_stream stream);

/** An event. It is recorded on one stream; a stream of any rank of the world can wait for it. */
BRAID_API braid_status braid_event_create(braid_world world, int32_t rank, braid_event* event);
BRAID_API braid_status braid_event_record(braid_event event, braid_stream stream);
BRAID_API braid_status braid_stream_wait(braid_stream stream, braid_event event);
BRAID_API braid_status braid_event_destroy(braid_event event);

/** Starts to capture: later work on the stream is recorded instead of executed. Runs are recorded
 * too where the streams of all ranks are being captured. */
BRAID_API braid_status braid_begin_capture(braid_stream stream);
/** Ends the capture. The executables and the memory that the graph uses must outlive it. */
BRAID_API braid_status braid_end_capture(braid_stream stream, braid_graph* graph);
/** Enqueues the captured work on a stream of the rank. The caller orders it with other runs. */
BRAID_API braid_status braid_replay(braid_graph graph, braid_stream stream);
BRAID_API braid_status braid_graph_destroy(braid_graph graph);

/** Allocates memory of a rank, 256-byte aligned and not zeroed, for tensors to bind, for copies and
 * for braid_symmetric_register. A GPU may round the size up to 2 MiB or more. */
BRAID_API braid_status braid_memory_allocate(braid_world world, int32_t rank, size_t bytes,
                                             braid_memory* memory);
BRAID_API braid_status braid_memory_address(braid_memory memory, void** address);
/** Frees the memory. No work that uses it may be in flight. */
BRAID_API braid_status braid_memory_destroy(braid_memory memory);
/** Enqueues a copy: between device memory of any ranks, from the host, or to the host. The host may
 * change or read its bytes once the stream is synchronized. */
BRAID_API braid_status braid_copy(braid_stream stream, void* to, const void* from, size_t bytes);
BRAID_API braid_status braid_copy_from_host(braid_stream stream, void* to, const void* from,
                                            size_t bytes);
BRAID_API braid_status braid_copy_to_host(braid_stream stream, void* to, const void* from,
                                          size_t bytes);

/** Allocates memory that all ranks of the world can reach: `bytes` on each, not zeroed. Called by
 * all ranks with the same arguments. */
BRAID_API braid_status braid_symmetric_allocate(braid_world world, const char* name, size_t bytes,
                                                braid_symmetric* memory);
/** Shares device memory that the caller has allocated on each of the `count` ranks of this process.
 * Called by all ranks. The memory must outlive the handle. */
BRAID_API braid_status braid_symmetric_register(braid_world world, const char* name,
                                                void* const* data, size_t count, size_t bytes,
                                                braid_symmetric* memory);
/** The address at which `rank`, a rank of this process, reaches the bytes of `peer` (itself
 * included). */
BRAID_API braid_status braid_symmetric_address(braid_symmetric memory, int32_t rank, int32_t peer,
                                               void** address);
/** Enqueues a barrier of all ranks that call it on this channel, 0 to 7. Work before it on each
 * stream is visible to work behind it on the others. */
BRAID_API braid_status braid_symmetric_barrier(braid_symmetric memory, int32_t rank,
                                               braid_stream stream, int32_t channel);
/** put_signal enqueues a signal to `peer`; wait_signal enqueues a wait for one signal from `peer`.
 * */
BRAID_API braid_status braid_symmetric_put_signal(braid_symmetric memory, int32_t rank,
                                                  int32_t peer, braid_stream stream,
                                                  int32_t channel);
BRAID_API braid_status braid_symmetric_wait_signal(braid_symmetric memory, int32_t rank,
                                                   int32_t peer, braid_stream stream,
                                                   int32_t channel);
/** To be called once the streams are synchronized: returns the error of a wait that expired, or of
 * a lost rank. From then on all waits give up, until all ranks have called braid_symmetric_recover
 * with no work in flight. */
BRAID_API braid_status braid_symmetric_check(braid_symmetric memory);
BRAID_API braid_status braid_symmetric_recover(braid_symmetric memory);
/** Destroys the handle. No work that uses it may be in flight, on peers either
 * (braid_world_barrier). */
BRAID_API braid_status braid_symmetric_destroy(braid_symmetric memory);

/** A kernel of the caller's own. All fields zero, except `bytes`, `ptx` and `entry`, mean the
 * defaults. */
typedef struct braid_kernel_source {
  size_t bytes;      /**< sizeof(braid_kernel_source) */
  const char* ptx;   /**< the text, NUL-terminated */
  const char* entry; /**< name of its .entry */
  const char* file;  /**< what findings call the text, such as "add.ptx" */
  int32_t registers; /**< of each thread, as ptxas says, for estimates; 0: unknown */
} braid_kernel_source;
/** Loads a kernel on a rank. On the cpu device docs/ptx.md says which instructions it may have. */
BRAID_API braid_status braid_kernel_load(braid_world world, int32_t rank,
                                         const braid_kernel_source* source, braid_kernel* kernel);
/** A launch. Extents that are 0 count as 1. */
typedef struct braid_launch {
  size_t bytes;            /**< sizeof(braid_launch) */
  uint32_t grid[3];        /**< blocks along x, y and z */
  uint32_t block[3];       /**< threads of a block */
  uint32_t cluster[3];     /**< blocks of a cluster */
  uint32_t shared_bytes;   /**< dynamic shared memory of a block */
  const void* const* args; /**< as of cuLaunchKernel: args[i] points to the value of parameter i,
                            * which is copied before the call returns */
  size_t count;            /**< of args */
} braid_launch;
/** Enqueues a launch on a stream of the kernel's rank. On the cpu device kernels use any memory of
 * the process by its address, but see braid_memory_lend. */
BRAID_API braid_status braid_kernel_launch(braid_kernel kernel, braid_stream stream,
                                           const braid_launch* launch);
/** Destroys the handle. No launch may be in flight. */
BRAID_API braid_status braid_kernel_destroy(braid_kernel kernel);

/** A tensor and the boxes that tensor copies take from it: the arguments of
 * cuTensorMapEncodeTiled, with the numbers of its enums. */
typedef struct braid_tensor_map {
  size_t bytes;            /**< sizeof(braid_tensor_map) */
  void* data;              /**< a multiple of 16 */
  int32_t type;            /**< a CUtensorMapDataType */
  int32_t rank;            /**< dims, 1 to 5; the innermost is the first */
  const uint64_t* dims;    /**< in elements */
  const uint64_t* strides; /**< in bytes, of all dims but the first */
  const uint32_t* box;     /**< in elements */
  int32_t swizzle;         /**< a CUtensorMapSwizzle: none, 32, 64 or 128 bytes */
  int32_t nan_fill;        /**< not 0: elements outside of the tensor read as NaN, else as 0 */
} braid_tensor_map;
/** Writes the 128 bytes by which kernels of a cpu device know the map. BRAID_ENVIRONMENT on cuda,
 * where the driver encodes maps. */
BRAID_API braid_status braid_tensor_map_encode(braid_world world, const braid_tensor_map* map,
                                               void* encoded);

/** Tells a world that checks accesses of host memory that kernels of `rank` may use until the
 * handle is destroyed. It counts as written, and findings call it `name`. A world that checks
 * nothing takes no notice. */
BRAID_API braid_status braid_memory_lend(braid_world world, int32_t rank, void* data, size_t bytes,
                                         const char* name, braid_memory* memory);
/** Sets `json` to {"findings": [...], "notes": [...]}, what the sanitizer has found since
 * braid_forget; docs/checking.md says what they are. Valid until the thread's next call of this
 * function. No work may be in flight. */
BRAID_API braid_status braid_findings(braid_world world, const char** json);
/** Sets `json` to the counts of all launches since braid_forget of kernels with this one's entry,
 * and an estimate of a launch's time on `device`, one of those of `braid run --count`. Null where
 * there was none. Valid until the thread's next call of this function. No work may be in flight. */
BRAID_API braid_status braid_kernel_counts(braid_kernel kernel, const char* device,
                                           const char** json);
/** Forgets all findings and counts of a world. No work may be in flight. */
BRAID_API braid_status braid_forget(braid_world world);
/** What such a device is. Newer versions may append fields. */
typedef struct braid_device_info {
  int32_t architecture; /**< 90: sm_90 */
  int32_t multiprocessors;
  int32_t shared_bytes; /**< most of one block */
  double ghz;           /**< clock of the multiprocessors */
} braid_device_info;
/** Describes a device by its name, such as "H100". */
BRAID_API braid_status braid_describe_device(const char* device, braid_device_info* info);

/* NOLINTEND(readability-identifier-naming) */
#ifdef __cplusplus
}
#endif
#endif /* BRAID_BRAID_H_ */
