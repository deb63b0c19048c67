#include "braid/exported_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>

#include "braid/executable.h"
#include "braid/safetensors.h"
#include "ir/fail.h"
#include "ir/non_copyable.h"
#include "runtime/bytes.h"
#include "runtime/model/token_chooser.h"

namespace braid {
namespace {

using nlohmann::json;

// A server that decodes needs a plan for each number of running sequences, and a few with prompts.
constexpr std::size_t kMaxPlans = 512;

json read_json(const std::filesystem::path& path) {
  std::ifstream file(path);
  if (!file) throw_environment(path, std::strerror(errno));
  try {
    return json::parse(file);
  } catch (const json::exception& error) {
    throw_invalid(path, "is no JSON: {}", error.what());
  }
}

/// What `python -m braid.export` wrote, before it runs.
struct ModelFolder {
  std::filesystem::path path;
  ModelLimits limits;
  int ranks = 1;
  std::filesystem::path graph_path, shared;
  std::vector<std::filesystem::path> own;  ///< weights of each rank, where ranks have their own
  std::optional<ChatFormat> chat;

  explicit ModelFolder(std::filesystem::path folder);
  /// The graph of runs within the limits.
  [[nodiscard]] Graph graph() const;
};

ModelFolder::ModelFolder(std::filesystem::path folder) : path(std::move(folder)) {
  const std::filesystem::path file = path / "manifest.json";
  const json manifest = read_json(file);
  try {
    if (manifest.at("braid_model") != 1) {
      throw_invalid(file, "found format {}; expected 1", manifest.at("braid_model").dump());
    }
    limits = {.max_tokens = manifest.at("max_tokens"),
              .max_sequences = manifest.at("max_sequences"),
              .context = manifest.at("context"),
              .page_size = manifest.at("page_size"),
              .pages = manifest.at("pages"),
              .vocabulary = manifest.at("vocabulary"),
              .end_of_text = manifest.at("end_of_text")};
    for (const std::int64_t limit : {limits.max_tokens, limits.max_sequences, limits.context,
                                     limits.page_size, limits.pages, limits.vocabulary}) {
      if (limit < 1) throw_invalid(file, "a limit is {}; expected 1 or more", limit);
    }
    ranks = manifest.at("ranks");
    graph_path = path / manifest.at("graph").get<std::string>();
    const json& weights = manifest.at("weights");
    shared = path / weights.at("shared").get<std::string>();
    for (const json& name : weights.at("ranks")) own.push_back(path / name.get<std::string>());
    if (manifest.contains("chat")) {
      const json& format = manifest.at("chat");
      chat = ChatFormat{.trim = format.at("trim")};
      for (const json& row : format.at("between")) {
        chat->between[{row.at(0), row.at(1)}] = row.at(2);
      }
    }
  } catch (const json::exception& error) {
    throw_invalid(file, "is not what braid.export writes: {}", error.what());
  }
}

Graph ModelFolder::graph() const {
  json graph = read_json(graph_path);
  try {
    for (json& input : graph.at("inputs")) {
      if (input.value("kind", "") == "state") input.at("shape").at(0) = limits.pages;
    }
    json& tokens = graph.at("symbols").at("T");
    tokens.at("max") = limits.max_tokens;
    if (limits.max_tokens <= limits.max_sequences) tokens.erase("buckets");  // one has all
  } catch (const json::exception& error) {
    throw_invalid(graph_path, "is not what braid.export writes: {}", error.what());
  }
  return parse_graph(graph.dump(), graph_path.string());
}

/// A token has the same bits in a prompt, in any chunk of one, and in decode.
PassConfig passes() { return {.options = {{"invariant-attention", "true"}}}; }

/// Gives the cache as many pages as fit.
void fit_pages(ModelFolder* model, const World& world, std::int64_t bytes) {
  model->limits.pages = 1;
  const Graph graph = model->graph();
  model->limits.pages = Executable::pages_that_fit(graph, world, bytes, passes());
  if (model->limits.pages > 0) return;
  std::int64_t least = 0;
  for (const ArenaReport& arena : Executable::memory_estimate(graph, world, passes())) {
    least += arena.bytes;
  }
  throw_invalid("memory", "found {} bytes; expected {} or more, which is a cache of one page",
                bytes, least);
}

/// The inputs of a run, by name.
using Values = std::vector<std::int32_t>;
constexpr std::pair<const char*, Values ModelBatch::*> kInputs[] = {
    {"tokens", &ModelBatch::tokens},   {"positions", &ModelBatch::positions},
    {"slots", &ModelBatch::slots},     {"page_table", &ModelBatch::page_table},
    {"lengths", &ModelBatch::lengths}, {"starts", &ModelBatch::starts}};

using Samplings = std::span<const Sampling>;  ///< of each sequence; none: no token is chosen

/// Calls visit(values) for each array of a run.
void for_each_array(auto& batch, auto& sampling, auto visit) {
  for (const auto& [name, member] : kInputs) visit(batch.*member);
  visit(sampling);
}

/// A run as it goes to other processes. It is never empty.
std::string encode(const ModelBatch& batch, Samplings sampling) {
  ByteWriter out;
  for_each_array(batch, sampling, [&](const auto& values) {
    out.string({reinterpret_cast<const char*>(values.data()), values.size() * sizeof values[0]});
  });
  return out.take();
}

std::pair<ModelBatch, std::vector<Sampling>> decode(std::string_view bytes) {
  ByteReader in(bytes);
  ModelBatch batch;
  std::vector<Sampling> sampling;
  for_each_array(batch, sampling, [&](auto& values) {
    const std::string_view each = in.string();
    values.resize(each.size() / sizeof values[0]);
    std::memcpy(values.data(), each.data(), values.size() * sizeof values[0]);
  });
  if (!in.done()) throw_internal("follow", "what the end of rank 0 sends is no batch");
  return {std::move(batch), std::move(sampling)};
}

}  // namespace

std::string ModelLimits::refusal(std::span<const std::int32_t> tokens, std::int64_t more) const {
  for (const std::int32_t token : tokens) {
    if (token >= 0 && token < vocabulary) continue;
    return fmt::format("found the token {}; expected one from 0 to {}", token, vocabulary - 1);
  }
  if (std::ssize(tokens) + more <= room()) return {};
  return fmt::format("found {} tokens and {} more; expected at most {} together", tokens.size(),
                     more, room());
}

void ModelBatch::append(const ModelLimits& limits, std::span<const std::int32_t> sequence,
                        std::int64_t cached, std::int64_t count,
                        std::span<const std::int32_t> pages) {
  const std::int64_t size = limits.page_size, end = cached + count;
  if (cached < 0 || count < 1 || end > std::ssize(sequence)) {
    throw_invalid("sequence", "found {} tokens behind {}; expected one or more of its {}", count,
                  cached, sequence.size());
  }
  const std::int64_t least = (end + size - 1) / size;
  if (std::ssize(pages) < least) {
    throw_invalid("pages", "found {}; expected {} or more", pages.size(), least);
  }
  for (std::int64_t position = cached; position < end; ++position) {
    tokens.push_back(sequence[position]);
    positions.push_back(static_cast<std::int32_t>(position));
    slots.push_back(static_cast<std::int32_t>(pages[position / size] * size + position % size));
  }
  lengths.push_back(static_cast<std::int32_t>(end));
  starts.push_back(static_cast<std::int32_t>(tokens.size()));
  page_table.insert(page_table.end(), pages.begin(), pages.end());
  page_table.resize(lengths.size() * limits.table_width);
}

namespace {

/// Throws kInvalidArgument for numbers that mean nothing, NaN among them.
void check(const Sampling& sampling) {
  const auto require = [](bool good, const char* name, double found, const char* expected) {
    if (!good) throw_invalid(name, "found {}; expected {}", found, expected);
  };
  const double temperature = sampling.temperature;
  require(temperature >= 0 && std::isfinite(temperature), "temperature", temperature, "0 or more");
  require(sampling.top_p > 0 && sampling.top_p <= 1, "top_p", sampling.top_p,
          "a number above 0, at most 1");
  require(sampling.min_p >= 0 && sampling.min_p <= 1, "min_p", sampling.min_p, "0 to 1");
}

}  // namespace

struct ExportedModel::Impl : NonCopyable {
  using Sizes = std::pair<std::int64_t, std::int64_t>;  // tokens, sequences
  struct PlanUse {
    Executable::Plan plan;
    std::uint64_t last_run = 0;
  };

