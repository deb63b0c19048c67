#include "lowering/plan/variants.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <map>
#include <string>
#include <utility>

#include "codegen/protocol.h"
#include "ir/buckets.h"
#include "ir/fail.h"
#include "lowering/plan/cost.h"
#include "lowering/plan/expect.h"
#include "lowering/plan/lay_out.h"
#include "lowering/plan/lifetimes.h"
#include "lowering/plan/step_order.h"
#include "pack/interval.h"

namespace braid {
namespace {

/// Number for a buffer of another variant, in no list.
constexpr int kForeign = std::numeric_limits<int>::max();

/// Each buffer that a step names by another number.
template <class Number>
void renumber(Step& step, const Number& number) {
  for (auto* ids : {&step.inputs, &step.outputs}) {
    for (int& id : *ids) id = number(id);
  }
  for (int* id : {&step.flags, &step.scratch, &step.source, &step.destination}) {
    if (*id >= 0) *id = number(*id);
  }
}

class Uniter {
 public:
  Uniter(std::span<const Program> parts, const SymbolTable& symbols) : parts_(parts) {
    const Program& first = parts.front();
    program_ = {.name = first.name,
                .target = first.target,
                .ranks_per_device = first.ranks_per_device,
                .batch_invariant = first.batch_invariant,
                .symbols = symbols,
                .groups = first.groups,
                .world = first.world};
    for (auto& [name, symbol] : program_.symbols) symbol.buckets.clear();
  }

  Program run() {
    for (const Program& part : parts_) {
      steps_ += static_cast<int>(part.steps.size());
      outlive_.push_back(outlive_runs(part, StepOrder(part.steps)));
    }
    add_arenas();
    add_tensors();
    for (std::size_t p = 0; p < parts_.size(); ++p) add(p);
    for (Arena& arena : program_.arenas) {
      if (arena.kind == ArenaKind::kSymmetric) {
        arena.bytes = round_up(arena.bytes, kSymmetricAlignment);
      }
    }
    program_.hash = hash_of(program_);
    return std::move(program_);
  }

 private:
  using Key = std::pair<ArenaKind, std::string>;
  static Key key_of(const Arena& arena) { return {arena.kind, arena.group}; }
  int& arena_of(const Program& part, const Buffer& buffer) {
    return arenas_[key_of(part.arenas[buffer.arena])];
  }

  /// The workspace is as large as the largest variant's; the other arenas grow by what each adds.
  void add_arenas() {
    std::map<Key, std::int64_t> bytes;
    for (std::size_t p = 0; p < parts_.size(); ++p) {
      const Program& part = parts_[p];
      for (const Arena& arena : part.arenas) {
        std::int64_t& most = bytes[key_of(arena)];
        if (arena.kind == ArenaKind::kWorkspace) most = std::max(most, arena.bytes);
        if (arena.kind == ArenaKind::kSymmetric) most = std::max(most, protocol::kHeadBytes);
      }
      // The shared part of a symmetric arena ends where the first buffer of a variant's own begins.
      for (std::size_t b = 0; b < part.buffers.size(); ++b) {
        const Buffer& buffer = part.buffers[b];
        const Arena& arena = part.arenas[buffer.arena];
        if (arena.kind != ArenaKind::kSymmetric || outlive_[p][b]) continue;
        std::int64_t& most = bytes[key_of(arena)];
        most = std::max(most, round_up(buffer.offset + buffer.bytes, kBufferAlignment));
      }
    }
    for (const auto& [key, most] : bytes) {
      arenas_[key] = program_.arenas.size();
      program_.arenas.push_back({key.first, key.second, most});
    }
  }

  void add_tensors() {
    numbers_.resize(parts_.size());
    for (std::size_t p = 0; p < parts_.size(); ++p) {
      numbers_[p].resize(parts_[p].buffers.size(), -1);
    }
    program_.inputs = add_tensors(&Program::inputs);
    program_.outputs = add_tensors(&Program::outputs);
  }

  std::vector<ProgramTensor> add_tensors(std::vector<ProgramTensor> Program::*list) {
    std::vector<ProgramTensor> tensors = parts_.front().*list;
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      const int id = program_.buffers.size();
      const Buffer& like = parts_.front().buffers[tensors[i].buffer];
      Arena& arena = program_.arenas[arena_of(parts_.front(), like)];
      program_.buffers.push_back({.name = tensors[i].name,
                                  .type = tensors[i].type,
                                  .arena = static_cast<int>(&arena - program_.arenas.data()),
                                  .offset = round_up(arena.bytes, kBufferAlignment),
                                  .bytes = max_bytes(tensors[i].type, program_.symbols),
                                  .first_step = 0,
                                  .last_step = std::max(0, steps_ - 1)});
      const Buffer& buffer = program_.buffers.back();
      arena.bytes = buffer.offset + round_up(buffer.bytes, kBufferAlignment);
      for (std::size_t p = 0; p < parts_.size(); ++p) numbers_[p][(parts_[p].*list)[i].buffer] = id;
      tensors[i].buffer = id;
    }
    return tensors;
  }

