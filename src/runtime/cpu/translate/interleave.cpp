// Written in pieces of one register of the widest hosts, two to two: of longer vectors LLVM makes
// shuffles of many inputs, which cost three instructions where two stages of these cost two. A
// piece has 32 elements at most, so that there is one for each value.

#include "runtime/cpu/translate/interleave.h"

#include <algorithm>
#include <numeric>

namespace braid::cpu {
namespace {

using llvm::Value;
using Pieces = std::vector<Value*>;

constexpr unsigned kPieceBits = 512;

unsigned elements(const Value* vector) {
  return llvm::cast<llvm::FixedVectorType>(vector->getType())->getNumElements();
}

Pieces split(llvm::IRBuilderBase& b, Value* vector) {
  const unsigned count = elements(vector);
  const unsigned width = std::min(32U, kPieceBits / vector->getType()->getScalarSizeInBits());
  Pieces pieces;
  for (unsigned at = 0; at < count; at += width) {
    std::vector<int> order(width);
    std::iota(order.begin(), order.end(), static_cast<int>(at));
    pieces.push_back(count == width ? vector : b.CreateShuffleVector(vector, order));
  }
  return pieces;
}

/// Every second element of both, from `first` on.
Value* every_second(llvm::IRBuilderBase& b, Value* low, Value* high, int first) {
  std::vector<int> order(elements(low));
  for (std::size_t e = 0; e < order.size(); ++e) order[e] = static_cast<int>(2 * e) + first;
  return b.CreateShuffleVector(low, high, order);
}

/// Elements of both in turns, from element `first` of each on.
Value* in_turns(llvm::IRBuilderBase& b, Value* even, Value* odd, int first) {
  const auto width = static_cast<int>(elements(even));
  std::vector<int> order;
  for (int e = first; e < first + width / 2; ++e) {
    order.push_back(e);
    order.push_back(e + width);
  }
  return b.CreateShuffleVector(even, odd, order);
}

/// With four word values, the first stage works within quarters of a register, which hosts do twice
/// as fast as across them: by unpacking words before, or pairs of words after.
constexpr int kQuarter = 4;

bool unpacks(const Value* piece, std::size_t n) {
  return n == 4 && elements(piece) == 16 && piece->getType()->getScalarSizeInBits() == 32;
}

/// The order of 16 elements, by their quarter and their place in it.
template <class F>
std::vector<int> by_quarters(F&& element) {
  std::vector<int> order;
  for (int e = 0; e < 16; ++e) order.push_back(element(e / kQuarter, e % kQuarter));
  return order;
}

/// The words 2 * `high` and the next of each quarter of both, in turns.
Value* unpack_words(llvm::IRBuilderBase& b, Value* even, Value* odd, int high) {
  return b.CreateShuffleVector(even, odd, by_quarters([&](int quarter, int place) {
                                 return place % 2 * 16 + quarter * kQuarter + 2 * high + place / 2;
                               }));
}

/// Words 2 * `high` and the next of each quarter of one, then those of the other.
Value* unpack_pairs(llvm::IRBuilderBase& b, Value* low, Value* high_pairs, int high) {
  return b.CreateShuffleVector(low, high_pairs, by_quarters([&](int quarter, int place) {
                                 return place / 2 * 16 + quarter * kQuarter + 2 * high + place % 2;
                               }));
}

/// Each piece has four lanes, of which each quarter has the values.
std::vector<Pieces> take_four_apart(llvm::IRBuilderBase& b, const Pieces& pieces) {
  std::vector<Pieces> parts(4);
  for (std::size_t p = 0; p < pieces.size(); p += 4) {
    for (int k = 0; k < 4; ++k) {
      Value* first = unpack_words(b, pieces[p], pieces[p + 1], k / 2);
      Value* second = unpack_words(b, pieces[p + 2], pieces[p + 3], k / 2);
      // Lanes 4 * quarter + place: a piece is a quarter of the result.
      parts[k].push_back(b.CreateShuffleVector(
          first, second, by_quarters([&](int quarter, int place) {
            return quarter / 2 * 16 + place * kQuarter + 2 * (k % 2) + quarter % 2;
          })));
    }
  }
  return parts;
}

/// The inverse.
Pieces put_four_together(llvm::IRBuilderBase& b, const std::vector<Pieces>& parts) {
  Pieces all;
  for (std::size_t p = 0; p < parts[0].size(); ++p) {
    for (int half = 0; half < 2; ++half) {
      const auto pairs = [&](Value* even, Value* odd) {
        return b.CreateShuffleVector(even, odd, by_quarters([&](int quarter, int place) {
                                       return place % 2 * 16 + (2 * half + place / 2) * kQuarter +
                                              quarter;
                                     }));
      };
      Value* first = pairs(parts[0][p], parts[1][p]);
      Value* second = pairs(parts[2][p], parts[3][p]);
      for (int high = 0; high < 2; ++high) all.push_back(unpack_pairs(b, first, second, high));
    }
  }
  return all;
}

std::vector<Pieces> take_apart(llvm::IRBuilderBase& b, const Pieces& pieces, unsigned n) {
  if (n == 1) return {pieces};
  if (unpacks(pieces[0], n)) return take_four_apart(b, pieces);
  std::vector<Pieces> halves[2];
  for (int odd = 0; odd < 2; ++odd) {
    Pieces half;
    for (std::size_t p = 0; p < pieces.size(); p += 2) {
      half.push_back(every_second(b, pieces[p], pieces[p + 1], odd));
    }
    halves[odd] = take_apart(b, half, n / 2);
  }
  std::vector<Pieces> parts;
  for (unsigned k = 0; k < n; ++k) parts.push_back(std::move(halves[k % 2][k / 2]));
  return parts;
}

}  // namespace

Value* join(llvm::IRBuilderBase& b, Pieces pieces) {
  while (pieces.size() > 1) {
    std::vector<int> order(2 * static_cast<std::size_t>(elements(pieces[0])));
    std::iota(order.begin(), order.end(), 0);
    Pieces longer;
    for (std::size_t p = 0; p < pieces.size(); p += 2) {
      longer.push_back(b.CreateShuffleVector(pieces[p], pieces[p + 1], order));
    }
    pieces = std::move(longer);
  }
  return pieces[0];
}

Value* interleave(llvm::IRBuilderBase& b, std::span<Value* const> values) {
  std::vector<Pieces> parts;
  for (Value* value : values) parts.push_back(split(b, value));
  while (parts.size() > 1) {
    if (unpacks(parts[0][0], parts.size())) {
      parts = {put_four_together(b, parts)};
      break;
    }
    const std::size_t half = parts.size() / 2;
    std::vector<Pieces> pairs(half);
    for (std::size_t k = 0; k < half; ++k) {
      const int middle = static_cast<int>(elements(parts[k][0]) / 2);
      for (std::size_t p = 0; p < parts[k].size(); ++p) {
        pairs[k].push_back(in_turns(b, parts[k][p], parts[k + half][p], 0));
        pairs[k].push_back(in_turns(b, parts[k][p], parts[k + half][p], middle));
      }
    }
    parts = std::move(pairs);
  }
  return join(b, std::move(parts[0]));
}

std::vector<Value*> deinterleave(llvm::IRBuilderBase& b, Value* all, unsigned n) {
  if (n == 1) return {all};
  std::vector<Value*> values;
  for (Pieces& part : take_apart(b, split(b, all), n)) values.push_back(join(b, std::move(part)));
  return values;
}

}  // namespace braid::cpu
