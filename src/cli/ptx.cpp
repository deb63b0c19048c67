#include <fmt/format.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "braid/executable.h"
#include "cli/commands.h"
#include "cli/common.h"
#include "cli/count_report.h"
#include "cli/kernel_report.h"
#include "cli/ptx_arguments.h"
#include "ir/fail.h"
#include "ir/text.h"
#include "ir/text_file.h"
#include "runtime/compile/compiler.h"
#include "runtime/compile/ptxas.h"
#include "runtime/inspection_json.h"

// braid ptx: any kernel, PTX or CUDA, on the cpu device.

namespace braid::cli {

namespace {

Dim3 extent(std::string_view text, std::string_view option) {
  std::array<std::uint32_t, 3> values{1, 1, 1};
  std::string_view rest = text;
  for (std::size_t i = 0;; ++i) {
    const bool last = rest.find(',') == rest.npos;
    if (i == values.size() || !parse_number(next_part(rest, ','), &values[i])) {
      throw_invalid(std::string(option), "found {}; expected X, X,Y or X,Y,Z", quote(text));
    }
    if (last) return {values[0], values[1], values[2]};
  }
}

/// The device is what it is: asking for more is bad input here.
void reserve_shared(Function& function, std::uint32_t bytes) {
  try {
    function.set_max_dynamic_shared(bytes);
  } catch (const Error& error) {
    throw_invalid("--shared", error.what());
  }
}

/// Runs `work`, which reads PTX; an error at "ptx:LINE" becomes one of FILE.
template <class Work>
decltype(auto) in_file(const std::string& file, Work work) {
  try {
    return work();
  } catch (const Error& error) {
    const std::string& where = error.where();
    if (where != "ptx" && !where.starts_with("ptx:")) throw;
    const std::string message(message_of(error));
    const std::string line = where.substr(3);  // ":12", or nothing
    if (!file.ends_with(".cu")) throw Error(error.code(), file + line, message);
    throw Error(error.code(), file, fmt::format("in its PTX{}: {}", line, message));
  }
}

/// The device calls what it reads "ptx", also within a message.
std::string with_file(const std::string& file, std::string message) {
  constexpr std::string_view kPlace = "(ptx:";
  const std::size_t at = message.find(kPlace);
  if (at == message.npos) return message;
  const std::string name = file.ends_with(".cu") ? "in its PTX" : file;
  return message.replace(at + 1, kPlace.size() - 2, name);
}

KernelImage load_kernel(const PtxOptions& options, std::string_view target) {
  constexpr std::size_t kMaxBytes = std::size_t{64} << 20U;  // many times the largest kernel
  std::string text = read_text(options.file, kMaxBytes);
  if (options.file.ends_with(".cu")) text = compile_file(text, options.file, Target::parse(target));
  const std::filesystem::path path(input_name(options.file));
  return {options.entry, std::move(text), {}, one_line(path.filename().string())};
}

/// Errors of a cluster are bad input here, whoever finds them.
Dim3 cluster_of(const PtxOptions& options, Dim3 grid) {
  const Dim3 cluster = extent(options.cluster, "--cluster");
  for (const auto& [blocks, whole, axis] :
       {std::tuple(cluster.x, grid.x, 'x'), std::tuple(cluster.y, grid.y, 'y'),
        std::tuple(cluster.z, grid.z, 'z')}) {
    if (blocks != 0 && whole % blocks == 0) continue;
    throw_invalid("--cluster", "found {} along {}; expected a divisor of the grid's {}", blocks,
                  axis, whole);
  }
  return cluster;
}

/// Ends the process where the work of a scope takes longer: no other way stops a kernel. A timer of
/// the process, since a thread might be what a kernel waits for: none could be told that it never
/// ends.
class TimeLimit {
 public:
  /// Seconds, 0 for none.
  TimeLimit(double seconds, std::string_view where) {
    if (seconds == 0) return;
    text() =
        fmt::format("braid: error: {}: did not end within the {} s of --timeout\n", where, seconds);
    std::signal(SIGALRM, [](int) {
      static_cast<void>(::write(STDERR_FILENO, text().data(), text().size()));
      ::_exit(kFailed);
    });
    set(std::llround(seconds * 1e6));
  }
  ~TimeLimit() { set(0); }
  TimeLimit(const TimeLimit&) = delete;
  TimeLimit& operator=(const TimeLimit&) = delete;

