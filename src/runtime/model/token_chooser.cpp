#include "runtime/model/token_chooser.h"

#include <algorithm>

#include "braid/graph_builder.h"

namespace braid {
namespace {

/// A graph of two kernels: the tokens, and the logarithms of their probabilities.
Graph choice(const DeviceTensor& logits, int ranks, bool likeliest) {
  using Tensor = GraphBuilder::Tensor;
  GraphBuilder b("choose_token");
  b.group("ranks", ranks);  // each does the same
  const Dim s = b.symbol("S", {.min = 1, .max = logits.shape[0]});
  const Tensor x = b.input("logits", {logits.dtype, {s, logits.shape[1]}});
  const Attrs in_row{{"dim", std::int64_t{-1}}};
  const auto chosen = [&] {
    if (likeliest) return x.op("argmax", {}, in_row);
    const Tensor numbers = b.input("numbers", {DType::kF32, {s, 4}});
    const Tensor top_k = b.input("top_k", {DType::kI32, {s}});
    const auto number = [&](std::int64_t index) {
      return numbers.op("select", {}, {{"dim", std::int64_t{1}}, {"index", index}});
    };
    return b.op("sample", {x, number(0), top_k, number(1), number(2), number(3)});
  }();
  b.output(chosen.op("to", {}, {{"dtype", DType::kI32}}, "tokens"));

  const auto wide = [](const Tensor& tensor) {
    return tensor.type().dtype == DType::kF32 ? tensor
                                              : tensor.op("to", {}, {{"dtype", DType::kF32}});
  };
  const Attrs column{{"dim", std::int64_t{1}}};
  const Attrs kept{{"dim", std::vector<std::int64_t>{-1}}, {"keepdim", true}};
  const Tensor all = wide(x);
  const Tensor largest = all.op("amax", {}, kept);
  const Tensor sum = all.op("sub", {largest}).op("exp").op("sum", {}, kept);
  const Tensor own = wide(x.op("gather", {chosen.op("unsqueeze", {}, column)}, column));
  const Tensor logprobs = own.op("sub", {largest}).op("sub", {sum.op("log")});
  b.output(logprobs.op("squeeze", {}, column, "logprobs"));
  return b.build();
}

}  // namespace

float random_number(std::uint64_t seed, std::uint64_t position) {
  std::uint64_t x = seed + (position + 1) * 0x9e3779b97f4a7c15;  // splitmix64
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return static_cast<float>((x ^ (x >> 31)) >> 40) * 0x1p-24F;
}

TokenChooser::TokenChooser(const World& world, std::span<const DeviceTensor> logits)
    : places_(logits.size()), ways_{make(world, logits, false), make(world, logits, true)} {}

TokenChooser::Way TokenChooser::make(const World& world, std::span<const DeviceTensor> logits,
                                     bool likeliest) {
  Way way{Executable::compile(choice(logits[0], world.size(), likeliest), world), {}};
  const std::int64_t most = logits[0].shape[0];
  for (std::size_t local = 0; local < logits.size(); ++local) {
    const int rank = world.ranks()[local];
    way.executable.bind(rank, "logits", logits[local]);
    const auto place = [&](const char* name, std::unique_ptr<Memory>& memory, DType dtype,
                           std::vector<std::int64_t> shape) {
      if (memory == nullptr) memory = world.device().allocate(rank, sizeof(float) * 4 * most);
      way.executable.bind(rank, name, {memory->address(), dtype, std::move(shape)});
    };
    Place& own = places_[local];
    place("tokens", own.tokens, DType::kI32, {most});
    place("logprobs", own.logprobs, DType::kF32, {most});
    if (likeliest) continue;
    place("top_k", own.top_k, DType::kI32, {most});
    place("numbers", own.numbers, DType::kF32, {most, 4});
  }
  return way;
}

void TokenChooser::enqueue(std::span<const Sampling> sampling,
                           std::span<const std::int32_t> positions,
                           std::span<Stream* const> streams) {
  const std::size_t count = sampling.size();
  const bool likeliest =
      std::ranges::all_of(sampling, [](const Sampling& s) { return s.temperature == 0; });
  Way& way = ways_[likeliest ? 1 : 0];
  const auto size = static_cast<std::int64_t>(count);
  auto plan = way.plans.find(size);
  if (plan == way.plans.end()) {
    plan = way.plans.emplace(size, way.executable.prepare({{"S", size}})).first;
  }
  numbers_.clear();
  top_k_.clear();
  for (std::size_t i = 0; i < count; ++i) {
    const Sampling& own = sampling[i];
    for (const double number : {own.temperature, own.top_p, own.min_p}) {
      numbers_.push_back(static_cast<float>(number));
    }
    numbers_.push_back(random_number(own.seed, positions[i]));
    top_k_.push_back(own.top_k);
  }
  for (std::size_t local = 0; local < places_.size() && !likeliest; ++local) {
    const Place& place = places_[local];
    streams[local]->copy_from_host(place.numbers->address(), numbers_.data(),
                                   numbers_.size() * sizeof numbers_[0]);
    streams[local]->copy_from_host(place.top_k->address(), top_k_.data(),
                                   top_k_.size() * sizeof top_k_[0]);
  }
  way.executable.run(plan->second, streams);
  tokens_.resize(count);
  logprobs_.resize(count);
  streams[0]->copy_to_host(tokens_.data(), places_[0].tokens->address(), count * sizeof tokens_[0]);
  streams[0]->copy_to_host(logprobs_.data(), places_[0].logprobs->address(),
                           count * sizeof logprobs_[0]);
}

std::vector<ChosenToken> TokenChooser::chosen() const {
  std::vector<ChosenToken> result;
  for (std::size_t i = 0; i < tokens_.size(); ++i) result.push_back({tokens_[i], logprobs_[i]});
  return result;
}

}  // namespace braid
