#include "runtime/compile/compile_program.h"

#include <algorithm>
#include <map>

#include "lowering/plan/variants.h"

namespace braid {

std::string op_names(const KernelSpec& spec) {
  std::string names;
  if (spec.body == nullptr) return names;
  for (const Node& node : spec.body->nodes()) {
    if (!names.empty()) names += '+';
    names += node.op_name();
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

ProgramCode compile_program(const Program& program, const DiskCache* cache,
                            const Progress& progress, bool line_info) {
  ProgramCode code = print_program(program);
  for (const KernelSource& source : code.sources) {
    if (progress) progress(code.compiled.size(), code.sources.size(), source.entry);
    code.compiled.push_back(compile_kernel(source, program.target, cache, line_info));
  }
  if (progress) progress(code.sources.size(), code.sources.size(), "");
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
      const ProgramKernel& kernel = program.kernels[static_cast<std::size_t>(k)];
      const std::size_t source = code.code_of[static_cast<std::size_t>(k)];
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
      const int kernel = program.steps[static_cast<std::size_t>(s)].kernel;
      if (kernel >= 0) ++launches[code.code_of[static_cast<std::size_t>(kernel)]];
    }
    for (std::size_t i = 0; i < reports.size(); ++i) {
      reports[i].launches = std::max(reports[i].launches, launches[i]);
    }
  }
  return reports;
}

}  // namespace braid
