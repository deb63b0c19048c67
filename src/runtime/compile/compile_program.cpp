#include "runtime/compile/compile_program.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>

#include "braid/error.h"
#include "lowering/fuse/kernel_body.h"
#include "lowering/plan/variants.h"
#include "runtime/compile/compile_request.h"
#include "runtime/compile/disk_cache.h"
#include "runtime/serve_requests.h"
#include "runtime/worker_processes.h"

namespace braid {

std::string op_names(const KernelSpec& spec) {
  std::string names;
  if (spec.body == nullptr) return names;
  const bool joined = is_joined(*spec.body);
  for (const Node& node : spec.body->nodes()) {
    if (!names.empty()) names += joined ? ", " : "+";
    names += joined ? op_names(spec_of(node)) : std::string(node.op_name());
  }
  return names;
}

ProgramCode print_program(const Program& program) {
  ProgramCode code;
  std::map<std::string, std::size_t> by_text;
  for (const ProgramKernel& kernel : program.kernels) {
    KernelSource source = emit(kernel.spec, program.target);
    const auto [found, is_new] = by_text.try_emplace(source.text, code.sources.size());
    code.code_of.push_back(found->second);
    if (is_new) code.sources.push_back(std::move(source));
  }
  return code;
}

namespace {

class SourceCompiler {
 public:
  SourceCompiler(ProgramCode& code, const Target& target, const CompileTools& tools,
                 std::size_t& done)
      : code_(code), target_(target), tools_(tools), done_(done) {}

  void run(std::span<const std::size_t> which) {
    std::vector<std::size_t> missing(which.begin(), which.end());
    if (tools_.workers != nullptr && which.size() > 1) {
      std::erase_if(missing, [&](std::size_t source) { return find(source); });
      if (missing.size() > 1) {
        (void)nvrtc_path();  // without NVRTC there is no need to ask workers
        return in_workers(missing);
      }
    }
    for (const std::size_t source : missing) {
      tell(source);
      keep(source, compile_kernel(code_.sources[source], target_, tools_.cache, tools_.line_info));
    }
  }

 private:
  void tell(std::size_t source) const {
    if (tools_.stop.stop_requested()) throw_stopped();
    if (tools_.progress) {
      tools_.progress(done_, code_.sources.size(), code_.sources[source].entry);
    }
  }
  [[noreturn]] static void throw_stopped() {
    throw Error(ErrorCode::kCancelled, "compile", "was ended before its kernels were there");
  }
  void keep(std::size_t source, CompiledKernel kernel) {
    code_.compiled[source] = std::move(kernel);
    ++done_;
  }
  bool find(std::size_t source) {
    std::optional<CompiledKernel> found =
        find_kernel(code_.sources[source], target_, tools_.cache, tools_.line_info);
    if (!found) return false;
    tell(source);
    keep(source, *std::move(found));
    return true;
  }
  void in_workers(std::span<const std::size_t> missing) {
    std::vector<std::string> requests;
    for (const std::size_t source : missing) {
      requests.push_back(for_worker(CompileRequest{
          .source = code_.sources[source],
          .target = target_,
          .cache_dir = tools_.cache == nullptr ? "" : tools_.cache->directory().string(),
          .line_info = tools_.line_info,
          .nvrtc = nvrtc_path()}));
    }
    const auto ends = [&](std::size_t request, const WorkerAnswer& answer) {
      const std::size_t source = missing[request];
      if (!answer.bytes) {
        throw_environment(code_.sources[source].entry,
                          "the process that compiled it " + answer.end);
      }
      keep(source, compiled_from(*answer.bytes));
    };
    tools_.workers->run(
        requests, {.begins = [&](std::size_t request) { tell(missing[request]); }, .ends = ends},
        tools_.stop);
    if (tools_.stop.stop_requested()) throw_stopped();
  }

  ProgramCode& code_;
  const Target& target_;
  const CompileTools& tools_;
  std::size_t& done_;
};

}  // namespace

void compile_sources(ProgramCode& code, std::span<const std::size_t> which, const Target& target,
                     const CompileTools& tools, std::size_t& done) {
  SourceCompiler(code, target, tools, done).run(which);
}

ProgramCode compile_program(const Program& program, const CompileTools& tools) {
  return compile_printed(print_program(program), program.target, tools);
}

ProgramCode compile_printed(ProgramCode code, const Target& target, const CompileTools& tools) {
  std::vector<std::size_t> all(code.sources.size());
  std::iota(all.begin(), all.end(), 0);
  code.compiled.resize(all.size());
  std::size_t done = 0;
  compile_sources(code, all, target, tools, done);
  if (tools.progress) tools.progress(all.size(), all.size(), "");
  return code;
}

std::vector<KernelReport> kernel_reports(const Program& program, const ProgramCode& code,
                                         const Bindings* bindings) {
  std::vector<KernelReport> reports(code.sources.size());
  for (std::size_t i = 0; i < reports.size(); ++i) {
    const KernelResources& resources = code.compiled[i].resources;
    reports[i].name = code.sources[i].entry;
    reports[i].shared_bytes = resources.shared_bytes;
    reports[i].registers = resources.registers;
    reports[i].spill_bytes = resources.spill_store_bytes + resources.spill_load_bytes;
    reports[i].compile_ms = code.compiled[i].compile_ms;
    reports[i].cache_hit = code.compiled[i].cache_hit;
  }
  const std::vector<Variant> variants = variants_of(program);
  const std::size_t runs = bindings == nullptr ? variants.size() : variant_at(program, *bindings);
  for (std::size_t v = 0; v < variants.size(); ++v) {
    const Variant& variant = variants[v];
    const bool counts = runs == variants.size() || runs == v;
    for (int k = variant.kernels.first; k < variant.kernels.end; ++k) {
      const ProgramKernel& kernel = program.kernels[k];
      const std::size_t source = code.code_of[k];
      KernelReport& report = reports[source];
      report.template_name = kernel.needs.template_name;
      report.ops = op_names(kernel.spec);
      report.threads = kernel.needs.threads;
      report.shared_bytes =
          std::max(report.shared_bytes,
                   code.compiled[source].resources.shared_bytes + kernel.needs.shared_bytes);
      if (!counts) continue;
      const Expr& grid = kernel.needs.grid;
      report.grid = std::max(
          report.grid, bindings == nullptr ? grid.max(variant.symbols) : grid.evaluate(*bindings));
    }
    std::vector<int> launches(reports.size(), 0);
    for (int s = variant.steps.first; counts && s < variant.steps.end; ++s) {
      const int kernel = program.steps[s].kernel;
      if (kernel >= 0) ++launches[code.code_of[kernel]];
    }
    for (std::size_t i = 0; i < reports.size(); ++i) {
      reports[i].launches = std::max(reports[i].launches, launches[i]);
    }
  }
  return reports;
}

}  // namespace braid
