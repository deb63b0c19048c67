#include <algorithm>
#include <utility>

#include "braid/error.h"
#include "runtime/cpu/align.h"
#include "runtime/cpu/ptx/opcodes.h"
#include "runtime/cpu/run/bulk_copy.h"
#include "runtime/cpu/translate/jit.h"

namespace braid::cpu {
namespace {

constexpr std::uint64_t kMaxPrivateBytes = 1 << 24;

bool goes_back(const ptx::Function& function, std::size_t from, const ptx::Operand& operand) {
  if (operand.form == ptx::Operand::Form::kLabel) {
    return function.labels[operand.index] <= from;
  }
  return std::ranges::any_of(
      operand.elements, [&](const auto& element) { return goes_back(function, from, element); });
}

/// Computes Entry::straight_length. A kernel that sleeps, or that moves or multiplies more than a
/// vector, has none, since its time is unknown.
std::uint32_t straight_length(const ptx::Function& function) {
  for (std::size_t i = 0; i < function.body.size(); ++i) {
    const ptx::Instruction& instruction = function.body[i];
    const std::string& name = instruction.name;
    if (name == "mma" || name == "wmma" || name == "wgmma" || name == "tcgen05" ||
        ptx::has_modifier(instruction, "bulk") ||
        ptx::traits(instruction).flow == ptx::Flow::kSleeps) {
      return 0;
    }
    for (const ptx::Operand& operand : instruction.operands) {
      if (goes_back(function, i, operand)) return 0;
    }
  }
  return static_cast<std::uint32_t>(function.body.size());
}

}  // namespace

Program::Program(std::string text) : text_(std::move(text)), module_(ptx::parse(text_)) {
  for (std::size_t f = 0; f < module_.functions.size(); ++f) {
    if (!module_.functions[f].is_entry || !module_.functions[f].has_body) continue;
    ptx::Function entry = module_.functions[f];
    try {
      ptx::inline_calls(module_, entry);
      module_.functions[f] = std::move(entry);
    } catch (const Error& why) {
      module_.functions[f].error = why;
    }
  }
  offsets_.assign(module_.variables.size(), 0);
  std::vector<bool> inside(module_.variables.size());
  for (const ptx::Function& function : module_.functions) {
    for (const int local : function.locals) inside[local] = true;
  }
  std::uint64_t shared = 0;
  for (std::size_t v = 0; v < module_.variables.size(); ++v) {
    const ptx::Variable& variable = module_.variables[v];
    if (variable.space == ptx::Space::kGlobal || variable.space == ptx::Space::kConst) {
      globals_bytes_ = align_up(globals_bytes_, std::max<std::uint32_t>(variable.align, 8));
      offsets_[v] = static_cast<std::int64_t>(globals_bytes_);
      globals_bytes_ += variable.size;
    } else if (variable.space == ptx::Space::kShared && !variable.dynamic && !inside[v]) {
      shared = align_up(shared, variable.align);
      offsets_[v] = static_cast<std::int64_t>(shared);
      shared += variable.size;
    }
  }
  if (shared > kMaxPrivateBytes) throw_invalid("ptx", "too much shared memory");
  module_shared_bytes_ = static_cast<std::uint32_t>(shared);
  for (std::size_t f = 0; f < module_.functions.size(); ++f) {
    const ptx::Function& function = module_.functions[f];
    if (!function.is_entry || !function.has_body) continue;
    Entry entry;
    entry.name = function.name;
    entry.function = static_cast<int>(f);
    for (const auto* shape : {&function.required_threads, &function.max_threads}) {
      if ((*shape)[0] % 32 != 0) entry.needs_general = true;
    }
    local_bytes_.push_back(0);
    shared_bytes_.push_back(0);
    entry.error = function.error;
    try {
      if (!entry.error) place(entry);
    } catch (const Error& why) {
      entry.error = why;
    }
    entries_.push_back(std::move(entry));
  }
  SourceMap map{module_.source_files, module_.inlined, {}};
  for (const ptx::Function& function : module_.functions) {
    for (const ptx::Instruction& instruction : function.body) {
      if (instruction.source_line == 0) continue;
      if (map.places.size() <= instruction.line) map.places.resize(instruction.line + 1);
      map.places[instruction.line] = {instruction.source_file, instruction.source_line,
                                      instruction.inlined};
    }
  }
  source_map_ = std::make_shared<const SourceMap>(std::move(map));
}

void Program::place(Entry& entry) {
  const ptx::Function& function = module_.functions[entry.function];
  std::uint64_t bytes = 0;
  for (const int p : function.params) {
    const ptx::Variable& variable = module_.variables[p];
    bytes = align_up(bytes, variable.align);
    offsets_[p] = static_cast<std::int64_t>(bytes);
    entry.parameters.push_back(
        {static_cast<std::uint32_t>(bytes), static_cast<std::uint32_t>(variable.size)});
    bytes += variable.size;
  }
  if (bytes > kMaxParameterBytes) {
    throw_invalid(entry.name,
                  "more than " + std::to_string(kMaxParameterBytes) + " bytes of parameters");
  }
  entry.parameter_bytes = static_cast<std::uint32_t>(bytes);
  const bool has_tiles = std::ranges::any_of(function.body, [](const ptx::Instruction& i) {
    return i.name == "wgmma" || i.name == "tcgen05" || ptx::has_modifier(i, "tensor");
  });
  if (has_tiles) entry.shared_align = kTileAlign;
  entry.generic_shared = std::ranges::any_of(function.body, [](const ptx::Instruction& i) {
    return i.name == "cvta" && !ptx::has_modifier(i, "to") &&
           (ptx::has_modifier(i, "shared") || ptx::has_modifier(i, "shared::cta") ||
            ptx::has_modifier(i, "shared::cluster"));
  });
  entry.straight_length = straight_length(function);
  std::uint64_t local = 0;
  std::uint64_t shared = module_shared_bytes_;
  std::uint64_t dynamic_align = 16;
  for (const int l : function.locals) {
    const ptx::Variable& variable = module_.variables[l];
    if (variable.space == ptx::Space::kGlobal || variable.space == ptx::Space::kConst) continue;
    std::uint64_t& at = variable.space == ptx::Space::kShared ? shared : local;
    at = align_up(at, variable.align);
    offsets_[l] = static_cast<std::int64_t>(at);
    at += variable.size;
  }
  for (const ptx::Variable& variable : module_.variables) {
    if (variable.dynamic) dynamic_align = std::max<std::uint64_t>(dynamic_align, variable.align);
  }
  // Behind the kernel's own, in front of what the launch adds.
  const bool reserves = std::ranges::any_of(function.body, [](const ptx::Instruction& i) {
    return std::ranges::any_of(i.operands, [](const ptx::Operand& operand) {
      return operand.form == ptx::Operand::Form::kSpecial &&
             ptx::names_reserved_shared(static_cast<ptx::Special>(operand.index));
    });
  });
  if (reserves) entry.reserved_shared = ptx::kReservedSharedBytes;
  shared = align_up(shared + entry.reserved_shared,
                    std::max<std::uint64_t>(dynamic_align, reserves ? 128 : 1));
  local = align_up(local, 16);
  if (local > kMaxPrivateBytes / 32 || shared > kMaxPrivateBytes) {
    throw_invalid(entry.name, "too much local or shared memory");
  }
  local_bytes_.back() = static_cast<std::uint32_t>(local);
  shared_bytes_.back() = static_cast<std::uint32_t>(shared);
}

}  // namespace braid::cpu
