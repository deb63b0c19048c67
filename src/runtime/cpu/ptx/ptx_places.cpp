// Source places of the code: .loc, .file and the names in .debug_str.

#include <cxxabi.h>
#include <fmt/format.h>

#include <cstdlib>
#include <memory>

#include "runtime/cpu/ptx/ptx_parser.h"

namespace braid::cpu::ptx {
namespace {

/// "outer" for "_Z5outerIfET_PKS0_", which demangles to "float outer<float>(float const*)".
std::string function_name(const std::string& symbol) {
  constexpr std::size_t kLongest = 4096;
  if (symbol.size() > kLongest) return symbol.substr(0, kLongest);
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> whole(
      abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status), &std::free);
  if (status != 0) return symbol;
  const std::string_view text(whole.get());
  std::size_t start = 0;
  int depth = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (depth == 0 && (c == '(' || c == '<')) return std::string(text.substr(start, i - start));
    if (c == '<') ++depth;
    if (c == '>') --depth;
    if (c == ' ' && depth == 0) start = i + 1;
  }
  return std::string(text);
}

}  // namespace

/// The line in the function's file; for a header the line of an earlier .loc that called it, or 0.
std::uint32_t Parser::source_line(const SourcePlace& place) const {
  if (place[0] == source_file_) return static_cast<std::uint32_t>(place[1]);
  const auto known = places_.find(place);
  return known == places_.end() ? 0 : known->second;
}

/// .loc FILE LINE COLUMN [, function_name LABEL, inlined_at FILE LINE COLUMN]. For inlined code the
/// calling line is more informative than the helper's own. A helper of a header that was inlined
/// into another is followed to the function's file, which is that of its first place.
void Parser::location() {
  const std::uint32_t line = take().line;
  const auto take_place = [&] {
    SourcePlace place{};
    for (std::uint64_t& value : place) value = integer();
    return place;
  };
  const SourcePlace place = take_place();
  std::optional<SourcePlace> caller;
  std::string_view function;
  while (peek().kind != TokenKind::kEnd && peek().line == line) {
    const std::string_view word = take().text;
    if (word == "function_name") function = peek().text;
    if (word == "inlined_at") caller = take_place();
  }
  if (source_file_ == 0) source_file_ = caller.value_or(place)[0];
  source_line_ = source_line(place);
  inlined_ = 0;
  if (!caller) return;
  inlined_ = inlined_place({place[0], place[1], function});
  const std::uint32_t of_caller = source_line(*caller);
  if (place[0] != source_file_) places_[place] = source_line_ = of_caller;
  if (of_caller != 0) source_line_ = of_caller;
}

/// The number of a place, starting at 1.
std::uint32_t Parser::inlined_place(const Inlined& place) {
  const auto known = static_cast<std::uint32_t>(inlined_places_.size() + 1);
  return inlined_places_.try_emplace(place, known).first->second;
}

/// .file INDEX "name" [, ...]
void Parser::file() {
  const std::uint32_t line = take().line;
  if (peek().kind == TokenKind::kInteger && peek(1).kind == TokenKind::kString) {
    const std::uint64_t index = take().bits;
    const std::string_view path = take().text;
    files_[index] = path.substr(path.rfind('/') + 1);
  }
  while (peek().kind != TokenKind::kEnd && peek().line == line) take();
}

/// Skips a section, which has no code; keeps the text of labelled strings.
void Parser::skip_section() {
  take();
  const bool strings = peek().text == "debug_str";
  while (peek().kind != TokenKind::kEnd && !is_punct("{")) take();
  std::string* string = nullptr;
  int open = 0;
  do {
    if (peek().kind == TokenKind::kEnd) error("section without an end");
    if (is_punct("{")) ++open;
    if (is_punct("}")) --open;
    const Token& token = take();
    if (strings && token.kind == TokenKind::kIdentifier) string = &strings_[token.text];
    if (string != nullptr && token.kind == TokenKind::kInteger && token.bits != 0) {
      string->push_back(static_cast<char>(token.bits));
    }
  } while (open > 0);
}

/// Sets the module's source names, which stand behind the code.
void Parser::name_sources() {
  const auto file_name = [&](std::uint64_t index) {
    const auto file = files_.find(index);
    return file == files_.end() ? std::string() : std::string(file->second);
  };
  for (const auto& [index, name] : files_) module_.source_files[index] = name;
  module_.inlined.resize(inlined_places_.size());
  for (const auto& [place, number] : inlined_places_) {
    std::string text = fmt::format("{}:{}", file_name(place.file), place.line);
    const auto name = strings_.find(place.function);
    if (name != strings_.end()) text += " in " + function_name(name->second);
    module_.inlined[number - 1] = std::move(text);
  }
}

}  // namespace braid::cpu::ptx
