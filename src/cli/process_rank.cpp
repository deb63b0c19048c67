#include "cli/process_rank.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdint>
#include <optional>

#include "braid/error.h"
#include "ir/text.h"
#include "runtime/dynamic_library.h"

namespace braid::cli {
namespace {

constexpr int kMostProcesses = 1024;

struct Variables {
  const char* rank;
  const char* world;
  const char* local_world;
  bool alone_is_half;  ///< where the one is set without the other, that is a mistake
};
constexpr Variables kLaunchers[] = {
    {"RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", true},
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE", true},
    // The shell of an allocation has the one, too.
    {"SLURM_PROCID", "SLURM_NTASKS", "", false},
};

template <class Number>
Number read(const char* name, Number least, Number most) {
  const std::string text = environment(name);
  Number value{};
  const char* const end = text.data() + text.size();
  const auto [at, code] = std::from_chars(text.data(), end, value);
  if (code == std::errc() && at == end && value >= least && value <= most) return value;
  throw_invalid(name, fmt::format("found {}; expected a number from {:g} to {:g}", quote(text),
                                  static_cast<double>(least), static_cast<double>(most)));
}

std::string first_of(std::initializer_list<const char*> names) {
  for (const char* name : names) {
    if (std::string value = environment(name); !value.empty()) return value;
  }
  return {};
}

/// What tells this job from another one of the same machine.
std::string job() {
  std::string name = first_of({"BRAID_JOB", "TORCHELASTIC_RUN_ID", "PMIX_NAMESPACE"});
  if (!name.empty() || environment("SLURM_JOB_ID").empty()) return name;
  return environment("SLURM_JOB_ID") + "." + environment("SLURM_STEP_ID");
}

}  // namespace

std::shared_ptr<Rendezvous> ProcessRank::meet() const {
  if (alone()) return nullptr;
  SocketOptions options;
  options.ranks = {rank};
  options.world = world;
  options.address = address;
  options.port = port;
  options.job = job;
  options.timeout_s = timeout_s;
  return meet_by_socket(options);
}

ProcessRank process_rank() {
  ProcessRank result;
  for (const auto& [rank, world, local_world, alone_is_half] : kLaunchers) {
    const bool has_rank = !environment(rank).empty(), has_world = !environment(world).empty();
    if (has_rank != has_world && alone_is_half) {
      throw_invalid(has_rank ? rank : world, fmt::format("is set, but {} is not; expected both or "
                                                         "neither",
                                                         has_rank ? world : rank));
    }
    if (!has_rank || !has_world) continue;
    result.world = read(world, 1, kMostProcesses);
    result.rank = read(rank, 0, result.world - 1);
    const bool has_local = *local_world != 0 && !environment(local_world).empty();
    result.local_world = has_local ? read(local_world, 1, result.world) : result.world;
    break;
  }
  if (result.alone()) return result;
  if (std::string address = environment("MASTER_ADDR"); !address.empty()) result.address = address;
  if (!environment("MASTER_PORT").empty()) result.port = read("MASTER_PORT", 1, 65535);
  if (!environment("BRAID_TIMEOUT").empty()) result.timeout_s = read("BRAID_TIMEOUT", 0.1, 1e6);
  result.job = job();
  return result;
}

}  // namespace braid::cli