  Impl(const ModelFolder& model, World opened, std::shared_ptr<Rendezvous> met);
  ~Impl();
  void read_weights(const ModelFolder& model);
  /// Binds an input or output to memory of the largest run.
  void place(std::size_t local, const std::string& name, const TensorType& type);
  const Executable::Plan& plan(const Sizes& sizes);
  void enqueue(const ModelBatch& batch, Samplings sampling, const Executable::Plan& chosen,
               HostTensor* logits);
  /// Runs on the ranks of this process. The logits, where no tokens are chosen, are there where
  /// rank 0 is.
  HostTensor run(const ModelBatch& batch, Samplings sampling);
  /// Runs on the ranks of all processes.
  HostTensor run_everywhere(const char* caller, const ModelBatch& batch, Samplings sampling);
  [[nodiscard]] bool has_rank_0() const { return world.ranks()[0] == 0; }
  [[nodiscard]] std::string lost() const;

  ModelLimits limits;
  std::optional<ChatFormat> chat;
  World world;
  std::shared_ptr<Rendezvous> elsewhere;  ///< with the other ranks; null where all are here
  Executable executable;
  DType logits_dtype = DType::kF32;
  /// Of each rank here: inputs and outputs of the largest run, by name, and the stream that fills
  /// them.
  std::vector<std::map<std::string, std::unique_ptr<Memory>, std::less<>>> memory;
  std::vector<std::unique_ptr<Stream>> streams;
  std::optional<TokenChooser> chooser;
  std::map<Sizes, PlanUse> plans;
  std::uint64_t runs = 0;
  mutable std::mutex mutex;
  std::string failure;  ///< of a run, with ranks elsewhere; guarded by `mutex`
};

ExportedModel::Impl::Impl(const ModelFolder& model, World opened, std::shared_ptr<Rendezvous> met)
    : limits(model.limits),
      chat(model.chat),
      world(std::move(opened)),
      elsewhere(std::move(met)),
      executable(Executable::compile(model.graph(), world, passes())) {
  executable.prepare({{"T", 1}, {"S", 1}});
  read_weights(model);
  memory.resize(world.ranks().size());
  std::vector<DeviceTensor> logits;
  for (std::size_t local = 0; local < memory.size(); ++local) {
    streams.push_back(world.device().create_stream(world.ranks()[local]));
    for (const GraphInput& input : executable.inputs()) {
      if (input.kind == InputKind::kActivation) place(local, input.name, input.type);
      if (input.name == "page_table") limits.table_width = input.type.shape.at(1).constant();
    }
    for (const ExecutableOutput& output : executable.outputs()) {
      place(local, output.name, output.type);
      if (output.name != "logits") continue;
      logits_dtype = output.type.dtype;
      if (output.type.shape != Shape{Dim::symbol("S"), limits.vocabulary}) {
        throw_invalid(model.graph_path, "logits: found {}; expected [S, {}]", output.type.str(),
                      limits.vocabulary);
      }
      logits.push_back({memory[local].at("logits")->address(),
                        logits_dtype,
                        {limits.max_sequences, limits.vocabulary}});
    }
  }
  if (logits.empty()) throw_invalid(model.graph_path, "found no output logits; expected one");
  chooser.emplace(world, logits);
}

/// Lets the other processes go.
ExportedModel::Impl::~Impl() {
  if (elsewhere == nullptr || !has_rank_0()) return;
  try {
    (void)elsewhere->broadcast({});
  } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch)
    // They know it.
  }
}