  void add(std::size_t p) {
    const Program& part = parts_[p];
    const auto end = [](const auto& list) { return static_cast<int>(list.size()); };
    Variant& variant = program_.variants.emplace_back();
    variant.symbols = part.symbols;
    variant.buffers.first = end(program_.buffers);
    variant.kernels.first = end(program_.kernels);
    variant.steps.first = end(program_.steps);
    for (std::size_t b = 0; b < part.buffers.size(); ++b) {
      if (numbers_[p][b] >= 0) continue;
      numbers_[p][b] = end(program_.buffers);
      program_.buffers.push_back(placed(p, b, variant.steps.first));
    }
    program_.kernels.insert(program_.kernels.end(), part.kernels.begin(), part.kernels.end());
    for (Step step : part.steps) {
      renumber(step, [&](int id) { return numbers_[p][id]; });
      if (step.kernel >= 0) step.kernel += variant.kernels.first;
      program_.steps.push_back(std::move(step));
    }
    variant.buffers.end = end(program_.buffers);
    variant.kernels.end = end(program_.kernels);
    variant.steps.end = end(program_.steps);
  }

  Buffer placed(std::size_t p, std::size_t b, int first_step) {
    const Program& part = parts_[p];
    Buffer buffer = part.buffers[b];
    const ArenaKind kind = part.arenas[buffer.arena].kind;
    buffer.arena = arena_of(part, buffer);
    buffer.first_step += first_step;
    buffer.last_step += first_step;
    Arena& arena = program_.arenas[buffer.arena];
    if (buffer.slice) {
      buffer.slice->of = numbers_[p][buffer.slice->of];
      buffer.offset = program_.buffers[buffer.slice->of].offset;
    } else if (kind == ArenaKind::kState || (kind == ArenaKind::kSymmetric && outlive_[p][b])) {
      buffer.offset = arena.bytes;  // words of a step, which keep their values between runs
      arena.bytes += round_up(buffer.bytes, kBufferAlignment);
    } else if (kind != ArenaKind::kSymmetric && kind != ArenaKind::kWorkspace) {
      throw_internal(buffer.name, "is no input or output and lies in arena " + arena.name());
    }
    return buffer;
  }

  std::span<const Program> parts_;
  Program program_;
  std::map<Key, int> arenas_;
  std::vector<std::vector<bool>> outlive_;  ///< for each part: for each buffer
  std::vector<std::vector<int>> numbers_;   ///< their numbers in the united program
  int steps_ = 0;                           ///< total of all parts
};

}  // namespace

Program unite(std::span<const Program> parts, const SymbolTable& symbols) {
  return Uniter(parts, symbols).run();
}

std::vector<Variant> variants_of(const Program& program) {
  if (!program.variants.empty()) return program.variants;
  const auto all = [](const auto& list) { return IndexRange{0, static_cast<int>(list.size())}; };
  return {{program.symbols, all(program.buffers), all(program.kernels), all(program.steps)}};
}

std::size_t variant_at(const Program& program, const Bindings& bindings) {
  if (program.variants.empty()) return 0;
  for (std::size_t v = 0; v < program.variants.size(); ++v) {
    const SymbolTable& symbols = program.variants[v].symbols;
    const bool takes = std::ranges::all_of(symbols, [&](const auto& entry) {
      const auto bound = bindings.find(entry.first);
      return bound != bindings.end() && holds(entry.second, bound->second);
    });
    if (takes) return v;
  }
  std::vector<std::string> values;
  for (const auto& [name, value] : bindings) values.push_back(fmt::format("{} = {}", name, value));
  throw_invalid(program.name, "none of its variants is for {}", fmt::join(values, ", "));
}

