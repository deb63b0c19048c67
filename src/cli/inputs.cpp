#include "cli/inputs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <map>

#include "cli/common.h"
#include "ir/fail.h"
#include "runtime/safetensors.h"

namespace braid::cli {

namespace {

// Checked before any tensor is read.
void check_entries(const Graph& graph, const Bindings& bindings, const SafetensorsFile& file) {
  std::map<std::string_view, const GraphInput*> inputs;
  for (const GraphInput& input : graph.inputs()) inputs.emplace(input.name, &input);
  for (const auto& [name, entry] : file.entries()) {
    const std::string place = tensor_place(file.path(), name);
    auto it = inputs.find(name);
    if (it == inputs.end()) throw_invalid(place, "the graph has no such input");
    const TensorType& type = it->second->type;
    std::vector<std::int64_t> shape;
    for (const Dim& dim : type.shape) shape.push_back(dim.evaluate(bindings));
    const std::optional<DType> dtype = SafetensorsFile::dtype_of(entry);
    if (dtype != type.dtype || entry.shape != shape) {
      throw_invalid(place, "found {}[{}], expected {}[{}]",
                    dtype ? dtype_name(*dtype) : entry.dtype, fmt::join(entry.shape, ", "),
                    dtype_name(type.dtype), fmt::join(shape, ", "));
    }
  }
}

std::vector<SafetensorsFile> open_files(const Graph& graph, const Bindings& bindings,
                                        const std::string& path) {
  std::vector<std::filesystem::path> paths;
  if (names_directory(path, "--inputs")) {
    for (int rank = 0; rank < world_size(graph); ++rank) {
      paths.push_back(std::filesystem::path(path) / rank_file_name(rank));
    }
  } else {
    paths.emplace_back(path);
  }
  std::vector<SafetensorsFile> files;
  for (const std::filesystem::path& each : paths) {
    const SafetensorsFile& file = files.emplace_back(each);
    check_entries(graph, bindings, file);
    file.drain();  // one program may write the pipes of all ranks, one after the other
  }
  return files;
}

}  // namespace

std::string rank_file_name(int rank) { return fmt::format("rank{}.safetensors", rank); }

void set_inputs(Executable& executable, const Graph& graph, const std::vector<int>& ranks,
                const RankTensors& tensors) {
  for (const int rank : ranks) {
    for (std::size_t i = 0; i < graph.inputs().size(); ++i) {
      executable.set_input(rank, graph.inputs()[i].name, tensors[rank][i]);
    }
  }
}

Inputs gather_inputs(const Graph& graph, const Bindings& bindings, const std::string& path,
                     std::uint64_t seed, const PieceProgress& progress) {
  std::vector<SafetensorsFile> files;
  if (!path.empty()) files = open_files(graph, bindings, path);
  Inputs result;
  result.tensors = random_inputs(graph, bindings, seed, progress);
  for (std::size_t i = 0; i < graph.inputs().size(); ++i) {
    const GraphInput& input = graph.inputs()[i];
    std::size_t found = 0;
    for (const auto& file : files) found += file.entries().count(input.name);
    if (found == 0) continue;
    if (found != files.size()) {
      throw_invalid(tensor_place(path, input.name), "is given for {} of {} ranks", found,
                    files.size());
    }
    result.from_files.push_back(input.name);
    for (std::size_t rank = 0; rank < result.tensors.size(); ++rank) {
      HostTensor& tensor = result.tensors[rank][i];
      if (files.size() == 1 && rank > 0) {
        tensor = result.tensors[0][i];
        continue;
      }
      tensor = files[rank].read(input.name);
      if (!input.per_rank && tensor.data != result.tensors[0][i].data) {
        throw_invalid(tensor_place(files[rank].path(), input.name),
                      "differs from rank 0, but the graph does not say per_rank");
      }
    }
  }
  return result;
}

}  // namespace braid::cli
