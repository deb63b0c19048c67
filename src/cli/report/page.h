#pragma once

#include <string>
#include <string_view>

#include "ir/json_value.h"

namespace braid::cli {

/// The page without its data, which stands where kDataMark does (page.html).
extern const std::string_view kReportPage;
inline constexpr std::string_view kDataMark = "{{data}}";

/// The page with its data: one file that loads nothing. Whatever text the data holds, the page's
/// markup ends where it should.
[[nodiscard]] std::string report_page(const Json& data);

}  // namespace braid::cli
