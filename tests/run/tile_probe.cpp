#include "run/tile_probe.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "braid/error.h"
#include "codegen/cuda/print_cuda.h"
#include "codegen/passes/lower.h"
#include "codegen/tile/text.h"
#include "codegen/tile/verify.h"
#include "run/run_graph.h"

namespace braid::testing {
namespace {

constexpr std::size_t kArenaBytes = 1 << 18;

World open_world(const ProbeOptions& options) {
  WorldOptions out = cpu_world_options(options.world);
  out.sanitize = options.checks;
  out.schedule = parse_schedule(options.schedule);
  return World::open(out);
}

}  // namespace

std::string head_of_probe(int world) {
  return fmt::format(R"(warps 4
warps_m 2
world {}
param 0 peers 0 group "tp"
param 1 rank 0 group "tp"
param 2 flags 0 group "tp"
param 3 timeout 0 group "tp"
param 4 record 0
param 5 step 0
)",
                     world);
}

tile::Program finished(const std::string& text) {
  tile::Program program = tile::parse_text(text);
  tile::verify(program);
  tile::lower(program, Target{}, 2);
  tile::verify(program);
  return program;
}

CompiledKernel compiled(const tile::Program& program) {
  return compile_kernel({program.entry, tile::print_cuda(program)}, Target::parse("sm_80"), nullptr,
                        /*line_info=*/true);
}

void expect_compiles(const tile::Program& program) {
  for (const char* target : {"sm_80", "sm_90a", "sm_100a"}) {
    const CompiledKernel kernel =
        compile_kernel({program.entry, tile::print_cuda(program)}, Target::parse(target), nullptr);
    EXPECT_FALSE(kernel.image.cubin.empty()) << target;
    EXPECT_EQ(kernel.resources.spill_store_bytes, 0) << target;
  }
}

ProbeWorld::ProbeWorld(const tile::Program& program, const CompiledKernel& kernel,
                       const ProbeOptions& options)
    : program_(program),
      options_(options),
      world_(open_world(options)),
      ranks_(static_cast<std::size_t>(options.world)) {
  Device& device = world_.device();
  for (const tile::Param& param : program.params) {
    if (param.what.kind == KernelParam::Kind::kResultOffset) shared_output_ = param.what.index;
  }
  for (int r = 0; r < options.world; ++r) {
    Rank& rank = at(r);
    rank.module = device.load(r, kernel.image);
    rank.stream = device.create_stream(r);
    rank.arena = allocate(r, kArenaBytes);
    rank.stream->fill(rank.arena, 0, static_cast<std::size_t>(kOperandAt));
    memory_.push_back(device.allocate_host(r, sizeof(protocol::Record)));
    rank.record = memory_.back()->address();
    rank.stream->fill(rank.record, 0, sizeof(protocol::Record));
    rank.stream->synchronize();
  }
}

std::uint64_t ProbeWorld::allocate(int rank, std::size_t bytes) {
  memory_.push_back(world_.device().allocate(rank, bytes));
  return memory_.back()->address();
}

void ProbeWorld::put(int rank, std::uint64_t address, const void* data, std::size_t bytes) {
  at(rank).stream->copy_from_host(address, data, bytes);
  at(rank).stream->synchronize();
}

void ProbeWorld::get(int rank, void* data, std::uint64_t address, std::size_t bytes) {
  at(rank).stream->copy_to_host(data, address, bytes);
  at(rank).stream->synchronize();
}

std::vector<std::uint64_t> ProbeWorld::words_of(int rank, const KernelParam& param,
                                                std::size_t first_input, std::size_t first_output) {
  using K = KernelParam::Kind;
  const auto index = static_cast<std::size_t>(param.index);
  switch (param.kind) {
    case K::kPeers: {
      std::vector<std::uint64_t> arenas;
      for (const Rank& r : ranks_) arenas.push_back(r.arena);
      return arenas;
    }
    case K::kInput:
      return {at(rank).inputs[first_input + index]};
    case K::kOutput:
      if (param.index == shared_output_) return {at(rank).arena + kOperandAt};
      return {at(rank).outputs[first_output + index]};
    case K::kRank:
      return {static_cast<std::uint64_t>(rank)};
    case K::kFlags:
      return {static_cast<std::uint64_t>(kFlagsAt)};
    case K::kScratch:
      return {static_cast<std::uint64_t>(kScratchAt)};
    case K::kClosing:
      return {1};  // each run is a program's
    case K::kOffset:
    case K::kResultOffset:
      return {static_cast<std::uint64_t>(kOperandAt)};
    case K::kTimeout:
      return {options_.timeout_ns};
    case K::kRecord:
      return {at(rank).record};
    default:
      return {0};
  }
}

void ProbeWorld::launch(int rank, std::size_t first_input, std::size_t first_output) {
  std::vector<std::vector<std::uint64_t>> words;
  for (const tile::Param& param : program_.params) {
    words.push_back(words_of(rank, param.what, first_input, first_output));
  }
  std::vector<const void*> args;
  for (const auto& word : words) args.push_back(word.data());
  at(rank).stream->launch(at(rank).module->function(program_.entry),
                          {{static_cast<std::uint32_t>(program_.grid.evaluate({}))},
                           {static_cast<std::uint32_t>(32 * program_.num_warps)},
                           static_cast<std::uint32_t>(program_.shared_bytes)},
                          args);
}

bool ProbeWorld::synchronize() {
  bool good = true;
  for (Rank& rank : ranks_) {
    try {
      rank.stream->synchronize();
    } catch (const Error&) {
      good = false;
    }
  }
  return good;
}

Floats ProbeWorld::output(int rank, std::size_t index, std::size_t floats) {
  Floats values(floats);
  get(rank, values.data(), at(rank).outputs[index], 4 * floats);
  return values;
}

std::vector<std::uint32_t> ProbeWorld::arena_words(int rank, std::int64_t offset,
                                                   std::size_t count) {
  std::vector<std::uint32_t> words(count);
  get(rank, words.data(), at(rank).arena + static_cast<std::uint64_t>(offset), 4 * count);
  return words;
}

protocol::Record ProbeWorld::record(int rank) {
  protocol::Record record;
  get(rank, &record, at(rank).record, sizeof(record));
  return record;
}

}  // namespace braid::testing
