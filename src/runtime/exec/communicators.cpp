#include "runtime/exec/communicators.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/fail.h"
#include "lowering/plan/collective_step.h"
#include "lowering/plan/cost.h"
#include "runtime/bytes.h"
#include "runtime/exec/staged_communicator.h"
#include "runtime/exec/symmetric_heap.h"
#include "runtime/nccl/nccl_communicator.h"

namespace braid {
namespace {

StagedOptions staged(const Program& program, const std::string& group) {
  StagedOptions options;
  options.group = group;
  for (const Step& step : program.steps) {
    if (step.kind != Step::Kind::kCollective || step.group != group) continue;
    const Collective form = collective_of(program, step);
    options.stage_bytes = std::max(
        options.stage_bytes, static_cast<std::size_t>(max_bytes(step.operand, program.symbols)));
    if (form.reduce) options.reductions.emplace(step.operand.dtype, *form.reduce);
  }
  return options;
}

/// The caller's communicator for the group, or null.
void* callers_communicator(const Communicators::Callers& callers, const std::string& group,
                           std::size_t local, std::span<const int> ranks) {
  const auto found = callers.find(group);
  if (found == callers.end()) return nullptr;
  const bool given =
      std::ranges::all_of(found->second, [](const void* comm) { return comm != nullptr; });
  if (given && found->second.size() == ranks.size()) return found->second[local];
  throw_invalid(fmt::format("nccl_communicators of group '{}'", group),
                "found {}{}; expected one for each of {} ranks", found->second.size(),
                given ? "" : ", some of them null", ranks.size());
}

}  // namespace

Communicators::Communicators(const Program& program, Device& device, std::span<const int> ranks,
                             const Callers& callers, std::uint64_t timeout_ns)
    : program_(program), ranks_(ranks.begin(), ranks.end()) {
  for (const Step& step : program.steps) {
    if (step.kind != Step::Kind::kCollective) continue;
    if (std::ranges::find(groups_, step.group) == groups_.end()) {
      groups_.push_back(step.group);
    }
  }
  // NCCL refuses ranks that share a GPU; they use the staged communicator.
  const bool needs_nccl = device.kind() == "cuda" && device.ranks_per_device() == 1;
  for (std::size_t local = 0; local < ranks_.size(); ++local) {
    const int rank = ranks_[local];
    for (const std::string& group : groups_) {
      const std::vector<std::int64_t> members = group_members(program, group, rank);
      const auto index =
          static_cast<std::size_t>(std::ranges::find(members, rank) - members.begin());
      if (needs_nccl) {
        all_.push_back(
            make_nccl_communicator(device, {group, rank, index, members.size(), timeout_ns,
                                            callers_communicator(callers, group, local, ranks_)}));
        continue;
      }
      StagedOptions options = staged(program, group);
      options.rank = rank;
      options.index = index;
      options.members = members;
      all_.push_back(make_staged_communicator(device, std::move(options)));
    }
  }
}

Communicator* Communicators::find(std::string_view group, std::size_t local) const {
  const auto found = std::ranges::find(groups_, group);
  if (found == groups_.end()) return nullptr;
  return all_[local * groups_.size() + static_cast<std::size_t>(found - groups_.begin())].get();
}

std::string Communicators::name(std::size_t index) const {
  return fmt::format("group '{}', rank {}", groups_[index % groups_.size()],
                     ranks_[index / groups_.size()]);
}

std::string Communicators::offers(std::size_t local) {
  ByteWriter out;
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    out.string(all_[local * groups_.size() + g]->offer());
  }
  return out.take();
}

void Communicators::connect(std::span<const std::string> offers) {
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    std::vector<std::string> of_rank;
    for (const std::string& bytes : offers) {
      ByteReader in(bytes);
      std::string offer;
      for (std::size_t k = 0; k <= g; ++k) offer = in.string();
      of_rank.push_back(std::move(offer));
    }
    const auto each = [&](const auto& visit) {
      for (std::size_t local = 0; local < ranks_.size(); ++local) {
        visit(*all_[local * groups_.size() + g], local);
      }
    };
    GroupCall call(*all_[g]);
    each([&](Communicator& communicator, std::size_t local) {
      std::vector<std::string> of_member;
      for (const std::int64_t member : group_members(program_, groups_[g], ranks_[local])) {
        of_member.push_back(of_rank[member]);
      }
      communicator.forget_progress();
      communicator.connect(of_member);
    });
    call.end();
    each([&](Communicator& communicator, std::size_t) { communicator.settle(); });
  }
}

void Communicators::abort() noexcept {
  for (const auto& communicator : all_) communicator->abort();
}

}  // namespace braid