std::string ExportedModel::Impl::lost() const {
  if (elsewhere == nullptr) return {};
  if (std::string lost = elsewhere->lost(); !lost.empty()) return lost;
  const std::lock_guard lock(mutex);
  return failure;
}

void ExportedModel::Impl::read_weights(const ModelFolder& model) {
  std::set<std::pair<int, std::string>> missing;
  for (const GraphInput& input : executable.inputs()) {
    if (input.kind != InputKind::kParameter) continue;
    for (const int rank : world.ranks()) missing.emplace(rank, input.name);
  }
  const auto read = [&](const std::string& file, const std::vector<int>& ranks) {
    read_safetensors(file, [&](std::string_view name, const HostTensor& tensor) {
      for (const int rank : ranks) {
        executable.set_input(rank, name, tensor);
        missing.erase({rank, std::string(name)});
      }
    });
  };
  read(model.shared, world.ranks());
  for (const int rank : world.ranks()) {
    if (rank < static_cast<int>(model.own.size())) read(model.own[rank], {rank});
  }
  if (missing.empty()) return;
  const auto& [rank, name] = *missing.begin();
  throw_invalid(model.path, "has no weights {} of rank {}", name, rank);
}

void ExportedModel::Impl::place(std::size_t local, const std::string& name,
                                const TensorType& type) {
  const int rank = world.ranks()[local];
  std::vector<std::int64_t> shape;
  std::size_t bytes = dtype_size(type.dtype);
  for (const Dim& dim : type.shape) {
    shape.push_back(dim.evaluate({{"T", limits.max_tokens}, {"S", limits.max_sequences}}));
    bytes *= shape.back();
  }
  auto allocated = world.device().allocate(rank, bytes);
  executable.bind(rank, name, {allocated->address(), type.dtype, shape});
  memory[local][name] = std::move(allocated);
}

