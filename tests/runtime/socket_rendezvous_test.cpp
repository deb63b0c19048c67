#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <thread>
#include <vector>

#include "braid/error.h"
#include "braid/rendezvous.h"
#include "runtime/child.h"
#include "runtime/exec/connection.h"
#include "runtime/free_port.h"

namespace braid {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using Clock = std::chrono::steady_clock;

template <class Call>
std::string error_of(Call call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

class Sockets : public ::testing::Test {
 protected:
  [[nodiscard]] SocketOptions options(std::vector<int> ranks, int world,
                                      double timeout_s = 30) const {
    SocketOptions result;
    result.ranks = std::move(ranks);
    result.world = world;
    result.port = port_;
    result.job = job_;
    result.timeout_s = timeout_s;
    return result;
  }

  /// Does `body(end)` at ends of these ranks, each on a thread; returns what each threw.
  template <class Body>
  std::vector<std::string> meet(const std::vector<SocketOptions>& ends, Body body) const {
    std::vector<std::string> errors(ends.size());
    std::vector<std::thread> threads;
    for (std::size_t e = 0; e < ends.size(); ++e) {
      threads.emplace_back(
          [&, e] { errors[e] = error_of([&] { body(*meet_by_socket(ends[e])); }); });
    }
    for (std::thread& thread : threads) thread.join();
    return errors;
  }

  const int port_ = free_port();
  const std::string job_ = new_job_name();
};

/// Waits until the end knows of a disagreement; returns it.
std::string disagreement_of(const Rendezvous& end) {
  const auto start = Clock::now();
  while (end.disagreement().empty() && seconds_since(start) < 20) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return end.disagreement();
}

void play_rounds(Rendezvous& end) {
  for (int round = 0; round < 50; ++round) {
    std::vector<std::string> mine, all;
    const auto bytes = [&](int rank) {
      return fmt::format("{} in {}{}", rank, round, std::string(round == 7 ? 1 << 20 : 0, 'x'));
    };
    for (const int rank : end.ranks()) mine.push_back(bytes(rank));
    for (int rank = 0; rank < end.world(); ++rank) all.push_back(bytes(rank));
    EXPECT_EQ(end.lost(), "");  // the others leave after the last
    EXPECT_EQ(end.all_gather(mine), all);
  }
}

TEST_F(Sockets, CompareWhatRanksState) {
  const auto errors = meet({options({0, 3}, 4), options({1}, 4), options({2}, 4)}, [](auto& end) {
    const std::vector<int>& own = end.ranks();
    end.state("all", {0, 1, 2, 3}, "T = 1");
    if (own[0] != 1) end.state("some", {0, 2}, "T = 2");
    if (own[0] == 1) end.state("alone", {1}, "T = 3");
    end.barrier();
    EXPECT_EQ(end.disagreement(), "");
    end.barrier();
    end.state("differs", {0, 1, 2, 3}, own[0] == 2 ? "T = 8" : "T = 4");
    EXPECT_THAT(disagreement_of(end), EndsWith("has T = 4, rank 2 has T = 8; expected the same on "
                                               "all ranks"));
    end.barrier();
  });
  EXPECT_THAT(errors, Each(HasSubstr("rank 2 has T = 8")));
}

TEST_F(Sockets, BringTheBytesOfAllEndsByRank) {
  const auto errors = meet({options({3}, 4), options({2, 0}, 4), options({1}, 4)}, play_rounds);
  EXPECT_THAT(errors, Each("no error"));
  EXPECT_THAT(meet({options({1, 0}, 2)}, play_rounds), Each("no error"));
}

TEST_F(Sockets, WhoDoesNotComeIsNamed) {
  const auto start = Clock::now();
  const auto errors = meet({options({0}, 3, 0.3), options({1}, 3, 0.3)}, [](Rendezvous&) {});
  EXPECT_THAT(errors, Each("rendezvous: rank 2 did not come within 0.3 s"));
  EXPECT_THAT(
      error_of([&] { (void)meet_by_socket(options({1}, 2, 0.2)); }),
      fmt::format("rendezvous: rank 0 did not come to 127.0.0.1, port {}, within 0.2 s", port_));
  EXPECT_LT(seconds_since(start), 5);
}

TEST_F(Sockets, BroadcastWhatRank0GivesAmongRounds) {
  std::vector<SocketOptions> ends = {options({0, 3}, 4), options({1}, 4), options({2}, 4)};
  for (SocketOptions& each : ends) each.patience_s = 0.5;  // which limits rounds alone
  const auto errors = meet(ends, [](Rendezvous& end) {
    const bool gives = end.ranks()[0] == 0;
    if (gives) std::this_thread::sleep_for(std::chrono::milliseconds(800));
    for (int i = 0; i < 100; ++i) {
      const std::string bytes = fmt::format("{}{}", i, std::string(i == 7 ? 3 << 20 : 0, 'x'));
      EXPECT_EQ(end.broadcast(gives ? bytes : "ignored"), bytes);
      if (i % 10 == 0) end.barrier();
    }
  });
  EXPECT_THAT(errors, Each("no error"));
}

TEST_F(Sockets, BroadcastsOfOneThatIsGoneComeBeforeItsLoss) {
  std::vector<std::string> got;
  const auto errors = meet({options({0}, 2), options({1}, 2)}, [&](Rendezvous& end) {
    if (end.ranks()[0] == 0) {
      (void)end.broadcast("first");
      (void)end.broadcast("second");
      return;
    }
    while (end.lost().empty()) std::this_thread::yield();
    for (;;) got.push_back(end.broadcast({}));
  });
  EXPECT_THAT(got, ElementsAre("first", "second"));
  EXPECT_THAT(errors, ElementsAre("no error", "rendezvous: rank 0 is gone"));
}

TEST_F(Sockets, WhoLeavesIsNamed) {
  for (const int leaver : {0, 1, 2}) {
    const auto errors =
        meet({options({0}, 3), options({1}, 3), options({2}, 3)}, [&](Rendezvous& end) {
          end.barrier();
          if (end.ranks()[0] == leaver) return;
          EXPECT_THROW(end.barrier(), Error);
          EXPECT_EQ(end.lost(), fmt::format("rank {} is gone", leaver));
          end.barrier();
        });
    for (int rank = 0; rank < 3; ++rank) {
      EXPECT_EQ(errors[static_cast<std::size_t>(rank)],
                rank == leaver ? "no error" : fmt::format("rendezvous: rank {} is gone", leaver));
    }
  }
}

TEST_F(Sockets, TheLastRoundReachesAllThoughTheirEndsGo) {
  for (int repeat = 0; repeat < 20; ++repeat) {
    const auto errors =
        meet({options({0}, 3), options({1}, 3), options({2}, 3)},
             [](Rendezvous& end) { (void)end.all_gather({std::string(300'000, 'x')}); });
    EXPECT_THAT(errors, Each("no error"));
  }
}

TEST_F(Sockets, WhoWorksForLongIsWaitedFor) {
  const auto errors = meet({options({0}, 2, 0.2), options({1}, 2, 0.2)}, [](Rendezvous& end) {
    for (const int late : {0, 1}) {
      if (end.ranks()[0] == late) std::this_thread::sleep_for(std::chrono::milliseconds(700));
      end.barrier();
    }
  });
  EXPECT_THAT(errors, Each("no error"));
}

TEST_F(Sockets, PatienceEnds) {
  for (const int late : {0, 1}) {
    std::vector<SocketOptions> impatient = {options({0}, 2), options({1}, 2)};
    for (SocketOptions& each : impatient) {
      each.timeout_s = 1;
      each.patience_s = 0.1;
    }
    std::atomic<bool> over{false};
    const auto errors = meet(impatient, [&](Rendezvous& end) {
      while (end.ranks()[0] == late && !over) std::this_thread::yield();
      over = error_of([&] { end.barrier(); }) != "no error";
      end.barrier();
    });
    EXPECT_THAT(errors, Each(fmt::format("rendezvous: rank {} did not come within 0.1 s", late)));
  }
}

/// What rank 0 or another survivor sees of a process of rank `victim` to which a signal is sent.
std::vector<std::string> signal_one(const std::vector<SocketOptions>& ends, int victim,
                                    int signal) {
  std::vector<pid_t> children;
  for (const SocketOptions& each : ends) {
    children.push_back(start_child([&] {
      try {
        const auto end = meet_by_socket(each);
        end->barrier();
        if (each.ranks[0] == victim) ::raise(signal);
        end->barrier();
      } catch (const Error& error) {
        const std::string_view text = error.what();
        return text == fmt::format("rendezvous: rank {} is gone", victim)                   ? 10
               : text == fmt::format("rendezvous: rank {} has been silent for 1 s", victim) ? 20
                                                                                            : 30;
      }
      return 0;
    }));
  }
  std::vector<std::string> seen;
  for (std::size_t e = 0; e < ends.size(); ++e) {
    if (ends[e].ranks[0] == victim) continue;
    const int status = exit_status(children[e]);
    seen.emplace_back(status == 10 ? "gone" : status == 20 ? "silent" : "something else");
  }
  for (std::size_t e = 0; e < ends.size(); ++e) {
    if (ends[e].ranks[0] != victim) continue;
    ::kill(children[e], SIGKILL);
    ::waitpid(children[e], nullptr, 0);
  }
  return seen;
}

TEST_F(Sockets, WhoIsKilledOrStoppedIsNamed) {
  for (const int victim : {0, 2}) {
    const std::vector<SocketOptions> ends = {options({0}, 3, 1), options({1}, 3, 1),
                                             options({2}, 3, 1)};
    const auto start = Clock::now();
    EXPECT_THAT(signal_one(ends, victim, SIGKILL), Each("gone"));
    EXPECT_LT(seconds_since(start), 1);
    EXPECT_THAT(signal_one(ends, victim, SIGSTOP), Each("silent"));
    EXPECT_LT(seconds_since(start), 8);
  }
}

// It would wait for a thread that it does not have.
TEST_F(Sockets, AForkHasNoPartInIt) {
  std::vector<std::shared_ptr<Rendezvous>> ends(2);
  std::thread first([&] { ends[0] = meet_by_socket(options({0}, 2)); });
  ends[1] = meet_by_socket(options({1}, 2));
  first.join();
  EXPECT_EQ(in_child([&] {
              ::alarm(30);
              const std::string error = error_of([&] { ends[0]->barrier(); });
              ends.clear();
              return error == "rendezvous: is of another process, of which this one is a fork";
            }),
            1);
  std::thread other([&] { EXPECT_EQ(error_of([&] { ends[1]->barrier(); }), "no error"); });
  EXPECT_EQ(error_of([&] { ends[0]->barrier(); }), "no error");
  other.join();
}

TEST_F(Sockets, AJobThatIsStoppedAsAWholeGoesOn) {
  std::vector<pid_t> children;
  for (const int rank : {0, 1}) {
    children.push_back(start_child([&] {
      return error_of([&] {
               const auto end = meet_by_socket(options({rank}, 2, 0.4));
               for (int round = 0; round < 120; ++round) {
                 end->barrier();
                 std::this_thread::sleep_for(std::chrono::milliseconds(5));
               }
             }) == "no error";
    }));
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  for (const pid_t child : children) ::kill(child, SIGSTOP);
  std::this_thread::sleep_for(std::chrono::milliseconds(900));
  for (const pid_t child : children) ::kill(child, SIGCONT);
  for (const pid_t child : children) EXPECT_EQ(exit_status(child), 1);
}

TEST_F(Sockets, GarbageAtThePortIsIgnored) {
  std::atomic<bool> done{false};
  std::thread vandal([&] {
    const std::uint32_t magic = 0x64696172;
    std::string huge(reinterpret_cast<const char*>(&magic), 4);
    huge += std::string(12, '\xff');
    std::string hello(reinterpret_cast<const char*>(&magic), 4);
    hello += std::string("\2\0\0\0\3\0\0\0\0\0\0\0abc", 15);
    for (int i = 0; !done; ++i) {
      const File socket = connect_here(port_);
      const std::vector<std::string> bytes = {"GET / HTTP/1.1\r\n\r\n", huge, hello, "", "b"};
      if (socket.is_open()) (void)write_all(socket, bytes[static_cast<std::size_t>(i) % 5]);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  });
  std::vector<std::thread> ends;
  ends.emplace_back([&] {
    EXPECT_EQ(error_of([&] { play_rounds(*meet_by_socket(options({0}, 2))); }), "no error");
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  ends.emplace_back([&] {
    EXPECT_EQ(error_of([&] { play_rounds(*meet_by_socket(options({1}, 2))); }), "no error");
  });
  for (std::thread& end : ends) end.join();
  done = true;
  vandal.join();
}

// Though one is still missing, who would be waited for.
TEST_F(Sockets, WhoIsKilledBeforeAllAreThereIsNamedAtOnce) {
  const pid_t victim =
      start_child([&] { return error_of([&] { (void)meet_by_socket(options({1}, 4)); }).empty(); });
  const auto start = Clock::now();
  std::thread killer([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
    ::kill(victim, SIGKILL);
    ::waitpid(victim, nullptr, 0);
  });
  const auto errors = meet({options({0}, 4), options({2}, 4)}, [](Rendezvous&) {});
  killer.join();
  EXPECT_THAT(errors, Each("rendezvous: rank 1 is gone"));
  EXPECT_LT(seconds_since(start), 15);  // of 30
}

// As where a launcher's own store has the port, or another job.
TEST_F(Sockets, ATakenPortIsPassedBy) {
  const File store = listen_here(port_);  // accepts and says nothing
  ASSERT_TRUE(store.is_open());
  SocketOptions others[2] = {options({0}, 2), options({1}, 2)};
  for (SocketOptions& other : others) other.job = "another";
  const auto errors = meet({options({0}, 2), options({1}, 2), others[0], others[1]}, play_rounds);
  EXPECT_THAT(errors, Each("no error"));
}

// One of them may be that of the next job's launcher.
TEST_F(Sockets, NoOtherPortIsTaken) {
  std::vector<File> taken;
  for (int port = port_; port < port_ + 20; ++port) taken.push_back(listen_here(port));
  EXPECT_THAT(meet({options({0}, 2), options({1}, 2)}, play_rounds), Each("no error"));
}

TEST_F(Sockets, ProcessesThatDisagreeAreRefused) {
  EXPECT_THAT(meet({options({0}, 2), options({1}, 3)}, [](Rendezvous&) {}),
              Each("rendezvous: rank 1 is one of 3 ranks, rank 0 one of 2"));
  const auto twice =
      meet({options({0}, 3, 0.5), options({1}, 3, 0.5), options({1}, 3, 0.5)}, [](Rendezvous&) {});
  EXPECT_EQ(twice[0], "rendezvous: rank 2 did not come within 0.5 s");
  EXPECT_THAT(twice,
              ::testing::Contains("rendezvous: there is a rank 1 already; expected each once"));
}

TEST_F(Sockets, AnotherVersionIsRefused) {
  const File listener = listen_here(port_);
  std::thread old([&] {
    Connection guest(File(::accept(listener.get(), nullptr, nullptr)));
    guest.send(FrameKind::kGreeting, "of another format");
    (void)guest.receive();
  });
  EXPECT_EQ(error_of([&] { (void)meet_by_socket(options({1}, 2)); }),
            "rendezvous: rank 0 speaks another format; expected the same version of braid on all "
            "ranks");
  old.join();
}

TEST_F(Sockets, BadOptionsAreRefused) {
  const auto refused = [](const SocketOptions& bad) {
    return error_of([&] { (void)meet_by_socket(bad); });
  };
  EXPECT_THAT(refused(options({}, 2)), HasSubstr("without ranks"));
  EXPECT_THAT(refused(options({2}, 2)), HasSubstr("found rank 2 of 2; expected 0 to 1"));
  EXPECT_THAT(refused(options({0, 0}, 2)), HasSubstr("each once"));
  EXPECT_THAT(refused(options({0}, 2, 0)), HasSubstr("found 0 s"));
  SocketOptions bad = options({0}, 2);
  bad.port = 70000;
  EXPECT_THAT(refused(bad), HasSubstr("found port 70000; expected 1 to 65535"));
  bad = options({0}, 2);
  bad.address = "no such host";
  EXPECT_THAT(refused(bad), HasSubstr("the address \"no such host\" of rank 0"));
}

TEST(Callback, IsARendezvous) {
  const auto end = meet_by_callback(1, 2, [](const std::string& mine) {
    return std::vector<std::string>{"other's", mine};
  });
  EXPECT_THAT(end->ranks(), ElementsAre(1));
  EXPECT_THAT(end->all_gather({"mine"}), ElementsAre("other's", "mine"));
  EXPECT_EQ(end->lost(), "");
  const auto short_one = meet_by_callback(
      0, 2, [](const std::string& mine) { return std::vector<std::string>{mine}; });
  EXPECT_THAT(error_of([&] { short_one->barrier(); }), HasSubstr("of 1 ranks; expected 2"));
  EXPECT_THAT(error_of([] { (void)meet_by_callback(2, 2, {}); }), HasSubstr("found rank 2 of 2"));
}

}  // namespace
}  // namespace braid
