#include "braid/tune.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "braid/error.h"
#include "codegen/device_model.h"
#include "codegen/graph_target.h"
#include "ir/buckets.h"
#include "ir/fail.h"
#include "ir/mapped.h"
#include "lowering/passes.h"
#include "lowering/plan/cost.h"
#include "lowering/plan_choice.h"
#include "runtime/compile/compile_program.h"
#include "runtime/compile/compiler.h"
#include "runtime/device_loader.h"
#include "runtime/serve_requests.h"
#include "runtime/tune/lone_kernel.h"
#include "runtime/tune/search.h"
#include "runtime/tune/stopwatch.h"
#include "runtime/tune/trial.h"
#include "runtime/tune/tune_database.h"
#include "runtime/worker_processes.h"

namespace braid {
namespace {

using Clock = std::chrono::steady_clock;

/// One in so many candidates is tried; all of them where there are few.
constexpr std::size_t kPart = 10;
constexpr std::size_t kFew = 16;
constexpr std::size_t kMostWorkers = 8;

std::size_t worker_count() {
  return std::clamp<std::size_t>(std::thread::hardware_concurrency(), 1, kMostWorkers);
}

std::size_t trials_of(std::size_t candidates, bool exhaustive) {
  if (exhaustive || candidates <= kFew) return candidates;
  return (candidates + kPart - 1) / kPart;
}

Bindings all_bindings(const Graph& graph, const Bindings& given) {
  Bindings bindings = max_bindings(graph.symbols());
  for (const auto& [name, value] : given) bindings.insert_or_assign(name, value);
  return check_bindings(graph, bindings);
}

/// A kernel of the program with its candidates, whatever launches it.
struct Subject {
  std::shared_ptr<const Graph> body;
  Bindings bindings;  ///< values of its symbols
  TuneKey key;
  SearchSpace space;
  std::vector<Trial> trials;  ///< for each candidate; without time and note if not tried
  TunedKernel result;
};

/// Whether the kernel waits for other ranks of a group.
bool waits_for_peers(const Graph& kernel) { return !kernel.groups().empty(); }

/// A candidate being tried.
struct Attempt {
  std::size_t candidate;
  std::string text;  ///< hash of the kernel's text
  TrialRequest request;
};

class Tuner {
 public:
  Tuner(const Graph& graph, const TuneOptions& options)
      : graph_(graph),
        options_(options),
        bindings_(all_bindings(graph, options.bindings)),
        end_(Clock::now() + seconds(options.budget_s)) {
    const std::shared_ptr<Device> device = open_device(options.device, {.world = 1, .threads = 1});
    const bool measured = device->kind() == "cuda";
    target_ = measured ? choose_target(graph, options.target, Target::parse(device->target()))
                       : choose_target(graph, options.target);
    if (measured) stopwatch_.emplace(device);
    result_.target = target_.str();
    result_.device = measured ? device->name() : std::string(device_model(target_).name);
    result_.toolchain = "NVRTC " + nvrtc_version();
    result_.measured = measured;
    context_.target = target_;
    context_.config = options.passes;
    context_.choices = &choices_;
    program_ = lower(graph, context_);
    result_.batch_invariant = program_.batch_invariant;
    database_.emplace(options.database, true);
    if (!options.worker.empty()) workers_.emplace(options.worker, worker_count());
  }

  TuneResult run() {
    result_.complete = true;
    choose();
    collect(program_);
    tune_all();
    for (Subject& subject : subjects_) result_.kernels.push_back(std::move(subject.result));
    return std::move(result_);
  }

 private:
  /// Tries the options of each choice that a pass leaves to trials, and lowers the program again
  /// with the fastest.
  void choose() {
    const std::map<std::string, PlanChoice> known = choices_by_kernels();
    for (const auto& [kernels, choice] : known) {
      for (const PlanOption& option : choice.options) {
        for (const auto& kernel : option.kernels) {
          if (tried(*kernel) != nullptr) continue;
          subjects_.push_back(default_subject(kernel, choice.op + ", " + option.name));
        }
      }
    }
    if (subjects_.empty()) return;
    tune_all();
    context_.tuned = [&](const Graph& kernel) -> Tuned {
      const TunedKernel* known_kernel = tried(kernel);
      if (known_kernel == nullptr || !known_kernel->by_default) return {};
      const TunedConfig& by_default = *known_kernel->by_default;
      return {by_default.config, {}, by_default.ns, result_.device};
    };
    program_ = lower(graph_, context_);
    context_.tuned = {};
    for (const auto& [kernels, choice] : choices_by_kernels()) {
      if (known.contains(kernels)) result_.choices.push_back(result_of(choice));
    }
    subjects_.clear();
  }

