// What a language model's folder gives a server, on the cpu device.
#include "braid/exported_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <condition_variable>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <thread>

#include "runtime/error_of.h"
#include "runtime/safetensors.h"
#include "runtime/temporary_directory.h"

namespace braid {
namespace {

using ::testing::HasSubstr;

constexpr int kVocabulary = 32, kWidth = 16, kMostTokens = 24, kMostSequences = 4;

HostTensor numbers(std::vector<std::int64_t> shape, double step) {
  HostTensor tensor{DType::kF32, std::move(shape), {}};
  std::vector<float> values(static_cast<std::size_t>(tensor.numel()));
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>(static_cast<double>(i * i % 97) * step - 1);
  }
  const auto bytes = std::as_bytes(std::span(values));
  tensor.data.assign(bytes.begin(), bytes.end());
  return tensor;
}

/// Of the batches below.
constexpr Sampling kBoth[] = {{.temperature = 0}, {.seed = 3}};

/// A model of two ranks that knows of the last token of each sequence alone.
class Models : public ::testing::Test {
 protected:
  Models() {
    using nlohmann::json;
    const auto node = [](const char* name, const char* op, const json& inputs,
                         json attrs = json::object()) {
      return json{{"name", name}, {"op", op}, {"inputs", inputs}, {"attrs", attrs}};
    };
    const auto input = [](const char* name, const char* dtype, const json& shape) {
      return json{{"name", name}, {"dtype", dtype}, {"shape", shape}};
    };
    const auto weight = [](const char* name, const json& shape, bool per_rank) {
      return json{{"name", name},
                  {"dtype", "f32"},
                  {"shape", shape},
                  {"kind", "parameter"},
                  {"per_rank", per_rank}};
    };
    const json graph = {
        {"braid", 1},
        {"name", "last"},
        {"symbols",
         {{"T", {{"max", kMostTokens}, {"buckets", {kMostSequences}}}},
          {"S", {{"max", kMostSequences}}}}},
        {"groups", {{"tp", {{"size", 2}}}}},
        {"inputs",
         {input("tokens", "i32", {"T"}), input("starts", "i32", {"S+1"}),
          weight("table", {kVocabulary, kWidth}, false), weight("w", {kWidth, kWidth}, true),
          weight("head", {kWidth, kVocabulary}, false)}},
        {"nodes",
         {node("x", "embedding", {"table", "tokens"}), node("p", "mm", {"x", "w"}),
          node("c", "all_reduce", {"p"}, {{"reduce_op", "sum"}, {"group", "tp"}}),
          node("s", "wait_tensor", {"c"}),
          node("ends", "slice", {"starts"}, {{"dim", 0}, {"start", 1}, {"end", "S+1"}}),
          node("last", "sub", {"ends", 1}), node("y", "embedding", {"s", "last"}),
          node("logits", "mm", {"y", "head"})}},
        {"outputs", {"logits"}}};
    write_file(folder() / "graph.json", graph.dump());
    write_file(folder() / "manifest.json",
               json{{"braid_model", 1},
                    {"graph", "graph.json"},
                    {"ranks", 2},
                    {"vocabulary", kVocabulary},
                    {"weights", {{"shared", "shared"}, {"ranks", {"rank0", "rank1"}}}},
                    {"max_tokens", kMostTokens},
                    {"max_sequences", kMostSequences},
                    {"context", 64},
                    {"page_size", 16},
                    {"pages", 4},
                    {"end_of_text", json::array()}}
                   .dump());
    using Tensors = std::map<std::string, HostTensor, std::less<>>;
    write_safetensors(folder() / "shared", Tensors{{"table", numbers({kVocabulary, kWidth}, 0.02)},
                                                   {"head", numbers({kWidth, kVocabulary}, 0.03)}});
    write_safetensors(folder() / "rank0", Tensors{{"w", numbers({kWidth, kWidth}, 0.01)}});
    write_safetensors(folder() / "rank1", Tensors{{"w", numbers({kWidth, kWidth}, 0.04)}});
  }

  [[nodiscard]] std::filesystem::path folder() const { return directory_.path(); }
  [[nodiscard]] ExportedModel open(WorldOptions world = {}) const {
    world.device = DeviceKind::kCpu;
    world.threads = 2;
    return ExportedModel::open(folder(), {.world = std::move(world)});
  }

  /// Of a sequence of so many tokens and one of the token 5.
  static ModelBatch batch(const ExportedModel& model, std::int32_t tokens) {
    std::vector<std::int32_t> text, page = {0, 1};
    for (std::int32_t i = 0; i < tokens; ++i) text.push_back(7 * i % kVocabulary);
    ModelBatch result;
    result.append(model.limits(), text, 0, tokens, page);
    result.append(model.limits(), std::vector<std::int32_t>{5}, 0, 1, page);
    return result;
  }

  TemporaryDirectory directory_;
};

TEST_F(Models, SayWhatNoSequenceCanHave) {
  const ExportedModel model = open();
  const ModelLimits& limits = model.limits();
  EXPECT_EQ(limits.room(), 64);
  EXPECT_EQ(limits.refusal(std::vector<std::int32_t>(60, 31), 4), "");
  EXPECT_EQ(limits.refusal(std::vector<std::int32_t>{1, 32}, 0),
            "found the token 32; expected one from 0 to 31");
  EXPECT_EQ(limits.refusal(std::vector<std::int32_t>(60, 31), 5),
            "found 60 tokens and 5 more; expected at most 64 together");
}

TEST_F(Models, RunShortBatchesBeforeAllIsCompiled) {
  ExportedModel all = open();
  EXPECT_EQ(all.ready_tokens(), kMostTokens);
  std::mutex mutex;
  std::condition_variable changed;
  bool opened = false;
  WorldOptions options;
  options.compile_in_background = true;
  options.progress = [&, own = std::this_thread::get_id()](auto...) {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return opened || std::this_thread::get_id() == own; });
  };
  ExportedModel model = open(options);
  EXPECT_EQ(model.ready_tokens(), kMostSequences);
  const std::vector<double> expected = all.run(batch(all, 3));
  EXPECT_EQ(model.run(batch(model, 3)), expected);
  {
    const std::lock_guard lock(mutex);
    opened = true;
    changed.notify_all();
  }
  while (model.ready_tokens() < kMostTokens) std::this_thread::yield();
  EXPECT_EQ(model.run(batch(model, 20)), all.run(batch(all, 20)));
}

