#include "runtime/exec/symmetric_heap.h"

#include <algorithm>
#include <numeric>

#include "codegen/protocol.h"
#include "ir/fail.h"
#include "runtime/exec/import_peer.h"
#include "runtime/name_memory.h"

namespace braid {

std::vector<std::int64_t> group_members(const Program& program, std::string_view group,
                                        std::int64_t rank) {
  const auto found = program.groups.find(group);
  if (found == program.groups.end()) throw_internal(std::string(group), "unknown group");
  for (const std::vector<std::int64_t>& members : found->second.ranks) {
    if (std::ranges::find(members, rank) != members.end()) return members;
  }
  if (!found->second.ranks.empty() || found->second.size != program.world) {
    throw_internal(std::string(group), "rank {} is in no instance of it", rank);
  }
  std::vector<std::int64_t> all(static_cast<std::size_t>(program.world));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

SymmetricHeap::SymmetricHeap(const Program& program, Device& device, std::span<const int> ranks)
    : program_(program),
      device_(device),
      ranks_(ranks.begin(), ranks.end()),
      memory_(ranks.size()),
      peers_(ranks.size()),
      multicasts_(ranks.size(), std::vector<std::uint64_t>(program.arenas.size())) {
  for (std::size_t a = 0; a < program.arenas.size(); ++a) {
    if (program.arenas[a].kind == ArenaKind::kSymmetric) arenas_.push_back(a);
  }
  for (std::size_t local = 0; local < ranks_.size(); ++local) {
    for (const std::size_t a : arenas_) {
      memory_[local].push_back(
          device.allocate_shared(ranks_[local], static_cast<std::size_t>(program.arenas[a].bytes)));
    }
    if (arenas_.empty() || static_cast<std::int64_t>(ranks_.size()) == program.world) continue;
    const std::size_t bytes = arenas_.size() * sizeof(std::uint32_t);
    abort_words_.push_back(device.allocate_host(ranks_[local], bytes));
    name_memory(device, *abort_words_.back(), bytes, "abort words");
  }
}

std::vector<std::string> SymmetricHeap::exports(std::size_t local) {
  std::vector<std::string> handles;
  if (static_cast<std::int64_t>(ranks_.size()) == program_.world) return handles;
  for (const auto& memory : memory_[local]) handles.push_back(memory->export_handle());
  for (std::size_t i = 0; i < arenas_.size(); ++i) {
    const std::vector<int> members = members_of(i, local);
    const bool leads =
        members.front() == ranks_[local] && wants_multicast(program_.arenas[arenas_[i]].group);
    handles.push_back(leads ? range_of(i, members, {}).multicast->export_handle() : "");
  }
  return handles;
}

void SymmetricHeap::connect(std::span<const std::vector<std::string>> handles) {
  for (std::size_t local = 0; local < ranks_.size(); ++local) {
    peers_[local].resize(program_.arenas.size());
    for (std::size_t i = 0; i < arenas_.size(); ++i) find_peers(local, i, handles);
  }
}

std::vector<int> SymmetricHeap::members_of(std::size_t arena, std::size_t local) const {
  const std::string& group = program_.arenas[arenas_[arena]].group;
  std::vector<int> members;
  for (const std::int64_t member : group_members(program_, group, ranks_[local])) {
    if (member < 0 || member >= program_.world) {
      throw_internal(group, "member {} of a world of {}", member, program_.world);
    }
    members.push_back(static_cast<int>(member));
  }
  return members;
}

void SymmetricHeap::find_peers(std::size_t local, std::size_t arena,
                               std::span<const std::vector<std::string>> handles) {
  std::vector<std::uint64_t>& addresses = peers_[local][arenas_[arena]];
  addresses.resize(static_cast<std::size_t>(program_.world));
  const std::vector<int> members = members_of(arena, local);
  std::vector<Memory*> memory;
  for (const int member : members) {
    const auto peer = static_cast<std::size_t>(member);
    const auto here = std::ranges::find(ranks_, member);
    if (here != ranks_.end()) {
      memory.push_back(memory_[here - ranks_.begin()][arena].get());
      addresses[peer] = memory.back()->address();
      continue;
    }
    if (handles[peer].size() != 2 * arenas_.size()) {
      throw_invalid(program_.name, "rank {} exports {} handles of {} arenas; expected two of each",
                    peer, handles[peer].size(), arenas_.size());
    }
    imported_.push_back(import_peer(device_, ranks_[local], member, handles[peer][arena]));
    memory.push_back(imported_.back().get());
    addresses[peer] = memory.back()->address();
  }
  if (!wants_multicast(program_.arenas[arenas_[arena]].group)) return;
  const std::vector<std::string>& leader = handles[members.front()];
  Range& range = range_of(arena, members,
                          leader.empty() ? std::string_view() : leader[arenas_.size() + arena]);
  range.multicast->add_rank(ranks_[local]);
  range.memory = std::move(memory);
}

void SymmetricHeap::bind() {
  for (const Range& range : ranges_) {
    for (Memory* const memory : range.memory) memory->bind_multicast(*range.multicast, 0);
    for (std::size_t local = 0; local < ranks_.size(); ++local) {
      if (std::ranges::find(range.members, ranks_[local]) == range.members.end()) {
        continue;
      }
      multicasts_[local][arenas_[range.arena]] = range.multicast->address();
    }
  }
}

bool SymmetricHeap::wants_multicast(const std::string& group) const {
  const auto wants = [&](const KernelParam& param) {
    return param.kind == KernelParam::Kind::kMulticast && param.group == group;
  };
  return std::ranges::any_of(program_.kernels, [&](const ProgramKernel& kernel) {
    return std::ranges::any_of(kernel.needs.params, wants);
  });
}

SymmetricHeap::Range& SymmetricHeap::range_of(std::size_t arena, const std::vector<int>& members,
                                              std::string_view handle) {
  for (Range& range : ranges_) {
    if (range.arena == arena && range.members == members) return range;
  }
  const auto bytes = static_cast<std::size_t>(program_.arenas[arenas_[arena]].bytes);
  ranges_.push_back({arena, members, device_.create_multicast(members, bytes, handle), {}});
  return ranges_.back();
}

std::uint64_t SymmetricHeap::own(std::size_t arena, std::size_t local) const {
  const auto found = std::ranges::find(arenas_, arena);
  if (found == arenas_.end()) return 0;
  return memory_[local][found - arenas_.begin()]->address();
}

std::vector<MemoryPart> SymmetricHeap::heads(std::size_t local) const {
  std::vector<MemoryPart> parts;
  for (std::size_t i = 0; i < arenas_.size(); ++i) {
    parts.push_back({memory_[local][i]->address(), protocol::kHeadBytes,
                     program_.arenas[arenas_[i]].name() + " head"});
  }
  return parts;
}

void SymmetricHeap::zero_flags(std::size_t local, Stream& stream) const {
  for (const MemoryPart& head : heads(local)) stream.fill(head.address, 0, head.bytes);
  for (const Buffer& buffer : program_.buffers) {
    if (buffer.kind == BufferKind::kTensor ||
        program_.arenas[buffer.arena].kind != ArenaKind::kSymmetric) {
      continue;
    }
    const std::uint64_t arena = own(static_cast<std::size_t>(buffer.arena), local);
    stream.fill(arena + static_cast<std::uint64_t>(buffer.offset), 0,
                static_cast<std::size_t>(buffer.bytes));
  }
}

void SymmetricHeap::give_up(std::size_t local, Stream& stream) const {
  for (const MemoryPart& head : heads(local)) {
    stream.write_value(head.address + protocol::kAbortOffset, 1);
  }
}

void SymmetricHeap::note_giving_up(std::size_t local, Stream& stream) const {
  for (std::size_t i = 0; i < arenas_.size(); ++i) {
    stream.copy(abort_words_[local]->address() + i * sizeof(std::uint32_t),
                memory_[local][i]->address() + protocol::kAbortOffset, sizeof(std::uint32_t));
  }
}

bool SymmetricHeap::gave_up(std::size_t local) const {
  if (arenas_.empty()) return false;
  const auto* words = reinterpret_cast<const std::uint32_t*>(abort_words_[local]->address());
  return std::any_of(words, words + arenas_.size(), [](std::uint32_t word) { return word != 0; });
}

}  // namespace braid
