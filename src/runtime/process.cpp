#include "runtime/process.h"

#include <charconv>
#include <initializer_list>
#include <string>

#include "braid/process.h"
#include "ir/fail.h"
#include "ir/text.h"
#include "runtime/dynamic_library.h"

namespace braid {
namespace {

constexpr int kMostProcesses = 1024;

struct Variables {
  const char* rank;
  const char* world;
  const char* local_world;
  bool alone_is_half;  ///< whether it is an error to set only one of the two
};
constexpr Variables kLaunchers[] = {
    {"RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", true},
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE", true},
    // The shell of an allocation also has one of them.
    {"SLURM_PROCID", "SLURM_NTASKS", "", false},
};

template <class Number>
Number read(const char* name, Number least, Number most) {
  const std::string text = environment(name);
  Number value{};
  const char* const end = text.data() + text.size();
  const auto [at, code] = std::from_chars(text.data(), end, value);
  if (code == std::errc() && at == end && value >= least && value <= most) return value;
  throw_invalid(name, "found {}; expected a number from {:g} to {:g}", quote(text),
                static_cast<double>(least), static_cast<double>(most));
}

std::string first_of(std::initializer_list<const char*> names) {
  for (const char* name : names) {
    if (std::string value = environment(name); !value.empty()) return value;
  }
  return {};
}

/// Identifies the job among those of the machine.
std::string job() {
  std::string name = first_of({"BRAID_JOB", "TORCHELASTIC_RUN_ID", "PMIX_NAMESPACE"});
  if (!name.empty() || environment("SLURM_JOB_ID").empty()) return name;
  return environment("SLURM_JOB_ID") + "." + environment("SLURM_STEP_ID");
}

}  // namespace

std::optional<LaunchedProcess> process_from_environment() {
  LaunchedProcess process;
  SocketOptions& meeting = process.meeting;
  for (const auto& [rank, world, local_world, alone_is_half] : kLaunchers) {
    const bool has_rank = !environment(rank).empty(), has_world = !environment(world).empty();
    if (has_rank != has_world && alone_is_half) {
      throw_invalid(has_rank ? rank : world, "is set, but {} is not; expected both or neither",
                    has_rank ? world : rank);
    }
    if (!has_rank || !has_world) continue;
    meeting.world = read(world, 1, kMostProcesses);
    process.rank = read(rank, 0, meeting.world - 1);
    const bool has_local = *local_world != 0 && !environment(local_world).empty();
    process.local_world = has_local ? read(local_world, 1, meeting.world) : meeting.world;
    break;
  }
  if (meeting.world == 1) return {};
  meeting.ranks = {process.rank};
  if (std::string address = environment("MASTER_ADDR"); !address.empty()) meeting.address = address;
  if (!environment("MASTER_PORT").empty()) meeting.port = read("MASTER_PORT", 1, 65535);
  if (!environment("BRAID_TIMEOUT").empty()) meeting.timeout_s = read("BRAID_TIMEOUT", 0.1, 1e6);
  meeting.job = job();
  return process;
}

std::optional<int> local_rank_from_environment() {
  for (const char* name : {"LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "SLURM_LOCALID"}) {
    if (!environment(name).empty()) return read(name, 0, kMostProcesses - 1);
  }
  return {};
}

}  // namespace braid
