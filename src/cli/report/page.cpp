#include "cli/report/page.h"

#include "braid/error.h"

namespace braid::cli {

std::string report_page(const Json& data) {
  const std::size_t mark = kReportPage.find(kDataMark);
  if (mark == kReportPage.npos) throw Error(ErrorCode::kInternal, "report", "its page has no mark");
  std::string page(kReportPage.substr(0, mark));
  // In JSON a '<' stands in strings alone. Without it no text can end the script or begin a
  // comment.
  for (const char letter : data.line()) letter == '<' ? page += "\\u003c" : page += letter;
  return page.append(kReportPage.substr(mark + kDataMark.size()));
}

}  // namespace braid::cli