const Executable::Plan& ExportedModel::Impl::plan(const Sizes& sizes) {
  auto it = plans.find(sizes);
  if (it == plans.end()) {
    if (plans.size() == kMaxPlans) {
      plans.erase(std::ranges::min_element(
          plans, {}, [](const auto& entry) { return entry.second.last_run; }));
    }
    auto made = executable.prepare({{"T", sizes.first}, {"S", sizes.second}});
    it = plans.emplace(sizes, PlanUse{std::move(made)}).first;
  }
  it->second.last_run = ++runs;
  return it->second.plan;
}

void ExportedModel::Impl::enqueue(const ModelBatch& batch, Samplings sampling,
                                  const Executable::Plan& chosen, HostTensor* logits) {
  std::vector<Stream*> raw;
  for (std::size_t local = 0; local < streams.size(); ++local) {
    Stream* stream = raw.emplace_back(streams[local].get());
    for (const auto& [name, member] : kInputs) {
      const auto found = memory[local].find(name);
      if (found == memory[local].end()) continue;  // a model may have no use for positions
      const Values& values = batch.*member;
      stream->copy_from_host(found->second->address(), values.data(),
                             values.size() * sizeof values[0]);
    }
  }
  executable.run(chosen, raw);
  if (!sampling.empty()) {
    chooser->enqueue(sampling, batch.lengths, raw);
  } else if (has_rank_0()) {
    raw[0]->copy_to_host(logits->data.data(), memory[0].at("logits")->address(),
                         logits->data.size());
  }
}

HostTensor ExportedModel::Impl::run(const ModelBatch& batch, Samplings sampling) {
  const std::int64_t sequences = std::ssize(batch.lengths);
  HostTensor logits{logits_dtype, {sampling.empty() ? sequences : 0, limits.vocabulary}, {}};
  logits.data.resize(logits.numel() * dtype_size(logits.dtype));
  std::exception_ptr first;
  const auto attempt = [&](const auto& step) {
    try {
      step();
    } catch (const std::exception& error) {
      if (first) return;
      first = std::current_exception();
      if (elsewhere == nullptr) return;
      const std::lock_guard lock(mutex);
      failure = error.what();
    }
  };
  attempt([&] { enqueue(batch, sampling, plan({std::ssize(batch.tokens), sequences}), &logits); });
  // Copies use the caller's vectors and `logits` until the streams are done, also after an error.
  attempt([&] { executable.synchronize(); });
  for (const auto& stream : streams) attempt([&] { stream->synchronize(); });
  if (first) std::rethrow_exception(first);
  return logits;
}