  /// The choices of the last lowering that can be tried here, each once.
  std::map<std::string, PlanChoice> choices_by_kernels() {
    std::map<std::string, PlanChoice> choices;
    for (PlanChoice& choice : std::exchange(choices_, {})) {
      std::string kernels;
      bool can_be_tried = true;
      for (const PlanOption& option : choice.options) {
        for (const auto& kernel : option.kernels) {
          kernels += kernel_key(*kernel);
          can_be_tried = can_be_tried && !(result_.measured && waits_for_peers(*kernel));
        }
      }
      if (can_be_tried) choices.emplace(std::move(kernels), std::move(choice));
    }
    return choices;
  }

  /// The trials of a kernel; null if there were none.
  [[nodiscard]] const TunedKernel* tried(const Graph& kernel) const {
    const std::string key = kernel_key(kernel);
    for (const Subject& subject : subjects_) {
      if (subject.key.kernel == key) return &subject.result;
    }
    return nullptr;
  }

  /// A subject that is tried only in its default configuration.
  [[nodiscard]] Subject default_subject(const std::shared_ptr<const Graph>& body,
                                        std::string name) const {
    const KernelSpec spec{body, default_config(*body, target_)};
    Subject subject = subject_of({spec, requirements(spec, target_)}, kernel_key(*body));
    subject.result.name = std::move(name);
    subject.space.candidates = {spec.config};
    subject.space.rough_ns = {1};
    subject.result.candidates = 1;
    subject.trials.resize(1);
    return subject;
  }

  /// The result of the trials for one choice.
  [[nodiscard]] TunedChoice result_of(const PlanChoice& choice) const {
    TunedChoice result{.op = choice.op,
                       .operands = choice.operands,
                       .ranks = choice.ranks,
                       .by_model = choice.options[choice.by_model].name,
                       .taken = choice.options[choice.taken].name};
    for (const PlanOption& option : choice.options) {
      TunedOption& time = result.options.emplace_back(TunedOption{.name = option.name, .ns = 0});
      double longest = 0;
      for (const auto& body : option.kernels) {
        const TunedKernel& kernel = *tried(*body);
        result.symbols = kernel.symbols;
        result.serves = kernel.serves;
        result.tried += kernel.tried;
        result.from_database += kernel.from_database;
        if (!kernel.by_default) time.ns.reset();
        if (!time.ns) continue;
        *time.ns += kernel.by_default->ns;
        if (kernel.by_default->ns > std::exchange(longest, kernel.by_default->ns)) {
          time.limiter = kernel.by_default->limiter;
        }
      }
    }
    return result;
  }

  void tune_all() {
    for (at_ = 0; at_ < subjects_.size(); ++at_) {
      Subject& subject = subjects_[at_];
      tell(subject.result.name);
      if (subject.result.remark.empty()) tune_one(subject);
    }
    tell("");
  }

  static Clock::duration seconds(double count) {
    constexpr double kLongest = 1e8;
    return std::chrono::duration_cast<Clock::duration>(
        std::chrono::duration<double>(std::min(count, kLongest)));
  }

  void tell(std::string_view what) const {
    if (options_.progress) options_.progress(at_, subjects_.size(), what);
  }

  void collect(const Program& program) {
    std::map<std::string, std::size_t> known;
    std::vector<std::size_t> of_kernel;
    for (const ProgramKernel& kernel : program.kernels) {
      std::string key = kernel_key(*kernel.spec.body);
      const auto [found, is_new] = known.try_emplace(key, subjects_.size());
      of_kernel.push_back(found->second);
      if (is_new) subjects_.push_back(subject_of(kernel, std::move(key)));
    }
    for (const Step& step : program.steps) {
      if (step.kernel < 0) continue;
      ++subjects_[of_kernel[step.kernel]].result.launches;
    }
  }

