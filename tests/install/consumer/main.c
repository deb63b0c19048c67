/* braid from C: two ranks, two plans on the caller's streams; saved in one process, loaded in
 * another. Usage: consumer_c save|load DIRECTORY */
#include <braid/braid.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(call)                                                 \
  do {                                                              \
    if ((call) != BRAID_OK) {                                       \
      fprintf(stderr, "consumer_c: %s\n", braid_last_error());      \
      exit(1);                                                      \
    }                                                               \
  } while (0)
enum { kRanks = 2, kRows = 4, kWidth = 8 };

static const char* const kGraph =
    "{\"braid\": 1, \"name\": \"sum\", \"symbols\": {\"T\": {\"min\": 1, \"max\": 4}},"
    " \"groups\": {\"tp\": {\"size\": 2}},"
    " \"inputs\": [{\"name\": \"x\", \"dtype\": \"f32\", \"shape\": [\"T\", 8], \"per_rank\": true}],"
    " \"nodes\": [{\"name\": \"c\", \"op\": \"all_reduce\", \"inputs\": [\"x\"],"
    "              \"attrs\": {\"reduce_op\": \"sum\", \"group\": \"tp\"}},"
    "             {\"name\": \"y\", \"op\": \"wait_tensor\", \"inputs\": [\"c\"]}],"
    " \"outputs\": [\"y\"]}";

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  braid_world_options options = {.bytes = sizeof options, .device = "cpu", .world = kRanks};
  braid_world world;
  braid_executable sum;
  CHECK(braid_world_open(&options, &world));
  if (strcmp(argv[1], "save") == 0) {
    CHECK(braid_compile(world, kGraph, &sum));
    CHECK(braid_save(sum, argv[2]));
  } else {
    CHECK(braid_load(world, argv[2], &sum));
  }
  braid_stream streams[kRanks];
  static _Alignas(16) float x[kRanks][kRows][kWidth];
  static _Alignas(16) float y[kRanks][kRows][kWidth];
  const int64_t shape[] = {kRows, kWidth};
  for (int rank = 0; rank < kRanks; ++rank) {
    CHECK(braid_stream_create(world, rank, &streams[rank]));
    CHECK(braid_bind(sum, rank, "x", &(braid_tensor){x[rank], "f32", 2, shape, NULL}));
    CHECK(braid_bind(sum, rank, "y", &(braid_tensor){y[rank], "f32", 2, shape, NULL}));
  }
  for (int64_t rows = 1; rows <= kRows; rows += 3) {
    braid_plan plan;
    CHECK(braid_prepare(sum, (const char* const[]){"T"}, &rows, 1, &plan));
    for (int rank = 0; rank < kRanks; ++rank) x[rank][rows - 1][0] = (float)(10 * rows + rank);
    CHECK(braid_run(sum, plan, streams, kRanks));
    for (int rank = 0; rank < kRanks; ++rank) CHECK(braid_stream_synchronize(streams[rank]));
    printf("%g %g ", y[0][rows - 1][0], y[1][rows - 1][0]);
    CHECK(braid_plan_destroy(plan));
  }
  CHECK(braid_executable_destroy(sum));
  if (braid_synchronize(sum) == BRAID_INVALID_ARGUMENT) printf("%s\n", braid_last_error());
  return 0;
}