TEST_F(Models, ChooseTheTokensOfTheirLogits) {
  ExportedModel model = open();
  for (const std::int32_t tokens : {1, 20}) {
    const std::vector<double> logits = model.run(batch(model, tokens));
    const std::vector<ChosenToken> chosen = model.choose(batch(model, tokens), kBoth);
    ASSERT_EQ(chosen.size(), 2);
    for (std::size_t row = 0; row < 2; ++row) {
      const auto own = std::span(logits).subspan(row * kVocabulary, kVocabulary);
      double sum = 0;
      for (const double logit : own) sum += std::exp(logit);
      EXPECT_NEAR(chosen[row].logprob, own[chosen[row].id] - std::log(sum), 1e-5);
    }
    EXPECT_EQ(chosen[0].id, std::ranges::max_element(logits.begin(), logits.begin() + kVocabulary) -
                                logits.begin());
  }
  for (const Sampling& wrong : {Sampling{.temperature = -1}, Sampling{.temperature = NAN},
                                Sampling{.top_p = 0}, Sampling{.min_p = 2}}) {
    EXPECT_THROW((void)model.choose(batch(model, 3), std::vector(2, wrong)), Error);
  }
  EXPECT_EQ(
      error_of([&] { (void)model.choose(batch(model, 3), {}); }),
      std::pair(ErrorCode::kInvalidArgument,
                std::string("choose: found 0 samplings; expected one for each of 2 sequences")));
}

/// Each rank is a model of its own, which a thread of its own uses.
class ModelsApart : public Models {
 protected:
  /// Calls `lead` with the model of rank 0; returns what the end of rank 1 throws, or nothing.
  template <class Lead>
  std::string follow(Lead lead) {
    std::string error;
    std::jthread other([&] {
      try {
        WorldOptions options;
        options.rendezvous = std::exchange(ends_[1], nullptr);
        ExportedModel model = open(options);
        EXPECT_EQ(error_of([&] { (void)model.run({}); }).second,
                  "run: rank 0 is elsewhere; expected follow()");
        model.follow();
      } catch (const Error& thrown) {
        error = thrown.what();
      }
    });
    {
      WorldOptions options;
      options.rendezvous = ends_[0];
      options.compile_in_background = true;  // has no effect
      ExportedModel model = open(options);
      EXPECT_EQ(model.ready_tokens(), kMostTokens);
      EXPECT_EQ(error_of([&] { model.follow(); }).second, "follow: rank 0 is here; expected run()");
      lead(model);
    }
    ends_[0].reset();  // whoever still waits learns that
    other.join();
    return error;
  }

  std::vector<std::shared_ptr<Rendezvous>> ends_ = meet_in_process({{0}, {1}}, 60);
};

TEST_F(ModelsApart, GiveWhatOneWorldGives) {
  ExportedModel here = open();
  EXPECT_EQ(here.lost(), "");
  const std::string error = follow([&](ExportedModel& model) {
    for (const std::int32_t tokens : {1, 20, 3, 20}) {
      EXPECT_EQ(model.run(batch(model, tokens)), here.run(batch(here, tokens)));
      EXPECT_EQ(model.choose(batch(model, tokens), kBoth), here.choose(batch(here, tokens), kBoth));
    }
    EXPECT_EQ(model.lost(), "");
  });
  EXPECT_EQ(error, "");
}

TEST_F(ModelsApart, EndWithARunThatFails) {
  const std::string error = follow([&](ExportedModel& model) {
    ModelBatch bad = batch(model, 3);
    bad.tokens[1] = kVocabulary;
    const std::string why = error_of([&] { (void)model.run(bad); }).second;
    EXPECT_THAT(why, HasSubstr("32"));
    EXPECT_NE(model.lost(), "");
    EXPECT_EQ(error_of([&] { (void)model.run(batch(model, 3)); }).second, "run: " + model.lost());
  });
  EXPECT_THAT(error, HasSubstr("32"));
}

TEST_F(ModelsApart, NameARankThatIsLost) {
  std::jthread other([&] {
    WorldOptions options;
    options.rendezvous = std::exchange(ends_[1], nullptr);
    (void)open(options);
  });
  WorldOptions options;
  options.rendezvous = ends_[0];
  ExportedModel model = open(options);
  other.join();
  EXPECT_EQ(model.lost(), "rank 1 is gone");
  EXPECT_EQ(error_of([&] { (void)model.run(batch(model, 3)); }),
            std::pair(ErrorCode::kEnvironment, std::string("run: rank 1 is gone")));
}

TEST_F(ModelsApart, OfAnotherNumberOfRanksAreRefused) {
  WorldOptions options;
  options.rendezvous = meet_in_process({{0}, {1}, {2}})[0];
  EXPECT_EQ(error_of([&] { (void)open(options); }).second,
            folder().string() + ": is a model of 2 ranks; found 3 of all processes");
}

}  // namespace
}  // namespace braid
