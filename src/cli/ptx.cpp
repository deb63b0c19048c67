#include <fmt/format.h>

#include <array>
#include <charconv>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <random>

#include "braid/error.h"
#include "braid/executable.h"
#include "cli/commands.h"
#include "cli/common.h"
#include "cli/count_report.h"
#include "cli/kernel_report.h"
#include "cli/safetensors.h"
#include "ir/text.h"
#include "ir/text_file.h"
#include "runtime/compile/compiler.h"

// braid ptx: any kernel, PTX or CUDA, on the cpu device.

namespace braid::cli {

namespace {

/// One argument of the kernel: a scalar's bytes, or a buffer and its address.
struct Argument {
  std::string name;
  std::uint64_t bits = 0;
  std::unique_ptr<Memory> memory;  ///< null for a scalar
  DType dtype = DType::kF32;       ///< of a scalar
  HostTensor tensor;               ///< what the buffer holds at first; its type
  bool filled = true;              ///< else nobody wrote it
};

template <class T>
bool parse_number(std::string_view text, T* value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *value);
  return error == std::errc() && end == text.data() + text.size();
}

template <class T>
T number(std::string_view text, std::string_view place) {
  T value{};
  if (!parse_number(text, &value)) {
    throw_invalid(std::string(place), fmt::format("found {}; expected a number", quote(text)));
  }
  return value;
}

std::string_view next_part(std::string_view& text, char separator) {
  const std::string_view part = text.substr(0, text.find(separator));
  text.remove_prefix(std::min(text.size(), part.size() + 1));
  return part;
}

Dim3 extent(std::string_view text, std::string_view option) {
  std::array<std::uint32_t, 3> values{1, 1, 1};
  std::string_view rest = text;
  for (std::size_t i = 0;; ++i) {
    const bool last = rest.find(',') == rest.npos;
    if (i == values.size() || !parse_number(next_part(rest, ','), &values[i])) {
      throw_invalid(std::string(option),
                    fmt::format("found {}; expected X, X,Y or X,Y,Z", quote(text)));
    }
    if (last) return {values[0], values[1], values[2]};
  }
}

DType dtype_of(std::string_view name, const std::string& place) {
  const auto dtype = parse_dtype(name);
  if (!dtype) throw_invalid(place, fmt::format("unknown dtype {}", quote(name)));
  return *dtype;
}

HostTensor random_tensor(DType dtype, std::int64_t elements, std::mt19937_64& random) {
  std::normal_distribution<double> normal;
  std::vector<double> values(static_cast<std::size_t>(elements));
  for (double& value : values) {
    value = is_float(dtype) ? normal(random) : static_cast<double>(random() % 8);
  }
  return HostTensor::from_doubles(dtype, {elements}, values);
}

std::uint64_t integer_bits(DType dtype, std::string_view text, const std::string& place) {
  const bool is_signed = dtype == DType::kI32 || dtype == DType::kI64;
  const std::size_t unused = 64 - 8 * dtype_size(dtype);
  const std::int64_t most = dtype == DType::kBool ? 1
                            : is_signed           ? INT64_MAX >> unused
                                                  : static_cast<std::int64_t>(UINT64_MAX >> unused);
  const std::int64_t least = is_signed ? INT64_MIN >> unused : 0;
  const auto value = number<std::int64_t>(text, place);
  if (value < least || value > most) {
    throw_invalid(place, fmt::format("{} is out of range; expected {} to {}", value, least, most));
  }
  return static_cast<std::uint64_t>(value);
}

/// A buffer that nobody wrote holds NaNs (or -1), the same in every run. Not by way of a stream:
/// the checks would take the bytes for written. An address of the cpu device is one of this
/// process.
void poison(const Argument& argument) {
  std::memset(reinterpret_cast<void*>(argument.bits), 0xff, argument.memory->size());
}

/// Reads one SPEC and, for a buffer, allocates it.
Argument make_argument(std::size_t index, const std::string& spec, Device& device,
                       std::mt19937_64& random) {
  Argument argument;
  argument.name = fmt::format("arg{}", index);
  const std::string place = "--arg " + quote(spec);
  std::string_view rest = spec;
  const std::string_view kind = next_part(rest, ':');
  constexpr std::string_view kExpected =
      "expected i32:7, f32:0.5, zero:f32:1024, random:f32:1024, poison:f32:1024 or "
      "FILE.safetensors:TENSOR";
  if (kind == "zero" || kind == "random" || kind == "poison") {
    const DType dtype = dtype_of(next_part(rest, ':'), place);
    const auto elements = number<std::int64_t>(rest, place);
    constexpr std::int64_t kMost = std::int64_t{1} << 32;
    if (elements < 1 || elements > kMost) {
      throw_invalid(place, fmt::format("{} elements; expected 1 to 2^32", elements));
    }
    if (kind == "random") {
      argument.tensor = random_tensor(dtype, elements, random);
    } else {
      const std::size_t bytes = static_cast<std::size_t>(elements) * dtype_size(dtype);
      argument.tensor = {dtype, {elements}, std::vector<std::byte>(bytes)};
      argument.filled = kind == "zero";
    }
  } else if (kind.ends_with(".safetensors")) {
    argument.tensor = SafetensorsFile(std::string(kind)).read(rest);
  } else if (const auto dtype = parse_dtype(kind); dtype && !rest.empty()) {
    argument.dtype = *dtype;
    if (is_float(*dtype)) {
      const HostTensor value = HostTensor::from_doubles(*dtype, {1}, {number<double>(rest, place)});
      std::memcpy(&argument.bits, value.data.data(), value.data.size());
    } else {
      argument.bits = integer_bits(*dtype, rest, place);
    }
    return argument;
  } else {
    throw_invalid(place, std::string(kExpected));
  }
  argument.memory = device.allocate(0, argument.tensor.data.size());
  argument.bits = argument.memory->address();
  const MemoryPart part{argument.bits, argument.tensor.data.size(), argument.name};
  device.name_parts(argument.bits, {&part, 1});
  return argument;
}

/// The launch copies as many bytes as the parameter has: they must be the argument's.
void check_arguments(const std::vector<Argument>& arguments, const Function& function,
                     const std::string& entry) {
  const std::vector<std::size_t> sizes = function.parameter_sizes();
  for (std::size_t i = 0; i < std::min(arguments.size(), sizes.size()); ++i) {
    const bool buffer = arguments[i].memory != nullptr;
    const std::size_t bytes = buffer ? sizeof(std::uint64_t) : dtype_size(arguments[i].dtype);
    if (bytes == sizes[i]) continue;
    throw_invalid(fmt::format("--arg {}", i),
                  fmt::format("{} has {} byte{}; parameter {} of '{}' has {}",
                              buffer ? "the address of a buffer" : dtype_name(arguments[i].dtype),
                              bytes, bytes == 1 ? "" : "s", i, one_line(entry), sizes[i]));
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
  if (options.file.ends_with(".cu")) {
    text = compile_file(text, options.file, Target::parse(target));
  }
  const std::filesystem::path path(input_name(options.file));
  return {options.entry, std::move(text), {}, one_line(path.filename().string())};
}

}  // namespace

int ptx(const PtxOptions& options) {
  const Dim3 grid = extent(options.grid, "--grid");
  const Dim3 block = extent(options.block, "--block");
  WorldOptions world_options;
  world_options.device = DeviceKind::kCpu;
  world_options.threads = options.checks.threads;
  world_options.cache_dir = options.cache_dir;
  world_options.sanitize = parse_checks(options.checks.sanitize);
  const DeviceModel* const count_on = count_device(options.checks.count);
  world_options.count = count_on != nullptr;
  world_options.schedule = parse_schedule(options.checks.schedule);
  World world = World::open(world_options);
  Device& device = world.device();
  const KernelImage image = load_kernel(options, device.target());
  const std::string file = input_name(options.file);
  const auto module = in_file(file, [&] { return device.load(0, image); });
  Function& function =
      in_file(file, [&]() -> Function& { return module->function(options.entry); });
  reserve_shared(function, options.shared);
  const auto stream = device.create_stream(0);
  std::mt19937_64 random(options.checks.seed);
  std::vector<Argument> arguments;
  for (const std::string& spec : options.args) {
    arguments.push_back(make_argument(arguments.size(), spec, device, random));
  }
  check_arguments(arguments, function, options.entry);
  std::vector<const void*> pointers;
  pointers.reserve(arguments.size());
  for (const Argument& argument : arguments) pointers.push_back(&argument.bits);

  if (!options.output.empty()) prepare_output_directory(options.output, "--out");

  const auto start = std::chrono::steady_clock::now();
  std::string error;
  std::uint64_t interleavings = 0;
  do {
    for (const Argument& argument : arguments) {
      if (argument.memory == nullptr) continue;
      if (!argument.filled) {
        poison(argument);
        continue;
      }
      stream->copy_from_host(argument.bits, argument.tensor.data.data(),
                             argument.tensor.data.size());
    }
    // Code for this shape of blocks may be made now.
    in_file(file, [&] { stream->launch(function, {grid, block, options.shared}, pointers); });
    try {
      stream->synchronize();
    } catch (const Error& failure) {
      error = with_file(file, failure.what());
    }
    ++interleavings;
  } while (error.empty() && device.findings().empty() && device.next_interleaving());
  const std::chrono::duration<double, std::milli> elapsed =
      std::chrono::steady_clock::now() - start;
  const std::vector<Finding> findings = device.findings();
  if (error.empty() && !options.output.empty()) {
    std::map<std::string, HostTensor, std::less<>> buffers;
    for (Argument& argument : arguments) {
      if (argument.memory == nullptr) continue;
      stream->copy_to_host(argument.tensor.data.data(), argument.bits, argument.tensor.data.size());
      stream->synchronize();
      buffers.emplace(argument.name, std::move(argument.tensor));
    }
    write_safetensors(std::filesystem::path(options.output) / "buffers.safetensors", buffers);
  }
  if (options.json) {
    Json document = Json::object({{"entry", options.entry},
                                  {"run_ms", elapsed.count()},
                                  {"ok", error.empty() && findings.empty()}});
    if (!error.empty()) document.set("error", error);
    if (options.checks.schedule == "all") document.set("interleavings", interleavings);
    if (count_on != nullptr) document.set("counts", counts_json(device.counts(), *count_on));
    if (!options.checks.sanitize.empty()) document.set("findings", findings_json(findings));
    fmt::print("{}\n", document.indented());
  } else {
    fmt::print("  {}: {:.1f} ms\n", one_line(options.entry), elapsed.count());
    if (options.checks.schedule == "all") fmt::print("  {} interleavings\n", interleavings);
    if (count_on != nullptr) fmt::print("\n{}\n", count_tables(device.counts(), *count_on));
    if (!options.checks.sanitize.empty()) print_findings(findings);
  }
  // A finding says it better.
  if (!error.empty() && findings.empty()) throw Error(ErrorCode::kInternal, file, error);
  return error.empty() && findings.empty() ? kGood : kFailed;
}

}  // namespace braid::cli
