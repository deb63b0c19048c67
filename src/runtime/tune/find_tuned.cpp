#include "runtime/tune/find_tuned.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "braid/error.h"
#include "codegen/device_model.h"
#include "ir/buckets.h"
#include "lowering/plan/cost.h"
#include "lowering/plan/program.h"
#include "runtime/compile/compiler.h"
#include "runtime/tune/tune_database.h"

namespace braid {
namespace {

/// "" where there is none here: then the cache serves what any of them made.
std::string toolchain_here() {
  try {
    return "NVRTC " + nvrtc_version();
  } catch (const Error&) {
    return {};
  }
}

class Finder {
 public:
  Finder(const std::string& path, TunedFor wanted)
      : database_(path, false),
        wanted_(std::move(wanted)),
        model_(device_model(wanted_.target).name),
        toolchain_(toolchain_here()) {}

  Tuned operator()(const Graph& body) const {
    const std::vector<TuneRow> rows = database_.rows_of(kernel_key(body));
    if (rows.empty()) return {};
    std::vector<const TuneRow*> usable = that_fit(rows, kMeasured);
    if (usable.empty()) usable = that_fit(rows, kEstimated);
    if (usable.empty()) return {{}, why_none(rows.back()), {}, {}};
    keep_one_binding(usable, body);
    std::erase_if(usable, [](const TuneRow* row) { return !row->trial.ns; });
    std::ranges::stable_sort(
        usable, [](const TuneRow* a, const TuneRow* b) { return *a->trial.ns < *b->trial.ns; });
    const std::vector<Config> allowed = candidates(body, wanted_.target);
    const auto shared = std::make_shared<const Graph>(body);
    const auto would_be_made = [&](const TuneRow* row) {
      return std::ranges::find(allowed, row->config) != allowed.end() &&
             hash_of(std::string_view(emit({shared, row->config}, wanted_.target).text)) ==
                 row->text;
    };
    const auto best = std::ranges::find_if(usable, would_be_made);
    if (best == usable.end()) {
      return {{}, "the database has nothing that this version of braid would make", {}, {}};
    }
    Tuned tuned{
        (*best)->config, gain(**best, usable, allowed[0], body), {}, measure_of(**best, body)};
    for (const TuneRow* row : usable) {
      if (row->config == allowed[0] && would_be_made(row)) tuned.default_ns = row->trial.ns;
    }
    return tuned;
  }

 private:
  [[nodiscard]] bool fits(const TuneRow& row, std::string_view measure) const {
    const TuneKey& key = row.key;
    if (row.braid != tuner_version() || key.measure != measure || key.arch != wanted_.target.arch())
      return false;
    if (!toolchain_.empty() && key.toolchain != toolchain_) return false;
    if (measure == kEstimated) return key.device == model_;
    return wanted_.gpu.empty() ? key.device.find(model_) != std::string::npos
                               : key.device == wanted_.gpu;
  }
  [[nodiscard]] std::vector<const TuneRow*> that_fit(const std::vector<TuneRow>& rows,
                                                     std::string_view measure) const {
    std::vector<const TuneRow*> fitting;
    for (const TuneRow& row : rows) {
      if (fits(row, measure)) fitting.push_back(&row);
    }
    return fitting;
  }

  /// Keeps the rows at the symbols' largest values, else at the values tuned last.
  static void keep_one_binding(std::vector<const TuneRow*>& rows, const Graph& body) {
    std::string symbols = symbols_text(max_bindings(body.symbols()));
    const auto at = [&](const TuneRow* row) { return row->key.symbols == symbols; };
    if (std::ranges::none_of(rows, at)) symbols = rows.back()->key.symbols;
    std::erase_if(rows, [&](const TuneRow* row) { return !at(row); });
  }

  [[nodiscard]] std::string why_none(const TuneRow& row) const {
    const TuneKey& key = row.key;
    return fmt::format(
        "the database has it {} on {} ({}) with {} by braid {}, this is {} ({}) with {} and braid "
        "{}",
        key.measure, key.device, key.arch, key.toolchain, row.braid,
        wanted_.gpu.empty() ? model_ : std::string_view(wanted_.gpu), wanted_.target.arch(),
        toolchain_.empty() ? "no NVRTC" : toolchain_, tuner_version());
  }

  /// Describes the measurement, and if it was not at the symbols' largest values, that it is used
  /// anyway.
  static std::string measure_of(const TuneRow& row, const Graph& body) {
    std::string text = fmt::format("{} on {}", row.key.measure, row.key.device);
    if (row.key.symbols.empty()) return text;
    text += fmt::format(" at {}", row.key.symbols);
    if (row.key.symbols == symbols_text(max_bindings(body.symbols()))) return text;
    return text + fmt::format(" for {}", ranges_text(body.symbols()));
  }

  static std::string gain(const TuneRow& best, const std::vector<const TuneRow*>& rows,
                          const Config& by_default, const Graph& body) {
    std::string settings;
    for (const auto& [name, value] : best.config) {
      settings += fmt::format("{}{} {}", settings.empty() ? "" : ", ", name, value);
    }
    std::string text =
        fmt::format("{}: {:.1f} us {}", settings, *best.trial.ns / 1e3, measure_of(best, body));
    for (const TuneRow* row : rows) {
      if (row->config != by_default || row->config == best.config) continue;
      text += fmt::format(", {:.1f} by default", *row->trial.ns / 1e3);
    }
    return text;
  }

  TuneDatabase database_;
  TunedFor wanted_;
  std::string_view model_;
  std::string toolchain_;
};

}  // namespace

FindTuned find_tuned(const std::string& path, const TunedFor& wanted) {
  const auto finder = std::make_shared<const Finder>(path, wanted);
  return [finder](const Graph& body) { return (*finder)(body); };
}

}  // namespace braid
