#include "runtime/exec/rendezvous.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "braid/error.h"

namespace braid {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

template <class Call>
std::string error_of(Call call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(Rendezvous, BringsTheBytesOfAllEndsByRank) {
  const auto ends = meet_in_process({{2, 0}, {1}});
  EXPECT_THAT(ends[0]->ranks(), ElementsAre(0, 2));
  EXPECT_EQ(ends[1]->world(), 3);
  std::thread other([&] {
    for (int round = 0; round < 100; ++round) {
      EXPECT_THAT(ends[1]->all_gather({"b" + std::to_string(round)}),
                  ElementsAre("a" + std::to_string(round), "b" + std::to_string(round), "c"));
    }
    ends[1]->barrier();
  });
  for (int round = 0; round < 100; ++round) {
    EXPECT_THAT(ends[0]->all_gather({"a" + std::to_string(round), "c"}),
                ElementsAre("a" + std::to_string(round), "b" + std::to_string(round), "c"));
  }
  ends[0]->barrier();
  other.join();
}

TEST(Rendezvous, BroadcastsWhatRank0Gives) {
  auto ends = meet_in_process({{1}, {0, 2}, {3}}, 0.05);
  std::thread other([&] {
    for (int i = 0; i < 3; ++i) EXPECT_EQ(ends[2]->broadcast("ignored"), std::to_string(i));
    EXPECT_EQ(error_of([&] { (void)ends[2]->broadcast({}); }), "rendezvous: rank 0 is gone");
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(100));  // longer than a round may take
  for (int i = 0; i < 3; ++i) EXPECT_EQ(ends[1]->broadcast(std::to_string(i)), std::to_string(i));
  ends[1].reset();
  other.join();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(ends[0]->broadcast({}), std::to_string(i));
  EXPECT_EQ(error_of([&] { (void)ends[0]->broadcast({}); }), "rendezvous: rank 0 is gone");
}

TEST(Rendezvous, BroadcastsByTheCallersAllGather) {
  const auto end = meet_by_callback(1, 2, [](const std::string& mine) {
    return std::vector<std::string>{"zero", mine};
  });
  EXPECT_EQ(end->broadcast("one"), "zero");
}

TEST(Rendezvous, WhoDoesNotComeIsNamed) {
  const auto ends = meet_in_process({{0}, {1}, {2}}, 0.02);
  std::thread other([&] { EXPECT_NE(error_of([&] { ends[0]->barrier(); }), "no error"); });
  const std::string text = error_of([&] { ends[1]->barrier(); });
  other.join();
  EXPECT_EQ(text, "rendezvous: rank 2 did not come within 0.02 s");
  EXPECT_EQ(error_of([&] { ends[2]->barrier(); }), text);  // too late
}

TEST(Rendezvous, WhoIsGoneIsNamed) {
  auto ends = meet_in_process({{0}, {1}}, 60);
  std::thread other(
      [&] { EXPECT_EQ(error_of([&] { ends[0]->barrier(); }), "rendezvous: rank 1 is gone"); });
  ends[1].reset();
  other.join();
}

TEST(Rendezvous, EveryRankIsThereOnce) {
  EXPECT_THAT(error_of([] { (void)meet_in_process({{0}, {2}}); }), HasSubstr("found rank 2"));
  EXPECT_THAT(error_of([] { (void)meet_in_process({{0}, {0}}); }), HasSubstr("found rank 0"));
  EXPECT_THAT(error_of([] { (void)meet_in_process({{0}, {}}); }), HasSubstr("without ranks"));
}

class Cards : public ::testing::Test {
 protected:
  // What rank 0 gets or throws when the ranks show these cards.
  static std::string exchange(const RankCard& first, const RankCard& second) {
    const auto ends = meet_in_process({{0}, {1}});
    std::string others;
    std::thread other(
        [&] { others = error_of([&] { (void)exchange_cards(*ends[1], {second}); }); });
    const std::string mine = error_of([&] {
      const std::vector<RankCard> all = exchange_cards(*ends[0], {first});
      EXPECT_EQ(all[1].arenas, second.arenas);
      EXPECT_EQ(all[0].hash, first.hash);
    });
    other.join();
    EXPECT_EQ(mine, others);  // all ranks refuse, or none
    return mine;
  }
};

TEST_F(Cards, OfEqualPlansAreExchanged) {
  EXPECT_EQ(exchange({"", "abc", {"x", "y"}}, {"", "abc", {std::string("\0z", 2), ""}}),
            "no error");
}

TEST_F(Cards, OfDifferentPlansAreRefused) {
  EXPECT_EQ(exchange({"", "abc", {}}, {"", "abd", {}}),
            "rendezvous: rank 0 has the plan abc, rank 1 has abd; expected one plan on all ranks");
}

TEST_F(Cards, OfARankThatFailedSayWhy) {
  EXPECT_EQ(exchange({"", "abc", {}}, {"no memory", "", {}}),
            "rendezvous: rank 1 cannot take part: no memory");
}

TEST(CardsOfAnotherFormat, AreRefused) {
  const auto ends = meet_in_process({{0}, {1}});
  std::thread other([&] { (void)ends[1]->all_gather({"\1\0\0\0garbage"}); });
  EXPECT_THAT(error_of([&] {
                (void)exchange_cards(*ends[0], {{"", "abc", {}}});
              }),
              HasSubstr("rank 1 speaks another format"));
  other.join();
}

}  // namespace
}  // namespace braid
