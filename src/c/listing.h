#pragma once

#include <cstddef>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "braid/braid.h"
#include "braid/executable.h"

namespace braid::c {

/// The inputs, outputs and symbols of an executable in C form; built once, then read by all.
class Listing {
 public:
  explicit Listing(const Executable& executable);
  Listing(Listing&&) = default;

  // Null past the last.
  [[nodiscard]] const braid_tensor_info* input(std::size_t index) const;
  [[nodiscard]] const braid_tensor_info* output(std::size_t index) const;
  [[nodiscard]] const braid_symbol_info* symbol(std::size_t index) const;
  /// How many dims an input or output has. Throws kInvalidArgument where there is none.
  [[nodiscard]] int dims_of(std::string_view name) const;

 private:
  struct Tensor {
    std::string name, dtype;
    std::vector<std::string> dims;
    std::vector<const char*> shape;  ///< these
    braid_tensor_info info{};
  };
  struct Named {
    std::string name;
    braid_symbol_info info{};
  };
  static void add(std::deque<Tensor>& to, const std::string& name, const TensorType& type,
                  std::int32_t kind, bool per_rank);

  // Their elements do not move: the infos point into them.
  std::deque<Tensor> inputs_, outputs_;
  std::deque<Named> symbols_;
};

}  // namespace braid::c