  [[nodiscard]] Subject subject_of(const ProgramKernel& kernel, std::string key) const {
    Subject subject;
    subject.body = kernel.spec.body;
    // A kernel of another bucket runs at the largest values of its own range.
    subject.bindings = max_bindings(subject.body->symbols());
    for (auto& [name, value] : subject.bindings) {
      const std::int64_t wanted = bindings_.at(name);
      if (holds(subject.body->symbols().at(name), wanted)) value = wanted;
    }
    const std::string symbols = symbols_text(subject.bindings);
    subject.key = {std::move(key),
                   symbols,
                   target_.arch(),
                   result_.device,
                   result_.measured ? kMeasured : kEstimated,
                   result_.toolchain};
    TunedKernel& result = subject.result;
    result.name = emit(kernel.spec, target_).entry;
    result.template_name = kernel.needs.template_name;
    result.ops = op_names(kernel.spec);
    result.symbols = symbols;
    result.serves = ranges_text(subject.body->symbols());
    if (result_.measured && !kernel.needs.comm_group.empty()) {
      result.remark = "it waits for peers, and here is one GPU: left to the defaults";
      return subject;
    }
    subject.space.candidates = candidates(*subject.body, target_);
    for (const Config& config : subject.space.candidates) {
      subject.space.rough_ns.push_back(
          kernel_ns({subject.body, config}, subject.bindings, device_model(target_)));
    }
    result.candidates = subject.space.candidates.size();
    subject.trials.resize(result.candidates);
    return subject;
  }

  /// The deadline of the current part: the remaining budget is divided by the work left.
  [[nodiscard]] Clock::time_point deadline() const {
    double all = 0;
    for (std::size_t i = at_; i < subjects_.size(); ++i) {
      all += static_cast<double>(trials_of(subjects_[i].result.candidates, options_.exhaustive));
    }
    const auto own =
        static_cast<double>(trials_of(subjects_[at_].result.candidates, options_.exhaustive));
    const auto now = Clock::now();
    const auto left = std::max(Clock::duration(0), end_ - now);
    return now + std::chrono::duration_cast<Clock::duration>(left * (own / all));
  }

  void tune_one(Subject& subject) {
    const std::size_t most = trials_of(subject.result.candidates, options_.exhaustive);
    const Clock::time_point until = deadline();
    (void)search(
        subject.space, most, workers_ ? workers_->count() : 1,
        [&](std::span<const std::size_t> which) { return attempt(subject, which); },
        [&] { return Clock::now() >= until; });
    TunedKernel& result = subject.result;
    if (result.tried < most) result_.complete = false;
    const auto tuned = [&](std::size_t candidate) -> std::optional<TunedConfig> {
      const Trial& trial = subject.trials[candidate];
      if (!trial.ns) return {};
      return TunedConfig{subject.space.candidates[candidate], *trial.ns, trial.note};
    };
    result.by_default = tuned(0);
    const auto best = quickest(mapped(subject.trials, &Trial::ns));
    if (best) result.best = tuned(*best);
  }

  std::vector<std::optional<double>> attempt(Subject& subject, std::span<const std::size_t> which) {
    std::vector<Attempt> attempts;
    for (const std::size_t candidate : which) prepare(subject, candidate, attempts);
    std::vector<std::size_t> to_time;
    try_all(attempts, [&](std::size_t i, const Trial& trial) {
      if (stopwatch_ && trial.note.empty()) {
        to_time.push_back(i);
      } else {
        keep(subject, attempts[i], trial);
      }
    });
    if (!to_time.empty()) time(subject, attempts, to_time);
    return mapped(which, [&](std::size_t candidate) { return subject.trials[candidate].ns; });
  }

