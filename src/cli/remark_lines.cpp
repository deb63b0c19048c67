#include "cli/remark_lines.h"

#include <fmt/format.h>

#include <map>
#include <string_view>
#include <tuple>

#include "cli/common.h"

namespace braid::cli {
namespace {

/// The pieces of a reason: text, and between them the names that stand in single quotes.
struct Pieces {
  std::vector<std::string> text, names;
};

Pieces split_names(std::string_view reason) {
  Pieces result;
  for (;;) {
    const std::size_t open = reason.find('\'');
    const std::size_t close = open == reason.npos ? open : reason.find('\'', open + 1);
    if (close == reason.npos) break;
    result.text.emplace_back(reason.substr(0, open));
    result.names.emplace_back(reason.substr(open + 1, close - open - 1));
    reason.remove_prefix(close + 1);
  }
  result.text.emplace_back(reason);
  return result;
}

/// The reason of a line, while it is not known which of its names are the same in all remarks.
struct Shared {
  Pieces reason;
  std::vector<bool> varies;  ///< of each name
};

std::string text_of(const Shared& shared) {
  std::string text(shared.reason.text[0]);
  for (std::size_t i = 0; i < shared.varies.size(); ++i) {
    text += fmt::format("'{}'{}{}", shared.reason.names[i], shared.varies[i] ? "..." : "",
                        shared.reason.text[i + 1]);
  }
  return one_line(text);
}

}  // namespace

std::vector<RemarkLine> remark_lines(const std::vector<Remark>& remarks) {
  std::vector<RemarkLine> lines;
  std::vector<Shared> shared;
  std::map<std::tuple<std::string_view, bool, std::vector<std::string>>, std::size_t> known;
  for (const Remark& remark : remarks) {
    Pieces reason = split_names(remark.reason.text());
    const auto [entry, is_new] =
        known.try_emplace({remark.pass, remark.applied, reason.text}, lines.size());
    const std::size_t at = entry->second;
    if (is_new) {
      lines.push_back({&remark, {}, {}});
      const std::vector<bool> varies(reason.names.size(), false);
      shared.push_back({std::move(reason), varies});
    } else {
      for (std::size_t i = 0; i < reason.names.size(); ++i) {
        if (reason.names[i] != shared[at].reason.names[i]) shared[at].varies[i] = true;
      }
    }
    lines[at].nodes.push_back(one_line(remark.node));
  }
  for (std::size_t i = 0; i < lines.size(); ++i) lines[i].reason = text_of(shared[i]);
  return lines;
}

}  // namespace braid::cli
