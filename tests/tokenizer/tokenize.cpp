// The tokens of texts, for tokenizers_test.py: tokenize FOLDER < TEXTS, one as JSON on each line.
// Prints a line for each: the tokens, and their texts as arrays of bytes.

#include <exception>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>

#include "tokenizer/tokenizer.h"

int main(int argc, char** argv) {
  try {
    if (argc != 2) throw std::runtime_error("expected a folder");
    const text::Tokenizer tokenizer(argv[1]);
    if (!tokenizer.missing().empty()) throw std::runtime_error(tokenizer.missing());
    for (std::string line; std::getline(std::cin, line);) {
      const auto tokens = tokenizer.encode(nlohmann::json::parse(line).get<std::string>(), true);
      nlohmann::json bytes = nlohmann::json::array();
      for (const auto token : tokens) {
        const std::string text = tokenizer.text(token);
        bytes.push_back(std::vector<int>());
        for (const char byte : text) bytes.back().push_back(static_cast<unsigned char>(byte));
      }
      std::cout << nlohmann::json{tokens, bytes}.dump() << "\n";
    }
    return 0;
  } catch (const std::exception& error) {
    std::cerr << "tokenize: " << error.what() << "\n";
    return 1;
  }
}
