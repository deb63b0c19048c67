#include "runtime/exec/world.h"

#include <fmt/format.h>

#include <cstdio>

#include "braid/error.h"
#include "codegen/target.h"
#include "runtime/checks.h"
#include "runtime/compile/compiler.h"
#include "runtime/device_loader.h"
#include "runtime/dynamic_library.h"

namespace braid {
namespace {

constexpr double kCudaTimeoutSeconds = 30;
constexpr double kCpuTimeoutSeconds = 120;
constexpr double kLongestTimeoutSeconds = 1e9;

void warn(const WorldOptions& options, const std::string& what) {
  if (options.warning) {
    options.warning(what);
  } else {
    std::fputs(("braid: warning: " + what + "\n").c_str(), stderr);
  }
}

}  // namespace

World World::open(const WorldOptions& options) {
  if (!(options.timeout_s >= 0 && options.timeout_s <= kLongestTimeoutSeconds)) {
    throw_invalid("timeout", fmt::format("{} s; expected 0 to 1e9 s", options.timeout_s));
  }
  const bool names_target = !options.target.empty();
  const Target target = names_target ? Target::parse(options.target) : Target();
  auto impl = std::make_unique<Impl>();
  if (options.use_cache) {
    impl->cache = std::make_unique<DiskCache>(options.cache_dir.empty()
                                                  ? DiskCache::default_directory()
                                                  : std::filesystem::path(options.cache_dir));
    if (std::string problem = impl->cache->problem(); !problem.empty()) warn(options, problem);
  }
  const unsigned checks = parse_checks(options.sanitize);
  if (checks == kCheckNothing && !options.schedule.empty()) {
    throw_invalid("schedule", "only a checked run can be scheduled; expected sanitize as well");
  }
  impl->line_info = checks != kCheckNothing || options.count;
  impl->device =
      open_device(options.device, {.world = options.world,
                                   .threads = options.threads,
                                   .cache = impl->cache.get(),
                                   .checks = checks,
                                   .count = options.count,
                                   .schedule = parse_schedule(options.schedule),
                                   .catch_faults = environment("BRAID_CPU_FAULTS") != "0"});
  if (impl->device->kind() == "cuda") check_nvrtc_fits_driver();
  impl->target = options.target;
  if (names_target && impl->device->kind() == "cuda" &&
      target.sm > Target::parse(impl->device->target()).sm) {
    throw_invalid("target", fmt::format("{}; expected {} or earlier, which the GPU is",
                                        target.str(), impl->device->target()));
  }
  const int least = impl->device->kind() == "cuda" ? impl->device->ranks_per_device() : 1;
  impl->ranks_per_device = options.ranks_per_device == 0 ? least : options.ranks_per_device;
  if (impl->ranks_per_device < least) {
    throw_invalid("ranks_per_device",
                  fmt::format("{}; expected {} or more", options.ranks_per_device, least));
  }
  double timeout_s = options.timeout_s;
  if (timeout_s == 0) {
    timeout_s = impl->device->kind() == "cuda" ? kCudaTimeoutSeconds : kCpuTimeoutSeconds;
  }
  impl->timeout_ns = static_cast<std::uint64_t>(timeout_s * 1e9);
  impl->progress = options.progress;
  return World(std::move(impl));
}

World::World(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
World::World(World&&) noexcept = default;
World& World::operator=(World&&) noexcept = default;
World::~World() = default;

int World::size() const { return impl_->device->world(); }
Device& World::device() const { return *impl_->device; }

}  // namespace braid
