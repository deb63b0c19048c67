// Ranks in processes of their own on the cpu device, and what the others see when one is lost.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <random>
#include <set>
#include <thread>

#include "braid/error.h"
#include "braid/executable.h"
#include "braid/reference.h"
#include "runtime/child.h"
#include "runtime/free_port.h"
#include "runtime/prepare_with_zeros.h"

namespace braid {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr int kRanks = 4;

// y = rms_norm(all_reduce(x), g)
Graph small_graph(int ranks, double eps = 1e-5, bool symmetric = true) {
  return parse_graph(fmt::format(R"({{
    "braid": 1, "name": "small",
    "symbols": {{"T": {{"min": 1, "max": 8}}}},
    "groups": {{"tp": {{"size": {}, "symmetric": {}}}}},
    "inputs": [{{"name": "x", "dtype": "bf16", "shape": ["T", 64], "per_rank": true}},
               {{"name": "g", "dtype": "bf16", "shape": [64], "kind": "parameter"}}],
    "nodes": [{{"name": "c", "op": "all_reduce", "inputs": ["x"],
               "attrs": {{"reduce_op": "sum", "group": "tp"}}}},
              {{"name": "s", "op": "wait_tensor", "inputs": ["c"]}},
              {{"name": "y", "op": "rms_norm", "inputs": ["s", "g"], "attrs": {{"eps": {}}}}}],
    "outputs": ["y"]}})",
                                 ranks, symmetric, eps));
}

struct Place {
  int rank = 0;
  int world = kRanks;
  Meeting meeting;
  double timeout_s = 2;
};

/// Compiles the graph in a new world and runs it, again and again or a few times; compares the
/// outputs. All of it is gone when the call returns or throws.
void work(const Place& place, const Graph& graph, bool for_ever) {
  WorldOptions options;
  options.device = DeviceKind::kCpu;
  options.world = place.world;
  options.threads = 1;
  options.rendezvous = meet_by_socket({.ranks = {place.rank},
                                       .world = place.world,
                                       .port = place.meeting.port,
                                       .job = place.meeting.job,
                                       .timeout_s = place.timeout_s});
  const World world = World::open(options);
  Executable executable = Executable::compile(graph, world);
  const Bindings bindings{{"T", 5}};
  executable.prepare(bindings);
  const RankTensors inputs = random_inputs(graph, bindings, 7);
  const HostTensor expected =
      evaluate(graph, inputs, bindings)[static_cast<std::size_t>(place.rank)][0];
  for (std::size_t i = 0; i < inputs[0].size(); ++i) {
    executable.set_input(place.rank, graph.inputs()[i].name,
                         inputs[static_cast<std::size_t>(place.rank)][i]);
  }
  for (int round = 0; for_ever || round < 5; ++round) {
    executable.poison_outputs();
    executable.run();
    if (relative_error(executable.output(place.rank, "y"), expected) > 1e-3) {
      throw_internal("y", "is wrong");
    }
  }
  options.rendezvous->barrier();
}