  /// Adds the candidate to the attempts, unless its result is known or there is no such kernel.
  void prepare(Subject& subject, std::size_t candidate, std::vector<Attempt>& attempts) {
    const KernelSpec spec{subject.body, subject.space.candidates[candidate]};
    Attempt attempt{
        candidate,
        {},
        {lone_kernel(spec), target_, subject.bindings, options_.cache_dir, !stopwatch_}};
    try {
      attempt.text = hash_of(std::string_view(emit(spec, target_).text));
    } catch (const Error& error) {
      keep(subject, attempt, {{}, error.what()});
      return;
    }
    const auto known =
        options_.resume ? database_->find(subject.key, spec.config, attempt.text) : std::nullopt;
    if (!known) {
      attempts.push_back(std::move(attempt));
      return;
    }
    ++subject.result.from_database;
    note(subject, candidate, *known);
  }

  /// If a worker ends before it answers, its candidate counts as one that does not run.
  void try_all(const std::vector<Attempt>& attempts,
               const std::function<void(std::size_t attempt, const Trial& trial)>& done) {
    if (!workers_) {
      for (std::size_t i = 0; i < attempts.size(); ++i)
        done(i, braid::attempt(attempts[i].request));
      return;
    }
    std::vector<std::string> requests;
    for (const Attempt& attempt : attempts) requests.push_back(for_worker(attempt.request));
    workers_->run(requests, {.begins = {}, .ends = [&](std::size_t i, const WorkerAnswer& answer) {
                               done(i, answer.bytes
                                           ? trial_from(*answer.bytes)
                                           : Trial{{}, "the process that tried it " + answer.end});
                             }});
  }

  /// Times the attempts together with the default, whose first time is the reference.
  void time(Subject& subject, const std::vector<Attempt>& attempts,
            std::span<const std::size_t> which) {
    std::vector<TrialRequest> requests;
    const std::optional<double> base = subject.trials[0].ns;
    if (base) {
      requests.push_back(attempts[which[0]].request);
      requests[0].graph = lone_kernel({subject.body, subject.space.candidates[0]});
    }
    for (const std::size_t i : which) requests.push_back(attempts[i].request);
    std::vector<Trial> trials = stopwatch_->time(requests);
    double scale = 1;
    if (base) {
      if (trials[0].ns) scale = *base / *trials[0].ns;
      trials.erase(trials.begin());
    }
    for (std::size_t i = 0; i < which.size(); ++i) {
      if (trials[i].ns) *trials[i].ns *= scale;
      keep(subject, attempts[which[i]], trials[i]);
    }
  }

  void keep(Subject& subject, const Attempt& attempt, const Trial& trial) {
    database_->put({subject.key, subject.space.candidates[attempt.candidate], attempt.text, trial});
    note(subject, attempt.candidate, trial);
  }

  void note(Subject& subject, std::size_t candidate, const Trial& trial) {
    subject.trials[candidate] = trial;
    TunedKernel& result = subject.result;
    ++result.tried;
    if (!trial.ns) ++result.failed;
    std::optional<double> best;
    for (const Trial& other : subject.trials) {
      if (other.ns && (!best || *other.ns < *best)) best = other.ns;
    }
    const std::size_t most = trials_of(result.candidates, options_.exhaustive);
    std::string text = fmt::format("{}: {}/{}", result.name, result.tried, most);
    if (best) text += fmt::format(", best {:.1f} us", *best / 1e3);
    tell(text);
  }

  const Graph& graph_;
  const TuneOptions& options_;
  PassContext context_;
  std::vector<PlanChoice> choices_;  ///< from the last lowering
  Program program_;
  Bindings bindings_;  ///< values of the graph's symbols
  Target target_;
  std::optional<WorkerProcesses> workers_;  ///< unset: this process does all trials
  std::optional<Stopwatch> stopwatch_;      ///< unset: times are estimated
  std::optional<TuneDatabase> database_;
  std::vector<Subject> subjects_;
  std::size_t at_ = 0;
  Clock::time_point end_;
  TuneResult result_;
};

}  // namespace

TuneResult tune(const Graph& graph, const TuneOptions& options) {
  if (options.database.empty()) throw_invalid("database", "found no name; expected a file");
  if (!(options.budget_s > 0)) {
    throw_invalid("budget", "{} s; expected more than 0", options.budget_s);
  }
  return Tuner(graph, options).run();
}

}  // namespace braid