 private:
  static void set(std::int64_t microseconds) {
    constexpr std::int64_t kSecond = 1'000'000;
    const itimerval timer{.it_interval = {},
                          .it_value = {microseconds / kSecond, microseconds % kSecond}};
    ::setitimer(ITIMER_REAL, &timer, nullptr);
  }
  /// What the handler says.
  static std::string& text() {
    static std::string all;
    return all;
  }
};

WorldOptions world_options(const PtxOptions& options, bool count) {
  WorldOptions result;
  result.device = DeviceKind::kCpu;
  result.threads = options.checks.threads;
  result.cache_dir = options.cache_dir;
  result.sanitize = parse_checks(options.checks.sanitize);
  result.count = count;
  result.count_sample = options.checks.sample;
  result.schedule = parse_schedule(options.checks.schedule);
  result.matrix_sums = parse_matrix_sums(options.checks.matrix_sums);
  if (result.schedule.kind == Schedule::Kind::kAll && (options.repeat > 1 || options.time)) {
    throw_invalid(options.time ? "--time" : "--repeat",
                  "--schedule all says how often the kernel runs");
  }
  return result;
}

/// The result of the launches.
struct PtxReport {
  std::string error;
  std::vector<Finding> findings, notes;
  std::uint64_t interleavings = 0;
  double run_ms = 0;
  std::vector<double> launch_ms;  ///< of those that are timed, in rising order
  std::vector<KernelCounts> counts;

