#include "runtime/compile/artifact.h"

#include <fmt/format.h>

#include <deque>
#include <set>
#include <span>
#include <system_error>

#include "ir/fail.h"
#include "ir/json_read.h"
#include "ir/json_value.h"
#include "ir/text_file.h"
#include "lowering/passes.h"
#include "runtime/output_file.h"

namespace braid {
namespace {

namespace fs = std::filesystem;
using json_read::Fields;

std::string_view bytes_of(const std::vector<std::uint8_t>& data) {
  return {reinterpret_cast<const char*>(data.data()), data.size()};
}

// Codegen derives entry names from the text, so they are unique; file names must be unique in any
// case.
std::vector<std::string> file_names(const std::vector<KernelSource>& sources) {
  std::vector<std::string> names;
  std::set<std::string> taken;
  for (const KernelSource& source : sources) {
    std::string name = source.entry;
    for (int i = 1; !taken.insert(name).second; ++i) name = fmt::format("{}_{}", source.entry, i);
    names.push_back(std::move(name));
  }
  return names;
}

/// The content of code.json: hashes, and what only the compiler knows.
std::string code_json(const Program& program, const ProgramCode& code,
                      const std::vector<std::string>& names) {
  Json kernels = Json::array();
  for (std::size_t i = 0; i < code.sources.size(); ++i) {
    const CompiledKernel& kernel = code.compiled[i];
    kernels.push_back(Json::object({{"name", names[i]},
                                    {"cu", hash_of(code.sources[i].text)},
                                    {"ptx", hash_of(kernel.image.ptx)},
                                    {"cubin", hash_of(bytes_of(kernel.image.cubin))},
                                    {"registers", kernel.resources.registers},
                                    {"shared_bytes", kernel.resources.shared_bytes},
                                    {"spill_store_bytes", kernel.resources.spill_store_bytes},
                                    {"spill_load_bytes", kernel.resources.spill_load_bytes},
                                    {"stack_bytes", kernel.resources.stack_bytes}}));
  }
  return Json::object({{"braid_code", 1}, {"program", program.hash}, {"kernels", kernels}})
             .indented() +
         "\n";
}

/// Reads a file beside code.json and checks it against the hash there.
std::string read_part(const fs::path& path, const Fields& fields, const Place& place,
                      std::string_view key) {
  std::string bytes = read_text(path.string(), kMaxGraphBytes);
  const std::string& expected = json_read::read_string(fields.get(key), place / key);
  if (const std::string found = hash_of(std::string_view(bytes)); found != expected) {
    throw_invalid(path.string(), "found a file with the hash {}; expected {}", found, expected);
  }
  return bytes;
}

CompiledKernel read_kernel(const json_read::json& value, const Place& place,
                           const fs::path& directory, const std::string& name,
                           const KernelSource& source) {
  const Fields fields(value, place,
                      {"name", "cu", "ptx", "cubin", "registers", "shared_bytes",
                       "spill_store_bytes", "spill_load_bytes", "stack_bytes"});
  if (json_read::read_string(fields.get("name"), place / "name") != name) {
    json_read::fail_type(fields.get("name"), place / "name", "the kernel " + name);
  }
  const std::string text = read_part(directory / (name + ".cu"), fields, place, "cu");
  if (text != source.text) {
    throw_invalid((directory / (name + ".cu")).string(),
                  "found the text of another version of braid; expected that of this one");
  }
  CompiledKernel kernel;
  kernel.image.entry = source.entry;
  kernel.image.ptx = read_part(directory / (name + ".ptx"), fields, place, "ptx");
  const std::string cubin = read_part(directory / (name + ".cubin"), fields, place, "cubin");
  kernel.image.cubin.assign(cubin.begin(), cubin.end());
  const auto number = [&](std::string_view key) {
    return static_cast<int>(json_read::read_int(fields.get(key), place / key));
  };
  kernel.resources = {.registers = number("registers"),
                      .shared_bytes = number("shared_bytes"),
                      .spill_store_bytes = number("spill_store_bytes"),
                      .spill_load_bytes = number("spill_load_bytes"),
                      .stack_bytes = number("stack_bytes")};
  kernel.cache_hit = true;
  return kernel;
}

}  // namespace

std::optional<ProgramCode> read_code(const Program& program, const fs::path& directory) {
  const fs::path path = directory / "code.json";
  std::error_code error;
  if (!fs::exists(path, error)) return std::nullopt;
  const std::string where = path.string();
  const Place place(where);
  json_read::Document document;
  json_read::parse(read_text(where, kMaxGraphBytes), place, document);
  const Fields fields(document.root, place, {"braid_code", "program", "kernels"});
  if (fields.get("braid_code") != 1) {
    json_read::fail_type(fields.get("braid_code"), place / "braid_code", "version 1");
  }
  if (fields.get("program") != program.hash) {
    json_read::fail_type(fields.get("program"), place / "program",
                         "the hash of the program, \"" + program.hash + "\"");
  }
  ProgramCode code = print_program(program);
  const std::vector<std::string> names = file_names(code.sources);
  const Place list = place / "kernels";
  const auto& kernels = json_read::read_array(fields.get("kernels"), list);
  if (kernels.size() != names.size()) {
    json_read::fail_at(list,
                       fmt::format("found {} kernels; expected {}", kernels.size(), names.size()));
  }
  for (std::size_t i = 0; i < names.size(); ++i) {
    code.compiled.push_back(
        read_kernel(kernels[i], list / i, directory, names[i], code.sources[i]));
  }
  return code;
}

std::vector<KernelReport> write_artifact(const Graph& graph, const Target& target,
                                         const fs::path& directory,
                                         const ArtifactOptions& options) {
  PassContext context;
  context.target = target;
  context.ranks_per_device = options.ranks_per_device;
  context.config = options.passes;
  context.tuned = options.tuned;
  context.progress = options.pass_progress;
  const Program program = lower(graph, context);
  return write_artifact(program, compile_program(program, options.tools), directory,
                        options.report);
}

std::vector<KernelReport> write_artifact(
    const Program& program, const ProgramCode& code, const fs::path& directory,
    const std::function<std::string(const std::vector<KernelReport>& kernels)>& report) {
  std::error_code error;
  fs::create_directories(directory, error);
  if (error) {
    throw_environment(directory.string(), "cannot be made: {}", error.message());
  }
  // All are written before the first is published.
  std::deque<OutputFile> files;
  const auto write = [&](const std::string& name, std::string_view bytes) {
    files.emplace_back(directory / name, std::span(&bytes, 1));
  };
  write("program.json", to_json(program));
  const std::vector<std::string> names = file_names(code.sources);
  for (std::size_t i = 0; i < code.sources.size(); ++i) {
    const KernelImage& image = code.compiled[i].image;
    write(names[i] + ".cu", code.sources[i].text);
    write(names[i] + ".ptx", image.ptx);
    write(names[i] + ".cubin", bytes_of(image.cubin));
  }
  write("code.json", code_json(program, code, names));
  std::vector<KernelReport> reports = kernel_reports(program, code, nullptr);
  if (report) write("kernels.json", report(reports));
  for (OutputFile& file : files) file.publish();
  return reports;
}

}  // namespace braid
