#include "codegen/target.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "codegen/device_model.h"
#include "codegen/units.h"
#include "ir/fail.h"
#include "ir/split_list.h"

namespace braid {
namespace {

/// Switches off what the list does not name.
void restrict_to(Target& target, std::string_view list) {
  const std::span<const Unit* const> units = all_units();
  unsigned named = 0;
  for (const std::string_view name : split_list(list)) {
    const auto unit = std::ranges::find(units, name, &Unit::name);
    if (unit == units.end()) {
      throw_invalid("units", "found '{:.32}', expected some of {}", name, unit_names());
    }
    named |= bit_of(**unit);
  }
  unsigned off = 0;
  for (const Unit* unit : units) {
    if (unit->optional && (named & bit_of(*unit)) == 0 && has(target, *unit)) off |= bit_of(*unit);
  }
  target.off |= off;
}

Target parse_architecture(std::string_view text) {
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
      target.sm < kLeastSm || target.sm > 129) {
    throw_invalid(
        "target",
        "found '{:.32}', expected sm_80 or later, such as sm_80, sm_90a, sm_100a, or one of {}",
        text, device_names());
  }
  return target;
}

}  // namespace

Target Target::parse(std::string_view text) {
  const std::size_t colon = text.find(':');
  Target target = parse_architecture(text.substr(0, colon));
  if (colon != std::string_view::npos) restrict_to(target, text.substr(colon + 1));
  return target;
}

Target Target::parse(std::string_view text, const Target& otherwise) {
  if (!text.empty() && !text.starts_with(':')) return parse(text);
  Target target = otherwise;
  if (!text.empty()) restrict_to(target, text.substr(1));
  return target;
}

std::string Target::str() const {
  std::string text = device.empty() ? arch() : std::string(device);
  if (off == 0) return text;
  char mark = ':';
  for (const Unit* unit : all_units()) {
    if (!has(*this, *unit)) continue;
    text += mark;
    text += unit->name;
    mark = ',';
  }
  return text;
}

std::string Target::arch() const { return fmt::format("sm_{}{}", sm, arch_specific ? "a" : ""); }

int Target::max_shared_bytes() const { return (device_model(*this).shared_kib - 1) << 10; }

}  // namespace braid
