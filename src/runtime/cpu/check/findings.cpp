// The texts of the sanitizer's findings.

#include <fmt/format.h>

#include <filesystem>
#include <utility>

#include "braid/checks.h"
#include "runtime/cpu/check/sanitizer.h"

namespace braid::cpu {

Dim3 position(std::uint64_t index, Dim3 extent) {
  return {static_cast<std::uint32_t>(index % extent.x),
          static_cast<std::uint32_t>(index / extent.x % extent.y),
          static_cast<std::uint32_t>(index / extent.x / extent.y)};
}

std::string_view verb(AccessCode::Kind kind) {
  switch (kind) {
    case AccessCode::kLoad:
      return "read";
    case AccessCode::kStore:
      return "write";
    case AccessCode::kAtomic:
    case AccessCode::kSwap:
      return "atomic";
    case AccessCode::kCopyFrom:
      return "cp.async read";
    case AccessCode::kCopyTo:
      return "cp.async write";
    case AccessCode::kBulkFrom:
      return "bulk copy's read";
    case AccessCode::kBulkTo:
      return "bulk copy's write";
    case AccessCode::kMatrixFrom:
      return "wgmma's read";
    case AccessCode::kTensorFrom:
      return "tcgen05's read";
    case AccessCode::kTensorTo:
      return "tcgen05's write";
    case AccessCode::kTensorUpdate:
      return "tcgen05's update";
  }
  return "";
}

SourceLines SourceLines::of(const std::string& kernel, std::string_view file,
                            std::shared_ptr<const SourceMap> map) {
  const std::filesystem::path path(file.empty() ? kernel + ".cu" : std::string(file));
  if (path.extension() == ".cu") return {path.stem().string() + ".ptx", path.string(), map};
  return {path.string(), kernel + ".cu", map};
}

std::string SourceLines::cuda_file(std::uint32_t ptx_line) const {
  if (map == nullptr) return source;
  const auto file = map->files.find(map->at(ptx_line).file);
  const bool is_source = file == map->files.end() || file->second.empty() ||
                         file->second == std::filesystem::path(source).filename();
  return is_source ? source : file->second;
}

std::uint32_t SourceLines::cuda_line(std::uint32_t ptx_line) const {
  return map == nullptr ? 0 : map->at(ptx_line).line;
}

std::string SourceLines::inlined(std::uint32_t ptx_line) const {
  const std::uint32_t number = map == nullptr ? 0 : map->at(ptx_line).inlined;
  return number == 0 ? "" : map->inlined[number - 1];
}

std::pair<std::string, std::int64_t> Sanitizer::name_of(const Region& region,
                                                        std::uint64_t address) const {
  const MemoryPart* before = nullptr;  // the part whose end was passed, where no part has the
                                       // address
  for (const MemoryPart& part : region.parts) {
    if (address < part.address) break;
    before = &part;
    if (address - part.address < part.bytes) break;
  }
  if (before == nullptr && !region.parts.empty() && address < region.address) {
    before = &region.parts.front();
  }
  if (before != nullptr) {
    return {before->name, static_cast<std::int64_t>(address - before->address)};
  }
  return {region.name, static_cast<std::int64_t>(address - region.address)};
}

std::string Sanitizer::place(const Access& access) const {
  const AgentInfo& agent = agents_[access.when.agent];
  if (agent.block == kHostBlock) return fmt::format("rank {}, the host", agent.rank);
  const std::size_t k = access.kernel;
  const Dim3 block = position(agent.block, grid_shapes_[k]);
  const Dim3 thread = position(agent.warp * 32ULL + access.lane, block_shapes_[k]);
  std::string text =
      fmt::format("rank {}, kernel {}, block ({}, {}, {}), thread ({}, {}, {})", agent.rank,
                  kernels_[k], block.x, block.y, block.z, thread.x, thread.y, thread.z);
  const SourceLines& source = sources_[k];
  if (const std::uint32_t cuda = source.cuda_line(access.line); cuda != 0) {
    text += fmt::format(", {}:{}", source.cuda_file(access.line), cuda);
    if (const std::string from = source.inlined(access.line); !from.empty()) {
      text += fmt::format(" (inlined {})", from);
    }
  }
  return text + fmt::format(", {}:{}", source.ptx_file, access.line);
}

void Sanitizer::add(const Lane& lane, std::string_view kind, std::string message,
                    const Region* region, std::string other, std::uint64_t side) {
  const Known known{std::string(kind), lane.warp.launch->kernel_index, lane.line, side};
  if (known_.contains(known)) return;
  keep(known, describe(lane, kind, std::move(message), region, std::move(other)));
}

void Sanitizer::keep(const Known& known, Finding finding) {
  if (!known_.insert(known).second) return;
  FindingList::Cause cause = cause_of(known, finding);
  findings_.add(std::move(cause), std::move(finding));
}

FindingList::Cause Sanitizer::cause_of(const Known& known, const Finding& finding) const {
  // The source line, and the inlined place, where the PTX tells.
  const auto place_of = [&](std::size_t kernel, std::uint32_t line) -> std::uint64_t {
    const SourceLines& source = sources_[kernel];
    const SourceMap::Place place =
        source.map == nullptr ? SourceMap::Place{} : source.map->at(line);
    if (place.line == 0) return line;
    return place.file << 56U ^ ((std::uint64_t{place.inlined} + 1) << 32U | place.line);
  };
  FindingList::Cause cause{known.kind,
                           FindingList::without_numbers(finding.message),
                           finding.buffer,
                           known.kernel,
                           place_of(known.kernel, known.line),
                           known.other};
  const bool is_side = (known.other & kSide) != 0 && (known.other >> 63U) == 0;
  if (is_side) {
    const std::uint64_t side = known.other & ~kSide;
    cause.other = place_of(side >> 32U, static_cast<std::uint32_t>(side));
  }
  return cause;
}

/// For Known: the line of another access, or the stream whose host work it was.
std::uint64_t Sanitizer::known_side(const Access& access) const {
  const AgentInfo& agent = agents_[access.when.agent];
  if (agent.block == kHostBlock) return kHostBlock - static_cast<unsigned>(agent.rank);
  return kSide | std::uint64_t{access.kernel} << 32U | access.line;
}

Finding Sanitizer::describe(const Lane& lane, std::string_view kind, std::string message,
                            const Region* region, std::string other) const {
  const WarpCheck& warp = lane.warp;
  const LaunchCheck& launch = *warp.launch;
  Finding finding;
  finding.kind = kind;
  finding.message = std::move(message);
  finding.rank = launch.stream->rank;
  finding.kernel = launch.kernel;
  finding.block = position(warp.block, launch.grid);
  finding.thread = position(warp.warp * 32ULL + lane.lane, launch.block);
  finding.ptx_line = lane.line;
  const SourceLines& source = launch.source;
  finding.cuda_line = source.cuda_line(lane.line);
  finding.inlined = source.inlined(lane.line);
  finding.ptx_file = source.ptx_file;
  if (finding.cuda_line != 0) finding.cuda_file = source.cuda_file(lane.line);
  if (region != nullptr) {
    std::tie(finding.buffer, finding.offset) = name_of(*region, lane.address);
    if (region->rank != finding.rank) finding.buffer += fmt::format(" of rank {}", region->rank);
  }
  finding.other = std::move(other);
  return finding;
}

void Sanitizer::report(WarpCheck& warp, std::string_view kind, std::string message,
                       std::uint32_t line) {
  const std::lock_guard lock(mutex_);
  add({warp, 0, line, {}}, kind, std::move(message), nullptr);
}

void Sanitizer::undefined(WarpCheck& warp, std::uint32_t lanes, const char* what, std::uint32_t reg,
                          std::uint32_t line) {
  if ((checks_ & kCheckInit) == 0) return;
  const std::lock_guard lock(mutex_);
  const Lane lane{warp, static_cast<std::uint32_t>(std::countr_zero(lanes)), line, {}};
  add(lane, "uninitialized", what, nullptr, "", reg + 1);
}

void Sanitizer::stored_undefined(WarpCheck& warp, const std::uint64_t* addresses,
                                 std::uint32_t lanes, Part part, const char* what,
                                 std::uint32_t reg, std::uint32_t line) {
  if ((checks_ & kCheckInit) == 0) return;
  const std::lock_guard lock(mutex_);
  for (std::uint32_t rest = lanes; rest != 0; rest &= rest - 1) {
    const auto l = static_cast<std::uint32_t>(std::countr_zero(rest));
    if (forget_bytes(addresses[l] + part.offset, part.bytes)) continue;
    add({warp, l, line, {}}, "uninitialized", what, nullptr, "", reg + 1);
    return;
  }
}

void Sanitizer::deadlock(const std::vector<const WarpCheck*>& warps) {
  const std::lock_guard lock(mutex_);
  std::string chain;
  const WarpCheck* first = nullptr;
  int more = 0;
  for (const WarpCheck* warp : warps) {
    if (warp->polled == 0) continue;
    if (first == nullptr) first = warp;
    const Access access{.when = {warp->agent, warp->time},
                        .line = warp->polled_line,
                        .kernel = warp->launch->kernel_index,
                        .lane = warp->polled_lane};
    if (++more > 8) continue;
    std::string what = fmt::format("{:#x}", warp->polled);
    if (const Region* region = find(warp->polled)) {
      const auto [name, offset] = name_of(*region, warp->polled);
      what = fmt::format("{}{:+} of rank {}", name, offset, region->rank);
    }
    chain += fmt::format("{}{} waits for {}", chain.empty() ? "" : "; ", place(access), what);
  }
  if (first == nullptr || (checks_ & kCheckSync) == 0) return;
  if (more > 8) chain += fmt::format("; and {} more warps", more - 8);
  add({const_cast<WarpCheck&>(*first), first->polled_lane, first->polled_line, {}}, "deadlock",
      "every block polls what no one will write", nullptr, std::move(chain));
}

}  // namespace braid::cpu