/// What `work` throws; empty where it does not.
std::string error_of_work(const Place& place, const Graph& graph, bool for_ever) {
  try {
    work(place, graph, for_ever);
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

/// In a child: says on stderr what is not as it should be.
int judge(bool good, const std::string& text) {
  if (!good) std::fputs((text + "\n").c_str(), stderr);
  return good ? 0 : 1;
}

std::set<std::string> shared_memory_objects() {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator("/dev/shm")) {
    names.insert(entry.path().filename());
  }
  return names;
}

/// Four processes that run until one of them gets a signal, at a random time.
class Job {
 public:
  Job(std::mt19937_64& random, int signal, bool symmetric)
      : signal_(signal),
        symmetric_(symmetric),
        victim_(static_cast<int>(random() % kRanks)),
        when_(Clock::now() + milliseconds(random() % 700)) {
    const Meeting meeting, next;
    for (int rank = 0; rank < kRanks; ++rank) {
      children_.push_back(start_child([&] { return survive(rank, meeting, next); }));
    }
  }
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;
  ~Job() {
    for (const pid_t child : children_) EXPECT_EQ(::kill(child, 0), -1);  // it is gone
  }

  void strike() const {
    std::this_thread::sleep_until(when_);
    ::kill(children_[static_cast<std::size_t>(victim_)], signal_);
  }
  void expect_survival() const {
    for (int rank = 0; rank < kRanks; ++rank) {
      if (rank == victim_) continue;
      EXPECT_EQ(exit_status(children_[static_cast<std::size_t>(rank)]), 0);
    }
    EXPECT_LT(Clock::now() - when_, std::chrono::seconds(12)) << "rank " << victim_;
    ::kill(children_[static_cast<std::size_t>(victim_)], SIGKILL);
    EXPECT_EQ(exit_status(children_[static_cast<std::size_t>(victim_)]), -1);
  }

 private:
  /// Ends when the victim is lost; then the others go on in a new world.
  [[nodiscard]] int survive(int rank, const Meeting& meeting, const Meeting& next) const {
    const auto graph = [&](int ranks) { return small_graph(ranks, 1e-5, symmetric_); };
    const std::string error =
        error_of_work({rank, kRanks, meeting, 2}, graph(kRanks), /*for_ever=*/true);
    if (error.find(fmt::format("rank {} ", victim_)) == std::string::npos) {
      return judge(false, fmt::format("rank {} saw '{}', not rank {}", rank, error, victim_));
    }
    const int now = rank < victim_ ? rank : rank - 1;
    const std::string again = error_of_work({now, kRanks - 1, next, 10}, graph(kRanks - 1),
                                            /*for_ever=*/false);
    return judge(again.empty(), "in a new world: " + again);
  }

  int signal_;
  bool symmetric_;  ///< else they wait in a communicator
  int victim_;
  Clock::time_point when_;
  std::vector<pid_t> children_;
};

std::mt19937_64 seeded() {
  const std::uint64_t seed = std::random_device()();
  fmt::print("seed {}\n", seed);
  return std::mt19937_64(seed);
}

int kills() {
  const char* const text = std::getenv("BRAID_KILLS");
  return text == nullptr ? 10 : std::atoi(text);
}

void strike_and_survive(int signal, int jobs_at_once, bool symmetric = true) {
  const auto objects = shared_memory_objects();
  std::mt19937_64 random = seeded();
  const int kills_of_it = symmetric ? kills() : kills() / 2;
  for (int done = 0; done < kills_of_it; done += jobs_at_once) {
    std::vector<std::unique_ptr<Job>> jobs;
    for (int j = 0; j < jobs_at_once; ++j)
      jobs.push_back(std::make_unique<Job>(random, signal, symmetric));
    for (const auto& job : jobs) job->strike();
    for (const auto& job : jobs) job->expect_survival();
  }
  EXPECT_EQ(shared_memory_objects(), objects);
}

TEST(Processes, RunACollectiveTogether) {
  const Meeting meeting;
  std::vector<pid_t> children;
  for (int rank = 0; rank < kRanks; ++rank) {
    children.push_back(start_child([&] {
      const std::string error =
          error_of_work({rank, kRanks, meeting, 30}, small_graph(kRanks), /*for_ever=*/false);
      return judge(error.empty(), error);
    }));
  }
  for (const pid_t child : children) EXPECT_EQ(exit_status(child), 0);
}

TEST(Processes, OneThatIsKilledIsNamedByTheOthersWhoGoOn) { strike_and_survive(SIGKILL, 2); }

TEST(Processes, OneThatIsStoppedIsNamedByTheOthersWhoGoOn) { strike_and_survive(SIGSTOP, 5); }

TEST(Processes, OneThatIsLostUnderACommunicatorIsNamedToo) {
  strike_and_survive(SIGKILL, 2, /*symmetric=*/false);
  strike_and_survive(SIGSTOP, 5, /*symmetric=*/false);
}

TEST(Processes, WithAnotherProgramAreRefused) {
  const Meeting meeting;
  std::vector<pid_t> children;
  for (int rank = 0; rank < 2; ++rank) {
    children.push_back(start_child([&] {
      const std::string error =
          error_of_work({rank, 2, meeting, 30}, small_graph(2, rank == 0 ? 1e-5 : 1e-6), false);
      return judge(error.find("rank 0 has the plan") != std::string::npos &&
                       error.find("rank 1 has") != std::string::npos,
                   error);
    }));
  }
  for (const pid_t child : children) EXPECT_EQ(exit_status(child), 0);
}

// What the caller has already to talk between his processes brings the handles, too.
TEST(Processes, MayMeetByTheCallersOwnMeans) {
  int there[2], back[2];
  ASSERT_EQ(::pipe(there), 0);
  ASSERT_EQ(::pipe(back), 0);
  const Graph graph = small_graph(2);
  const auto run = [&](int rank, int out, int in) {
    const auto exchange = [&](const std::string& mine) {
      std::uint64_t size = mine.size();
      (void)!::write(out, &size, sizeof size);
      (void)!::write(out, mine.data(), size);
      (void)!::read(in, &size, sizeof size);
      std::string other(size, '\0');
      (void)!::read(in, other.data(), size);
      return rank == 0 ? std::vector{mine, other} : std::vector{other, mine};
    };
    try {
      WorldOptions options;
      options.device = DeviceKind::kCpu;
      options.world = 2;
      options.rendezvous = meet_by_callback(rank, 2, exchange);
      const World world = World::open(options);
      Executable executable = Executable::compile(graph, world);
      prepare_with_zeros(executable, world, {{"T", 3}});
      executable.run();
      executable.synchronize();
      options.rendezvous->barrier();
    } catch (const Error& error) {
      return judge(false, error.what());
    }
    return 0;
  };
  const pid_t first = start_child([&] { return run(0, there[1], back[0]); });
  const pid_t second = start_child([&] { return run(1, back[1], there[0]); });
  EXPECT_EQ(exit_status(first), 0);
  EXPECT_EQ(exit_status(second), 0);
  for (const int end : {there[0], there[1], back[0], back[1]}) ::close(end);
}

}  // namespace
}  // namespace braid
