#include "model.h"

#include <braid/error.h>
#include <braid/safetensors.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

namespace server {
namespace {

using braid::throw_environment, braid::throw_invalid, nlohmann::json;

// A server that decodes needs a plan for each number of running sequences, and a few with prompts.
constexpr std::size_t kMaxPlans = 512;

json read_json(const std::filesystem::path& path) {
  std::ifstream file(path);
  if (!file) throw_environment(path, std::strerror(errno));
  try {
    return json::parse(file);
  } catch (const json::exception& error) {
    throw_invalid(path, std::string("is no JSON: ") + error.what());
  }
}

/// What `chosen` lowers from `most`; 0 leaves it.
std::int64_t lowered(std::int64_t chosen, std::int64_t most) {
  return chosen == 0 ? most : std::min(chosen, most);
}

}  // namespace

Model::Model(const ModelOptions& options) {
  const std::filesystem::path path = options.folder / "manifest.json";
  const json manifest = read_json(path);
  json graph_json, weights;
  std::int64_t ranks = 0;
  std::filesystem::path graph_path;
  try {
    if (manifest.at("braid_model") != 1) {
      throw_invalid(path, "found format " + manifest.at("braid_model").dump() + "; expected 1");
    }
    limits_ = {
        .max_tokens = lowered(options.max_tokens, manifest.at("max_tokens")),
        .max_sequences = manifest.at("max_sequences"),
        .context = manifest.at("context"),
        .page_size = manifest.at("page_size"),
        .pages = options.pages != 0 ? options.pages : manifest.at("pages").get<std::int64_t>(),
        .vocabulary = manifest.at("vocabulary"),
        .end_of_text = manifest.at("end_of_text")};
    for (const std::int64_t limit : {limits_.max_tokens, limits_.max_sequences, limits_.context,
                                     limits_.page_size, limits_.pages, limits_.vocabulary}) {
      if (limit < 1)
        throw_invalid(path, "a limit is " + std::to_string(limit) + "; expected 1 or more");
    }
    ranks = manifest.at("ranks");
    weights = manifest.at("weights");
    graph_path = options.folder / manifest.at("graph").get<std::string>();
    graph_json = read_json(graph_path);
    for (json& input : graph_json.at("inputs")) {
      if (input.value("kind", "") == "state") input.at("shape").at(0) = limits_.pages;
    }
    json& tokens = graph_json.at("symbols").at("T");
    tokens.at("max") = limits_.max_tokens;
    if (limits_.max_tokens <= limits_.max_sequences) tokens.erase("buckets");  // one has all
  } catch (const json::exception& error) {
    throw_invalid(path, std::string("is not what braid.export writes: ") + error.what());
  }

  braid::WorldOptions world;
  world.device = options.device;
  world.world = static_cast<int>(ranks);
  world_ = std::make_unique<braid::World>(braid::World::open(world));
  const braid::Graph graph = braid::parse_graph(graph_json.dump(), graph_path.string());
  // A token has the same bits in a prompt, in any chunk of one, and in decode.
  const braid::PassConfig passes{.options = {{"invariant-attention", "true"}}};
  executable_ =
      std::make_unique<braid::Executable>(braid::Executable::compile(graph, *world_, passes));
  executable_->prepare({{"T", 1}, {"S", 1}});
  std::set<std::pair<int, std::string>> missing;
  for (const braid::GraphInput& input : executable_->inputs()) {
    if (input.kind != braid::InputKind::kParameter) continue;
    for (int rank = 0; rank < world_->size(); ++rank) missing.emplace(rank, input.name);
  }
  const auto read = [&](const json& file, int first, int last) {
    braid::read_safetensors(options.folder / file.get<std::string>(),
                            [&](std::string_view name, const braid::HostTensor& tensor) {
                              for (int rank = first; rank < last; ++rank) {
                                executable_->set_input(rank, name, tensor);
                                missing.erase({rank, std::string(name)});
                              }
                            });
  };
  read(weights.at("shared"), 0, world_->size());
  for (std::size_t rank = 0; rank < weights.at("ranks").size(); ++rank) {
    read(weights.at("ranks").at(rank), static_cast<int>(rank), static_cast<int>(rank) + 1);
  }
  if (!missing.empty()) {
    const auto& [rank, name] = *missing.begin();
    throw_invalid(options.folder, "has no weights " + name + " of rank " + std::to_string(rank));
  }

  memory_.resize(ranks);
  for (int rank = 0; rank < world_->size(); ++rank) {
    streams_.push_back(world_->device().create_stream(rank));
    for (const braid::GraphInput& input : executable_->inputs()) {
      if (input.kind == braid::InputKind::kActivation) place(rank, input.name, input.type);
      if (input.name == "page_table") table_width_ = input.type.shape.at(1).constant();
    }
    for (const braid::ExecutableOutput& output : executable_->outputs()) {
      place(rank, output.name, output.type);
      if (output.name != "logits") continue;
      logits_dtype_ = output.type.dtype;
      if (output.type.shape != braid::Shape{braid::Dim::symbol("S"), limits_.vocabulary}) {
        throw_invalid(graph_path, "logits: found " + output.type.str() + "; expected [S, " +
                                      std::to_string(limits_.vocabulary) + "]");
      }
    }
  }
}

void Model::place(int rank, const std::string& name, const braid::TensorType& type) {
  std::vector<std::int64_t> shape;
  std::size_t bytes = braid::dtype_size(type.dtype);
  for (const braid::Dim& dim : type.shape) {
    shape.push_back(dim.evaluate({{"T", limits_.max_tokens}, {"S", limits_.max_sequences}}));
    bytes *= shape.back();
  }
  auto memory = world_->device().allocate(rank, bytes);
  executable_->bind(rank, name, {memory->address(), type.dtype, shape});
  memory_[rank][name] = std::move(memory);
}

const braid::Executable::Plan& Model::plan(const Sizes& sizes) {
  auto it = plans_.find(sizes);
  if (it == plans_.end()) {
    if (plans_.size() == kMaxPlans) {
      plans_.erase(std::ranges::min_element(
          plans_, {}, [](const auto& entry) { return entry.second.last_run; }));
    }
    auto made = executable_->prepare({{"T", sizes.first}, {"S", sizes.second}});
    it = plans_.emplace(sizes, PlanUse{std::move(made)}).first;
  }
  it->second.last_run = ++runs_;
  return it->second.plan;
}

std::vector<double> Model::run(const Batch& batch) {
  const std::int64_t sequences = std::ssize(batch.lengths);
  const braid::Executable::Plan& chosen = plan({std::ssize(batch.tokens), sequences});
  braid::HostTensor logits{logits_dtype_, {sequences, limits_.vocabulary}, {}};
  logits.data.resize(logits.numel() * braid::dtype_size(logits_dtype_));
  // Copies use the caller's vectors and `logits` until the streams are done, also after an error.
  const auto wait = [&] {
    for (const auto& stream : streams_) stream->synchronize();
    executable_->synchronize();
  };
  try {
    enqueue(batch, chosen, &logits);
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

void Model::enqueue(const Batch& batch, const braid::Executable::Plan& chosen,
                    braid::HostTensor* logits) {
  std::vector<braid::Stream*> streams;
  for (std::size_t rank = 0; rank < streams_.size(); ++rank) {
    braid::Stream* stream = streams.emplace_back(streams_[rank].get());
    const auto set = [&](std::string_view name, const std::vector<std::int32_t>& values) {
      const auto found = memory_[rank].find(name);
      if (found == memory_[rank].end()) return;  // a model may have no use for positions
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
  executable_->run(chosen, streams);
  streams[0]->copy_to_host(logits->data.data(), memory_[0].at("logits")->address(),
                           logits->data.size());
}

}  // namespace server
