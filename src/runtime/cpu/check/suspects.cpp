// Suspicious events that may turn out harmless, or to be another finding: racing reads whose values
// are discarded, writes of the same value, and reads of bytes that another warp has yet to write.

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "braid/checks.h"
#include "runtime/cpu/check/sanitizer.h"

namespace braid::cpu {
namespace {

constexpr std::string_view kRead = "a read";
constexpr std::string_view kWrite = "a write";

}  // namespace

bool Sanitizer::in_block(const WarpCheck& warp, const Access& before) const {
  const AgentInfo& mine = agents_[warp.agent];
  const AgentInfo& other = agents_[before.when.agent];
  return mine.rank == other.rank && mine.stream == other.stream && mine.block == other.block;
}

/// The reader among two racing accesses, if the race counts only when the value is used.
std::optional<Sanitizer::Reader> Sanitizer::reader(const Lane& lane, const Access& before,
                                                   std::string_view what, std::size_t bytes) const {
  if (what == kRead) {
    return Reader{before.when.agent, before.when.time, before.line, before.lanes(bytes)};
  }
  if (what != kWrite || lane.code.kind != AccessCode::kLoad) return {};
  return Reader{lane.warp.agent, lane.warp.time, lane.line, 0};
}

/// How the agent uses a value that it read, or chose, at that time and line; null if that is no
/// longer known.
const ReadUse* Sanitizer::use_of(const AgentInfo& agent, std::uint32_t time, std::uint32_t line,
                                 int matrix) {
  if (agent.launch == nullptr || time < agent.start) return nullptr;
  const auto [known, is_new] = agent.launch->uses.try_emplace({line, matrix});
  if (is_new) known->second = use_of_reads(*agent.launch->code, line, matrix);
  return &known->second;
}

/// Adds the lanes that read the racing bytes.
void Sanitizer::await_lanes(const Lane& lane, Suspect& suspect, const Reader& reader,
                            std::size_t bytes) {
  suspect.lanes |= reader.lanes;
  if (reader.lanes == 0) {
    suspected_.push_back({lane.address, lane.address + bytes, &suspect.lanes});
  }
}

void Sanitizer::race(const Lane& lane, const Region& region, const Access& before,
                     std::string_view what, std::size_t bytes) {
  if ((checks_ & kCheckRace) == 0) return;
  const Known known{"race", lane.warp.launch->kernel_index, lane.line, known_side(before)};
  if (known_.contains(known)) return;
  const std::optional<Reader> reads = reader(lane, before, what, bytes);
  if (reads) {
    const auto suspect = suspects_.find({reads->agent, known});
    if (suspect != suspects_.end()) return await_lanes(lane, suspect->second, *reads, bytes);
  }
  const std::string_view does = verb(lane.code.kind);
  const bool plain = what == kRead || what == kWrite;
  std::string message = plain && in_block(lane.warp, before)
                            ? fmt::format("missing barrier between {} and this {}", what, does)
                            : fmt::format("{} that nothing orders after {}", does, what);
  Finding finding =
      describe(lane, "race", std::move(message), &region, "the other side: " + place(before));
  const ReadUse* const use =
      reads ? use_of(agents_[reads->agent], reads->time, reads->line) : nullptr;
  if (use == nullptr || use->always) return keep(known, std::move(finding));
  std::string note =
      what == kRead
          ? fmt::format("{} of what another warp reads, unordered, {}", does,
                        use->guesses ? "as a guess that its swap verifies" : "and discards")
          : fmt::format("read of what another warp writes, unordered, {}",
                        use->guesses ? "as a guess that a swap verifies" : "and discarded");
  Suspect suspect{known, std::move(finding), std::move(note), reads->time, reads->lanes, use};
  if (agents_[reads->agent].ended) return judge(reads->agent, suspect);
  const auto [added, is_new] =
      suspects_.emplace(std::pair(reads->agent, known), std::move(suspect));
  await_lanes(lane, added->second, *reads, bytes);
}

/// Follows the values that `lanes` read then: what the reads reach, and through the choices that
/// have taken them since. Whether they reach what is asked for.
bool Sanitizer::follow(const AgentInfo& reader, const ReadUse& use, const Moment& then,
                       std::uint32_t lanes, const Reached& reached) {
  std::map<std::uint32_t, std::uint32_t> followed;  // by line of a selp: lanes of its result
  const auto reaches = [&](const ReadUse& from, std::uint32_t of, const auto& next) -> bool {
    if (from.always) return true;
    of = from.reached(of);
    if (reached(from, of)) return true;
    return std::ranges::any_of(from.choices, [&](const ReadUse::Choice& choice) {
      const auto found = reader.choices.find(choice.line);
      if (found == reader.choices.end()) return false;
      const std::uint32_t taken = found->second[choice.value].since(then) & of;
      std::uint32_t& before = followed[choice.line];
      if ((taken & ~before) == 0) return false;
      before |= taken;
      const ReadUse* const result = use_of(reader, then.time, choice.line);
      return result == nullptr || next(*result, taken, next);
    });
  };
  return reaches(use, lanes, reaches);
}

/// Whether one of `lanes` has stored at a place that depends on the values since it read them.
bool Sanitizer::is_used(const AgentInfo& reader, const ReadUse& use, const Moment& then,
                        std::uint32_t lanes, LaneMoments Stored::*of_which) {
  return follow(reader, use, then, lanes, [&](const ReadUse& from, std::uint32_t of) {
    return std::ranges::any_of(from.stores, [&](std::uint32_t line) {
      const auto found = reader.stores.find(line);
      return found != reader.stores.end() && ((found->second.*of_which).since(then) & of) != 0;
    });
  });
}

void Sanitizer::chose(WarpCheck& warp, std::uint32_t first, std::uint32_t second,
                      std::uint32_t line) {
  const std::lock_guard lock(mutex_);
  Chosen& chosen = agents_[warp.agent].choices[line];
  chosen[0].note(first, warp);
  chosen[1].note(second, warp);
}

/// Decides a suspect whose reader is done with the value, or never will be.
void Sanitizer::judge(std::uint32_t agent, const Suspect& suspect) {
  const AgentInfo& reader = agents_[agent];
  if (!reader.ended ||
      is_used(reader, *suspect.use, {suspect.time, 0}, suspect.lanes, &Stored::all)) {
    return keep(suspect.known, suspect.finding);
  }
  const auto [note, is_new] = notes_.try_emplace(suspect.known, suspect.finding);
  if (!is_new) return;
  note->second.kind = "note";
  note->second.message = suspect.note;
}

/// Decides the suspects of a warp that has ended; `entered` as in end_warp().
void Sanitizer::settle(std::uint32_t agent, const std::uint32_t* entered) {
  auto suspect = suspects_.lower_bound({agent, Known{}});
  while (suspect != suspects_.end() && suspect->first.first == agent) {
    judge(agent, suspect->second);
    suspect = suspects_.erase(suspect);
  }
  settle_values(agent, entered);
}

/// Uninitialized bytes count if their values reached something.
void Sanitizer::settle_values(std::uint32_t agent, const std::uint32_t* entered) {
  const AgentInfo& reader = agents_[agent];
  auto read = unwritten_.lower_bound({agent, Known{}});
  while (read != unwritten_.end() && read->first.first == agent) {
    Unwritten& unwritten = read->second;
    const ReadUse* const use =
        unwritten.counts ? nullptr : use_of(reader, reader.start, read->first.second.line);
    if (use != nullptr) {
      std::erase_if(unwritten.bytes, [&](const Unwritten::Bytes& bytes) {
        const auto later = [&](int block) { return entered[block] >= bytes.index; };
        const bool reached =
            use->in_block || entered == nullptr || std::ranges::any_of(use->blocks, later);
        const auto counts = [&](const ReadUse& of, std::uint32_t lanes) {
          return of.always ||
                 (reached && is_used(reader, of, {bytes.time, bytes.index}, lanes, &Stored::kept));
        };
        if (use->matrices == 0) return !counts(*use, bytes.lanes);
        for (int matrix = 0; matrix < use->matrices; ++matrix) {
          const std::uint32_t lanes = use->receiving(bytes.lanes, matrix);
          const ReadUse& of = *use_of(reader, reader.start, read->first.second.line, matrix);
          if (lanes != 0 && counts(of, lanes)) return false;
        }
        return true;
      });
    }
    read = unwritten.bytes.empty() ? unwritten_.erase(read) : std::next(read);
  }
}

/// Adds a note: warps write the same value to one place.
void Sanitizer::note(const Lane& lane, const Region& region, const Access& before, Same same) {
  if ((checks_ & kCheckRace) == 0) return;
  const Known known{"race", lane.warp.launch->kernel_index, lane.line, known_side(before)};
  if (notes_.contains(known) || notes_.size() >= kMostNotes) return;
  const std::string_view what =
      same == Same::kValue ? "write of the value that was written there, with nothing to order them"
                           : "write of what was written there but for rounding, with nothing to "
                             "order them";
  notes_.emplace(known, describe(lane, "note", std::string(what), &region,
                                 "the other side: " + place(before)));
}

/// The lanes in which what the store computes depends on bytes that nobody wrote.
std::uint32_t Sanitizer::computed_lanes(const AgentInfo& agent, std::uint32_t load,
                                        const UndefinedLoad& read, std::uint32_t store) {
  std::uint32_t lanes = 0;
  const Reached reached = [&](const ReadUse& from, std::uint32_t of) {
    if (std::ranges::find(from.computed_by, store) != from.computed_by.end()) lanes |= of;
    return false;
  };
  const ReadUse* const use = use_of(agent, agent.start, load);
  if (use == nullptr) return 0;
  if (use->matrices == 0) return follow(agent, *use, read.when, read.lanes, reached) ? 0 : lanes;
  for (int matrix = 0; matrix < use->matrices; ++matrix) {
    const std::uint32_t receiving = use->receiving(read.lanes, matrix);
    const ReadUse& of = *use_of(agent, agent.start, load, matrix);
    if (receiving != 0 && follow(agent, of, read.when, receiving, reached)) return 0;
  }
  return lanes;
}

/// A store in memory of the block of bytes that nobody wrote, or of what is computed from them:
/// they count as unwritten there, too. The very bytes are found where they are read next, as what
/// is computed then has that cause; other values where they were read first. Returns the lanes that
/// do no more.
std::uint32_t Sanitizer::pass_on(const WarpCheck& warp, const std::uint64_t* addresses,
                                 std::uint32_t mask, std::uint32_t bytes, std::uint32_t line) {
  const AgentInfo& agent = agents_[warp.agent];
  const std::uint16_t kernel = warp.launch->kernel_index;
  std::uint32_t lanes = 0;
  for (const auto& [load, read] : agent.undefined_loads) {
    const ReadUse* const use = use_of(agent, agent.start, load);
    if (use == nullptr) continue;
    if (use->reached(1) == 1 && std::ranges::find(use->moved_by, line) != use->moved_by.end()) {
      lanes |= read.lanes & mask;
      continue;
    }
    const std::uint32_t computed = computed_lanes(agent, load, read, line) & mask;
    const auto found = unwritten_.find({warp.agent, {"uninitialized", kernel, load, 0}});
    if (computed == 0 || found == unwritten_.end()) continue;
    lanes |= computed;
    computed_.try_emplace({kernel, line}, origin_of(*found));
  }
  std::uint32_t passed = 0;
  for (std::uint32_t rest = lanes; rest != 0; rest &= rest - 1) {
    const auto l = static_cast<std::uint32_t>(std::countr_zero(rest));
    if (forget_bytes(addresses[l], bytes)) passed |= 1U << l;
  }
  return passed;
}

/// Whether they are of memory of a block or thread. Then they count as unwritten from now on.
bool Sanitizer::forget_bytes(std::uint64_t address, std::size_t bytes) {
  const Region* region = find(address);
  if (region == nullptr || !region->of_block) return false;
  region->shadow->visit(address, bytes,
                        [](Cell& cell, std::uint64_t, std::size_t) { cell.initialized = false; });
  return true;
}

/// Of a word that is unwritten though there was a store: see stored_undefined().
std::string Sanitizer::undefined_store(const Cell& cell) const {
  if (cell.write.when.time == 0) return "";
  return "a store of what nobody wrote: " + place(cell.write);
}

void Sanitizer::add_unwritten(const Lane& lane, const Stretch& at) {
  Known known{"uninitialized", lane.warp.launch->kernel_index, lane.line, 0};
  if (known_.contains(known)) return;
  const std::pair key(lane.warp.agent, known);
  auto found = unwritten_.find(key);
  const auto origin = computed_.find({at.cell.write.kernel, at.cell.write.line});
  const bool is_computed = origin != computed_.end() && at.cell.write.when.time != 0;
  if (found == unwritten_.end()) {
    Unwritten read{describe(lane, "uninitialized",
                            fmt::format("{} of bytes that nobody wrote", verb(lane.code.kind)),
                            &at.region, undefined_store(at.cell))};
    if (is_computed) read.computed_from = origin->second;
    read.origin = at.address - static_cast<std::uint64_t>(read.finding.offset);
    read.counts = lane.code.kind != AccessCode::kLoad;
    found = unwritten_.emplace(key, std::move(read)).first;
  }
  if (!is_computed) found->second.computed_from.reset();  // it reads some itself
  constexpr std::size_t kMostStretches = 256;
  Unwritten& read = found->second;
  if (read.bytes.size() == kMostStretches) {
    read.counts = true;
    return;
  }
  fresh_.emplace_back(&read, read.bytes.size());
  read.bytes.push_back({at.address, at.address + at.bytes, lane.lane, lane.code.bytes,
                        lane.warp.time, 0, ++lane.warp.unwritten_reads});
}

/// The uninitialized bytes were to be written by another warp, with a barrier in between.
void Sanitizer::is_written(const Access& read, std::uint64_t start, std::uint64_t end) {
  if ((checks_ & kCheckRace) == 0) return;
  const auto found =
      unwritten_.find({read.when.agent, Known{"uninitialized", read.kernel, read.line, 0}});
  if (found == unwritten_.end()) return;
  std::vector<Unwritten::Bytes> rest;
  for (const Unwritten::Bytes& bytes : found->second.bytes) {
    Unwritten::Bytes before = bytes;
    before.end = std::min(bytes.end, start);
    if (before.start < before.end) rest.push_back(before);
    Unwritten::Bytes after = bytes;
    after.start = std::max(bytes.start, end);
    if (bytes.width != 0) {
      after.lane += static_cast<std::uint32_t>((after.start - bytes.start) / bytes.width);
    }
    if (after.start < after.end) rest.push_back(after);
  }
  found->second.bytes = std::move(rest);
  if (found->second.bytes.empty()) unwritten_.erase(found);
}

/// What is reported of the read.
Sanitizer::Origin Sanitizer::origin_of(const Unwrittens::value_type& read) const {
  const auto& [agent, known] = read.first;
  const Unwritten& unwritten = read.second;
  if (unwritten.computed_from) return *unwritten.computed_from;
  Origin origin{known, unwritten.finding};
  const Unwritten::Bytes& first = unwritten.bytes.front();
  origin.finding.offset = static_cast<std::int64_t>(first.start - unwritten.origin);
  origin.finding.thread =
      position(agents_[agent].warp * 32ULL + first.lane, block_shapes_[known.kernel]);
  return origin;
}

/// Warps of ended launches will not write what others have read.
void Sanitizer::settle_unwritten(bool all) {
  for (auto read = unwritten_.begin(); read != unwritten_.end();) {
    const AgentInfo& agent = agents_[read->first.first];
    if (!all && agent.launch != nullptr) {
      ++read;
      continue;
    }
    Origin origin = origin_of(*read);
    if (!known_.contains(origin.known)) keep(origin.known, std::move(origin.finding));
    read = unwritten_.erase(read);
  }
}

std::vector<Finding> Sanitizer::findings() {
  const std::lock_guard lock(mutex_);
  settle_unwritten(true);
  // Suspects of warps that never ended.
  while (!suspects_.empty()) settle(suspects_.begin()->first.first);
  return findings_.list();
}

void Sanitizer::forget() {
  const std::lock_guard lock(mutex_);
  findings_ = {};
  known_.clear();
  notes_.clear();
  suspects_.clear();
  unwritten_.clear();
  computed_.clear();
}

std::vector<Finding> Sanitizer::notes() {
  const std::lock_guard lock(mutex_);
  FindingList notes;
  for (const auto& [known, note] : notes_) {
    if (!known_.contains(known)) notes.add(cause_of(known, note), note);
  }
  return notes.list();
}

}  // namespace braid::cpu