HostTensor ExportedModel::Impl::run_everywhere(const char* caller, const ModelBatch& batch,
                                               Samplings sampling) {
  if (elsewhere != nullptr) {
    if (!has_rank_0()) throw_invalid(caller, "rank 0 is elsewhere; expected follow()");
    if (const std::string why = lost(); !why.empty()) throw_environment(caller, why);
    (void)elsewhere->broadcast(encode(batch, sampling));
  }
  return run(batch, sampling);
}

ExportedModel ExportedModel::open(const std::string& folder, const ModelOptions& options) {
  ModelFolder model(folder);
  ModelLimits& limits = model.limits;
  if (options.max_tokens != 0) limits.max_tokens = std::min(limits.max_tokens, options.max_tokens);
  WorldOptions all = options.world;
  all.world = model.ranks;
  std::shared_ptr<Rendezvous> elsewhere = all.rendezvous;
  if (elsewhere != nullptr && elsewhere->world() != model.ranks) {
    throw_invalid(model.path, "is a model of {} ranks; found {} of all processes", model.ranks,
                  elsewhere->world());
  }
  if (elsewhere != nullptr && std::ssize(elsewhere->ranks()) == model.ranks) elsewhere = nullptr;
  // A rank that still compiles would keep the others waiting within a run.
  if (elsewhere != nullptr) all.compile_in_background = false;
  World world = World::open(all);
  if (options.pages != 0) {
    limits.pages = options.pages;
  } else if (options.memory != 0) {
    fit_pages(&model, world, options.memory);
  }
  return ExportedModel(std::make_unique<Impl>(model, std::move(world), std::move(elsewhere)));
}

ExportedModel::ExportedModel(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ExportedModel::ExportedModel(ExportedModel&&) noexcept = default;
ExportedModel& ExportedModel::operator=(ExportedModel&&) noexcept = default;
ExportedModel::~ExportedModel() = default;

const ModelLimits& ExportedModel::limits() const { return impl_->limits; }
const std::optional<ChatFormat>& ExportedModel::chat() const { return impl_->chat; }

std::vector<double> ExportedModel::run(const ModelBatch& batch) {
  return impl_->run_everywhere("run", batch, {}).to_doubles();
}

std::vector<ChosenToken> ExportedModel::choose(const ModelBatch& batch,
                                               std::span<const Sampling> sampling) {
  if (sampling.size() != batch.lengths.size()) {
    throw_invalid("choose", "found {} samplings; expected one for each of {} sequences",
                  sampling.size(), batch.lengths.size());
  }
  if (sampling.empty()) throw_invalid("choose", "found no sequence; expected one at least");
  for (const Sampling& each : sampling) check(each);
  (void)impl_->run_everywhere("choose", batch, sampling);
  return impl_->chooser->chosen();
}

void ExportedModel::follow() {
  if (impl_->elsewhere == nullptr || impl_->has_rank_0()) {
    throw_invalid("follow", "rank 0 is here; expected run()");
  }
  for (std::string bytes; !(bytes = impl_->elsewhere->broadcast({})).empty();) {
    const auto [batch, sampling] = decode(bytes);
    (void)impl_->run(batch, sampling);
  }
}

std::string ExportedModel::lost() const { return impl_->lost(); }

std::int64_t ExportedModel::ready_tokens() const {
  const ModelLimits& own = limits();
  const bool all = impl_->executable.ready({{"T", own.max_tokens}, {"S", 1}});
  return all ? own.max_tokens : std::min(own.max_tokens, own.max_sequences);
}

}  // namespace braid