  [[nodiscard]] bool good() const { return error.empty() && findings.empty(); }
  [[nodiscard]] double median_ms() const {
    const std::size_t half = launch_ms.size() / 2;
    return launch_ms.size() % 2 != 0 ? launch_ms[half]
                                     : (launch_ms[half - 1] + launch_ms[half]) / 2;
  }
};

/// Launches until a launch fails, and as often as was asked for.
PtxReport run(const PtxOptions& options, const LaunchConfig& config, Device& device, Stream& stream,
              Function& function, const PtxArguments& arguments) {
  const std::string file = input_name(options.file);
  const std::vector<const void*> pointers = arguments.pointers();
  Inspector* const inspector = device.inspector();
  PtxReport report;
  const auto launch = [&] {
    arguments.fill(stream);
    stream.synchronize();
    const auto start = std::chrono::steady_clock::now();
    // Code for this shape of blocks may be made now.
    in_file(file, [&] {
      try {
        stream.launch(function, config, pointers);
      } catch (const Error& error) {
        if (config.attributes == LaunchAttributes{}) throw;
        throw Error(ErrorCode::kInvalidArgument, "--cluster", error.what());
      }
    });
    try {
      stream.synchronize();
    } catch (const Error& failure) {
      report.error = with_file(file, failure.what());
    }
    return milliseconds_since(start);
  };
  const auto start = std::chrono::steady_clock::now();
  if (options.time) launch();
  bool more = report.error.empty();
  for (std::uint32_t launches = 1; more; ++launches) {
    report.launch_ms.push_back(launch());
    ++report.interleavings;
    if (inspector != nullptr) report.findings = inspector->findings();
    more = report.error.empty() &&
           (launches < options.repeat ||
            (inspector != nullptr && report.findings.empty() && inspector->next_interleaving()));
  }
  report.run_ms = milliseconds_since(start);
  if (inspector != nullptr) {
    report.findings = inspector->findings();
    report.notes = inspector->notes();
  }
  std::ranges::sort(report.launch_ms);
  return report;
}

void print_json(const PtxOptions& options, const PtxReport& report, const DeviceModel* count_on) {
  Json document =
      Json::object({{"entry", options.entry}, {"run_ms", report.run_ms}, {"ok", report.good()}});
  if (!report.error.empty()) document.set("error", report.error);
  if (options.time && !report.launch_ms.empty()) {
    document.set("launches", report.launch_ms.size());
    document.set("launch_ms_min", report.launch_ms.front());
    document.set("launch_ms_median", report.median_ms());
  }
  if (options.checks.schedule == "all") document.set("interleavings", report.interleavings);
  if (options.checks.sample) document.set("sampled", true);
  if (count_on != nullptr) document.set("counts", counts_json(report.counts, *count_on));
  if (!options.checks.sanitize.empty()) {
    document.set("findings", findings_json(report.findings));
    document.set("notes", findings_json(report.notes));
  }
  fmt::print("{}\n", document.indented());
}

void print_text(const PtxOptions& options, const PtxReport& report, const DeviceModel* count_on) {
  fmt::print("  {}: {:.1f} ms\n", one_line(options.entry), report.run_ms);
  if (options.time && !report.launch_ms.empty()) {
    fmt::print("  a launch: {:.3f} ms at least, {:.3f} ms in the median of {}\n",
               report.launch_ms.front(), report.median_ms(), report.launch_ms.size());
  }
  if (options.checks.schedule == "all") fmt::print("  {} interleavings\n", report.interleavings);
  fmt::print("{}", sample_line(report.counts, options.checks.sample));
  if (count_on != nullptr) fmt::print("\n{}\n", count_tables(report.counts, *count_on));
  if (!options.checks.sanitize.empty()) print_findings(report.findings, report.notes);
}

/// The counts, with the registers that the kernel has on the device of --count.
std::vector<KernelCounts> counted(const PtxOptions& options, Device& device,
                                  const KernelImage& image) {
  const DeviceModel* const on = count_device(options.checks.count);
  if (on == nullptr) return {};
  std::vector<KernelCounts> counts = device.inspector()->counts();
  const auto resources = assembled(image.ptx, image.entry, on->sm);
  for (KernelCounts& kernel : counts) {
    if (resources) kernel.registers = static_cast<std::uint32_t>(resources->registers);
  }
  return counts;
}

/// Loads the kernel that the options name, and calls `work` with all that a launch needs.
template <class Work>
auto with_kernel(const PtxOptions& options, Work work) {
  const Dim3 grid = extent(options.grid, "--grid");
  const Dim3 block = extent(options.block, "--block");
  const LaunchConfig config{grid, block, options.shared, {.cluster = cluster_of(options, grid)}};
  const TimeLimit limit(options.timeout_s, input_name(options.file));
  World world = World::open(world_options(options, !options.checks.count.empty()));
  Device& device = world.device();
  // Counts are those of what the device of --count would run.
  const DeviceModel* const on = count_device(options.checks.count);
  std::string target = options.target;
  if (target.empty()) target = on == nullptr || on->name == "cpu" ? device.target() : on->name;
  const KernelImage image = load_kernel(options, target);
  const std::string file = input_name(options.file);
  const auto module = in_file(file, [&] { return device.load(0, image); });
  Function& function =
      in_file(file, [&]() -> Function& { return module->function(options.entry); });
  reserve_shared(function, options.shared);
  PtxArguments arguments(options.args, options.checks.seed);
  arguments.check(function, options.entry, file.ends_with(".cu") ? "in its PTX" : file);
  if (!options.output.empty()) prepare_output_directory(options.output, "--out");
  arguments.allocate(device);

  const auto stream = device.create_stream(0);
  PtxReport report = run(options, config, device, *stream, function, arguments);
  report.counts = counted(options, device, image);
  return work(*stream, arguments, report);
}

/// Refuses options besides --count that make no sense in a comparison.
void check_against(const PtxOptions& options, const std::vector<std::string>& others) {
  const PtxAgainst& b = options.against;
  if (b.file.empty()) {
    for (const auto& [given, name] : {std::pair(!b.entry.empty(), "--against-entry"),
                                      std::pair(!b.grid.empty(), "--against-grid"),
                                      std::pair(!b.block.empty(), "--against-block"),
                                      std::pair(b.shared.has_value(), "--against-shared")}) {
      if (given) throw_invalid(name, "says how to launch --against; expected it as well");
    }
    return;
  }
  if (options.checks.count.empty()) {
    throw_invalid("--against", "compares counts; expected --count as well");
  }
  if (!others.empty()) {
    throw_invalid("--against", "compares counts alone; expected a run without {}", others.front());
  }
}

/// The options for the other kernel: the same launch, except what the options say about it.
PtxOptions other_kernel(const PtxOptions& options) {
  PtxOptions other = options;
  const PtxAgainst& b = options.against;
  other.file = b.file;
  if (!b.entry.empty()) other.entry = b.entry;
  if (!b.grid.empty()) other.grid = b.grid;
  if (!b.block.empty()) other.block = b.block;
  if (b.shared) other.shared = *b.shared;
  return other;
}

KernelCounts count_kernel(const PtxOptions& options) {
  return with_kernel(options, [&](Stream&, PtxArguments&, const PtxReport& report) {
    if (!report.error.empty()) {
      throw Error(ErrorCode::kInternal, input_name(options.file), report.error);
    }
    return report.counts.at(0);
  });
}

int compare(const PtxOptions& options, const DeviceModel& count_on) {
  const KernelCounts a = count_kernel(options);
  const PtxOptions other = other_kernel(options);
  const KernelCounts b = count_kernel(other);
  if (options.json) {
    Json document =
        Json::object({{"counts", counts_json(a, count_on)}, {"against", counts_json(b, count_on)}});
    if (options.checks.sample) document.set("sampled", true);
    fmt::print("{}\n", document.indented());
    return kGood;
  }
  const auto name = [](const PtxOptions& kernel) {
    return one_line(fmt::format("{} of {}", kernel.entry, input_name(kernel.file)));
  };
  fmt::print("{}{}\n", sample_line({a, b}, options.checks.sample),
             comparison_table({name(options), a}, {name(other), b}, count_on));
  return kGood;
}

}  // namespace

int ptx(const PtxOptions& options) {
  std::vector<std::string> others;
  if (!options.checks.sanitize.empty()) others.emplace_back("--sanitize");
  if (!options.output.empty()) others.emplace_back("--out");
  if (options.time) others.emplace_back("--time");
  check_sample(options.checks, others);
  check_against(options, others);
  const DeviceModel* const count_on = count_device(options.checks.count);
  if (!options.against.file.empty()) return compare(options, *count_on);
  return with_kernel(options,
                     [&](Stream& stream, PtxArguments& arguments, const PtxReport& report) {
                       if (report.error.empty() && !options.output.empty())
                         arguments.write(stream, options.output);
                       if (options.json) {
                         print_json(options, report, count_on);
                       } else {
                         print_text(options, report, count_on);
                       }
                       // A finding says it better.
                       if (!report.error.empty() && report.findings.empty()) {
                         throw Error(ErrorCode::kInternal, input_name(options.file), report.error);
                       }
                       return report.good() ? kGood : kFailed;
                     });
}

}  // namespace braid::cli
