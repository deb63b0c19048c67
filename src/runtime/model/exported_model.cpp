#include "braid/exported_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>

#include "braid/executable.h"
#include "braid/safetensors.h"
#include "ir/fail.h"

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

}  // namespace

void ModelBatch::append(const ModelLimits& limits, std::span<const std::int32_t> sequence,
                        std::int64_t cached, std::int64_t count,
                        std::span<const std::int32_t> pages) {
  const std::int64_t size = limits.page_size, end = cached + count;
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

struct ExportedModel::Impl {
  using Sizes = std::pair<std::int64_t, std::int64_t>;  // tokens, sequences
  struct PlanUse {
    Executable::Plan plan;
    std::uint64_t last_run = 0;
  };

  Impl(const ModelFolder& model, World opened);
  void read_weights(const ModelFolder& model);
  /// Binds an input or output to memory of the largest run.
  void place(int rank, const std::string& name, const TensorType& type);
  const Executable::Plan& plan(const Sizes& sizes);
  void enqueue(const ModelBatch& batch, const Executable::Plan& chosen, HostTensor* logits);

  ModelLimits limits;
  std::optional<ChatFormat> chat;
  World world;
  Executable executable;
  DType logits_dtype = DType::kF32;
  /// Of each rank: inputs and outputs of the largest run, by name, and the stream that fills them.
  std::vector<std::map<std::string, std::unique_ptr<Memory>, std::less<>>> memory;
  std::vector<std::unique_ptr<Stream>> streams;
  std::map<Sizes, PlanUse> plans;
  std::uint64_t runs = 0;
};

ExportedModel::Impl::Impl(const ModelFolder& model, World opened)
    : limits(model.limits),
      chat(model.chat),
      world(std::move(opened)),
      executable(Executable::compile(model.graph(), world, passes())) {
  executable.prepare({{"T", 1}, {"S", 1}});
  read_weights(model);
  memory.resize(world.size());
  for (int rank = 0; rank < world.size(); ++rank) {
    streams.push_back(world.device().create_stream(rank));
    for (const GraphInput& input : executable.inputs()) {
      if (input.kind == InputKind::kActivation) place(rank, input.name, input.type);
      if (input.name == "page_table") limits.table_width = input.type.shape.at(1).constant();
    }
    for (const ExecutableOutput& output : executable.outputs()) {
      place(rank, output.name, output.type);
      if (output.name != "logits") continue;
      logits_dtype = output.type.dtype;
      if (output.type.shape != Shape{Dim::symbol("S"), limits.vocabulary}) {
        throw_invalid(model.graph_path, "logits: found {}; expected [S, {}]", output.type.str(),
                      limits.vocabulary);
      }
    }
  }
}

void ExportedModel::Impl::read_weights(const ModelFolder& model) {
  std::set<std::pair<int, std::string>> missing;
  for (const GraphInput& input : executable.inputs()) {
    if (input.kind != InputKind::kParameter) continue;
    for (int rank = 0; rank < world.size(); ++rank) missing.emplace(rank, input.name);
  }
  const auto read = [&](const std::string& file, int first, int last) {
    read_safetensors(file, [&](std::string_view name, const HostTensor& tensor) {
      for (int rank = first; rank < last; ++rank) {
        executable.set_input(rank, name, tensor);
        missing.erase({rank, std::string(name)});
      }
    });
  };
  read(model.shared, 0, world.size());
  for (int rank = 0; rank < static_cast<int>(model.own.size()); ++rank) {
    read(model.own[rank], rank, rank + 1);
  }
  if (missing.empty()) return;
  const auto& [rank, name] = *missing.begin();
  throw_invalid(model.path, "has no weights {} of rank {}", name, rank);
}

void ExportedModel::Impl::place(int rank, const std::string& name, const TensorType& type) {
  std::vector<std::int64_t> shape;
  std::size_t bytes = dtype_size(type.dtype);
  for (const Dim& dim : type.shape) {
    shape.push_back(dim.evaluate({{"T", limits.max_tokens}, {"S", limits.max_sequences}}));
    bytes *= shape.back();
  }
  auto allocated = world.device().allocate(rank, bytes);
  executable.bind(rank, name, {allocated->address(), type.dtype, shape});
  memory[rank][name] = std::move(allocated);
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

void ExportedModel::Impl::enqueue(const ModelBatch& batch, const Executable::Plan& chosen,
                                  HostTensor* logits) {
  std::vector<Stream*> raw;
  for (std::size_t rank = 0; rank < streams.size(); ++rank) {
    Stream* stream = raw.emplace_back(streams[rank].get());
    const auto set = [&](std::string_view name, const std::vector<std::int32_t>& values) {
      const auto found = memory[rank].find(name);
      if (found == memory[rank].end()) return;  // a model may have no use for positions
      stream->copy_from_host(found->second->address(), values.data(),
                             values.size() * sizeof values[0]);
    };
    set("tokens", batch.tokens);
    set("positions", batch.positions);
    set("slots", batch.slots);
    set("page_table", batch.page_table);
    set("lengths", batch.lengths);
    set("starts", batch.starts);
  }
  executable.run(chosen, raw);
  raw[0]->copy_to_host(logits->data.data(), memory[0].at("logits")->address(), logits->data.size());
}

ExportedModel ExportedModel::open(const std::string& folder, const ModelOptions& options) {
  ModelFolder model(folder);
  ModelLimits& limits = model.limits;
  if (options.max_tokens != 0) limits.max_tokens = std::min(limits.max_tokens, options.max_tokens);
  WorldOptions all = options.world;
  all.world = model.ranks;
  World world = World::open(all);
  if (options.pages != 0) {
    limits.pages = options.pages;
  } else if (options.memory != 0) {
    fit_pages(&model, world, options.memory);
  }
  return ExportedModel(std::make_unique<Impl>(model, std::move(world)));
}

ExportedModel::ExportedModel(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ExportedModel::ExportedModel(ExportedModel&&) noexcept = default;
ExportedModel& ExportedModel::operator=(ExportedModel&&) noexcept = default;
ExportedModel::~ExportedModel() = default;

const ModelLimits& ExportedModel::limits() const { return impl_->limits; }
const std::optional<ChatFormat>& ExportedModel::chat() const { return impl_->chat; }

std::vector<double> ExportedModel::run(const ModelBatch& batch) {
  const std::int64_t sequences = std::ssize(batch.lengths);
  const Executable::Plan& chosen = impl_->plan({std::ssize(batch.tokens), sequences});
  HostTensor logits{impl_->logits_dtype, {sequences, impl_->limits.vocabulary}, {}};
  logits.data.resize(logits.numel() * dtype_size(logits.dtype));
  // Copies use the caller's vectors and `logits` until the streams are done, also after an error.
  const auto wait = [&] {
    for (const auto& stream : impl_->streams) stream->synchronize();
    impl_->executable.synchronize();
  };
  try {
    impl_->enqueue(batch, chosen, &logits);
  } catch (...) {
    try {
      wait();
    } catch (const std::exception&) {  // what the first error led to
    }
    throw;
  }
  wait();
  return logits.to_doubles();
}

}  // namespace braid