Program part_of(const Program& program, const Variant& variant) {
  Program part{.name = program.name,
               .target = program.target,
               .ranks_per_device = program.ranks_per_device,
               .batch_invariant = program.batch_invariant,
               .symbols = variant.symbols,
               .groups = program.groups,
               .world = program.world,
               .arenas = program.arenas,
               .inputs = program.inputs,
               .outputs = program.outputs};
  const int shared = program.variants.front().buffers.first;
  const int last = std::max(0, variant.steps.size() - 1);
  const auto number = [&](int id) {
    if (id < shared) return id;
    return variant.buffers.has(id) ? id - variant.buffers.first + shared : kForeign;
  };
  for (int b = 0; b < shared; ++b) {
    Buffer& buffer = part.buffers.emplace_back(program.buffers[b]);
    buffer.bytes = max_bytes(buffer.type, variant.symbols);
    buffer.first_step = 0;
    buffer.last_step = last;
  }
  for (int b = variant.buffers.first; b < variant.buffers.end; ++b) {
    Buffer& buffer = part.buffers.emplace_back(program.buffers[b]);
    buffer.first_step -= variant.steps.first;
    buffer.last_step -= variant.steps.first;
    if (buffer.slice) buffer.slice->of = number(buffer.slice->of);
  }
  for (ProgramTensor& tensor : part.inputs) tensor.buffer = number(tensor.buffer);
  for (ProgramTensor& tensor : part.outputs) tensor.buffer = number(tensor.buffer);
  const auto in = [](const auto& list, const IndexRange& range) {
    return std::pair(list.begin() + range.first, list.begin() + range.end);
  };
  const auto [kernel, last_kernel] = in(program.kernels, variant.kernels);
  part.kernels.assign(kernel, last_kernel);
  const auto [step, last_step] = in(program.steps, variant.steps);
  part.steps.assign(step, last_step);
  for (Step& own : part.steps) {
    renumber(own, number);
    if (own.kernel < 0) continue;
    own.kernel = variant.kernels.has(own.kernel) ? own.kernel - variant.kernels.first : kForeign;
  }
  return part;
}

void check_lists(const Program& program) {
  const auto follows = [](int& end, const IndexRange& own) {
    const bool good = own.first == end && own.end >= own.first;
    end = own.end;
    return good;
  };
  const int shared = program.variants.front().buffers.first;
  int buffers = shared;
  int kernels = 0;
  int steps = 0;
  for (const Variant& variant : program.variants) {
    const bool good = follows(buffers, variant.buffers) && follows(kernels, variant.kernels) &&
                      follows(steps, variant.steps);
    expect(good, "the lists of the variants do not follow each other");
    const bool within =
        std::equal(variant.symbols.begin(), variant.symbols.end(), program.symbols.begin(),
                   program.symbols.end(), [](const auto& own, const auto& all) {
                     return own.first == all.first && own.second.min >= all.second.min &&
                            own.second.max <= all.second.max &&
                            own.second.multiple_of % all.second.multiple_of == 0;
                   });
    expect(within, "the symbols of a variant are not the program's with narrower ranges");
  }
  const auto is_all = [](int end, const auto& list) {
    return end == static_cast<int>(list.size());
  };
  expect(shared >= 0 && is_all(buffers, program.buffers) && is_all(kernels, program.kernels) &&
             is_all(steps, program.steps),
         "the lists of the variants are not those of the program");
  for (const Buffer& b : std::span(program.buffers).subspan(shared)) {
    const bool there = b.arena >= 0 && static_cast<std::size_t>(b.arena) < program.arenas.size();
    const ArenaKind kind = there ? program.arenas[b.arena].kind : ArenaKind::kIo;
    expect(b.slice || kind == ArenaKind::kWorkspace || kind == ArenaKind::kSymmetric ||
               (kind == ArenaKind::kState && b.kind != BufferKind::kTensor),
           "buffer '{}' of a variant lies in no arena that it has with others", b.name);
  }
}

void check_apart(std::span<const Program> parts) {
  struct Own {
    std::int64_t end;
    std::size_t part;
    const Buffer* buffer;
  };
  std::vector<std::map<std::int64_t, Own>> owned(parts.front().arenas.size());  // by first byte
  const auto each = [&](auto visit) {
    for (std::size_t p = 0; p < parts.size(); ++p) {
      const std::vector<bool> outlive = outlive_runs(parts[p], StepOrder(parts[p].steps));
      for (std::size_t b = 0; b < parts[p].buffers.size(); ++b) {
        const Buffer& buffer = parts[p].buffers[b];
        const ArenaKind kind = parts[p].arenas[buffer.arena].kind;
        const bool own = kind == ArenaKind::kSymmetric ||
                         (kind == ArenaKind::kState && buffer.kind != BufferKind::kTensor);
        if (own && !buffer.slice && buffer.bytes > 0) visit(p, buffer, outlive[b]);
      }
    }
  };
  each([&](std::size_t p, const Buffer& b, bool outlives) {
    if (!outlives) return;
    const Own own{b.offset + b.bytes, p, &b};
    const auto [known, is_new] = owned[b.arena].try_emplace(b.offset, own);
    expect(is_new || known->second.part == p,
           "'{}' and '{}' of another variant share bytes that outlive runs", b.name,
           known->second.buffer->name);
  });
  each([&](std::size_t p, const Buffer& b, bool) {
    const std::map<std::int64_t, Own>& all = owned[b.arena];
    auto next = all.lower_bound(b.offset + b.bytes);
    while (next != all.begin() && (--next)->second.end > b.offset) {
      expect(next->second.part == p,
             "'{}' and '{}' of another variant share bytes that outlive runs", b.name,
             next->second.buffer->name);
    }
  });
}

}  // namespace braid
