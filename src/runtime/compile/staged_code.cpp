#include "runtime/compile/staged_code.h"

#include <algorithm>
#include <utility>

namespace braid {

StagedCode::StagedCode(const Program& program, ProgramCode code)
    : program_(program),
      variants_(variants_of(program)),
      code_(std::move(code)),
      states_(variants_.size(), State::kThere) {}

StagedCode::StagedCode(const Program& program, ProgramCode code, Tools tools)
    : program_(program),
      variants_(variants_of(program)),
      tools_(std::move(tools)),
      code_(std::move(code)),
      there_(code_.sources.size()),
      states_(variants_.size(), State::kPending),
      failures_(variants_.size()) {
  code_.compiled.resize(code_.sources.size());
  if (Progress progress = std::move(tools_.compile.progress)) {
    tools_.compile.progress = [this, progress = std::move(progress)](
                                  std::size_t done, std::size_t total, std::string_view what) {
      try {
        progress(done, total, what);
      } catch (...) {
        ended_ = std::current_exception();
        throw;
      }
    };
  }
  compile(0, {});
  states_[0] = State::kThere;
  thread_ = std::jthread([this](const std::stop_token& stop) { work(stop); });
}

void StagedCode::compile(std::size_t variant, const std::stop_token& stop) {
  std::vector<std::size_t> missing;
  const IndexRange& kernels = variants_[variant].kernels;
  for (int k = kernels.first; k < kernels.end; ++k) {
    const std::size_t source = code_.code_of[k];
    const bool known = there_[source] || std::ranges::find(missing, source) != missing.end();
    if (!known) missing.push_back(source);
  }
  const std::unique_ptr<WorkerProcesses> workers = tools_.make_workers();
  CompileTools tools = tools_.compile;
  tools.workers = workers.get();
  tools.stop = stop;
  std::size_t done = done_;  // kernels of a failed variant do not count
  compile_sources(code_, missing, program_.target, tools, done);
  done_ = done;
  for (const std::size_t source : missing) {
    there_[source] = true;
    tools_.told(code_.compiled[source]);
  }
}

std::optional<std::size_t> StagedCode::next() const {
  const std::lock_guard lock(mutex_);
  if (wanted_ && states_[*wanted_] == State::kPending) return wanted_;
  const auto pending = std::ranges::find(states_, State::kPending);
  if (pending == states_.end()) return {};
  return static_cast<std::size_t>(pending - states_.begin());
}

void StagedCode::work(const std::stop_token& stop) {
  while (const std::optional<std::size_t> variant = next()) {
    if (stop.stop_requested()) return;
    std::exception_ptr failure = ended_;
    try {
      if (!failure) compile(*variant, stop);
    } catch (...) {
      failure = std::current_exception();
    }
    const std::lock_guard lock(mutex_);
    states_[*variant] = failure ? State::kFailed : State::kThere;
    failures_[*variant] = failure;
    changed_.notify_all();
  }
  if (done_ < code_.sources.size() || !tools_.compile.progress) return;
  try {
    tools_.compile.progress(done_, done_, "");
  } catch (...) {  // NOLINT(bugprone-empty-catch)
    // There is nothing left to end.
  }
}

bool StagedCode::is_done(std::size_t variant) const {
  const std::lock_guard lock(mutex_);
  return states_[variant] != State::kPending;
}

const ProgramCode& StagedCode::wait(std::size_t variant) const {
  std::unique_lock lock(mutex_);
  if (states_[variant] == State::kPending) wanted_ = variant;
  changed_.wait(lock, [&] { return states_[variant] != State::kPending; });
  if (states_[variant] == State::kFailed) std::rethrow_exception(failures_[variant]);
  return code_;
}

const ProgramCode& StagedCode::all() const {
  for (std::size_t v = 0; v < variants_.size(); ++v) (void)wait(v);
  return code_;
}

}  // namespace braid
