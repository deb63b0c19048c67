#include "codegen/target.h"

#include <fmt/format.h>

#include <charconv>

#include "braid/error.h"
#include "codegen/device_model.h"

namespace braid {

Target Target::parse(std::string_view text) {
  if (const DeviceModel* device = find_device_model(text)) {
    // From Hopper on, architecture-specific instructions need the `a` target.
    return {.sm = device->sm, .arch_specific = device->sm >= 90, .device = device->name};
  }
  Target target;
  std::string_view digits = text.starts_with("sm_") ? text.substr(3) : std::string_view{};
  if (digits.ends_with('a')) {
    target.arch_specific = true;
    digits.remove_suffix(1);
  }
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), target.sm);
  if (digits.empty() || error != std::errc{} || end != digits.data() + digits.size() ||
      target.sm < 80 || target.sm > 129) {
    throw_invalid(
        "target",
        fmt::format("found '{:.32}', expected sm_80 or later, such as sm_80, sm_90a, sm_100a, or "
                    "one of {}",
                    text, device_names()));
  }
  return target;
}

std::string Target::str() const { return device.empty() ? arch() : std::string(device); }

std::string Target::arch() const { return fmt::format("sm_{}{}", sm, arch_specific ? "a" : ""); }

int Target::max_shared_bytes() const { return (device_model(*this).shared_kib - 1) << 10; }

}  // namespace braid
