#include "braid/chat_format.h"

#include <string_view>

#include "ir/fail.h"

namespace braid {
namespace {

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kSpaces = " \t\n\r\f\v";
  const std::size_t begin = text.find_first_not_of(kSpaces);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpaces) + 1 - begin);
}

}  // namespace

std::string ChatFormat::prompt(const std::vector<ChatMessage>& messages) const {
  std::string result, last;
  const auto go_to = [&](const std::string& role) {
    const auto text = between.find({last, role});
    if (text == between.end()) {
      const auto place = [](const std::string& name, const char* edge) {
        return name.empty() ? edge : "a message of " + name;
      };
      throw_invalid("messages", "the model's chat template has no way from {} to {}",
                    place(last, "the begin"), place(role, "the answer"));
    }
    result += text->second;
    last = role;
  };
  for (const ChatMessage& message : messages) {
    go_to(message.role);
    result += trim ? trimmed(message.content) : message.content;
  }
  go_to("");
  return result;
}

}  // namespace braid
