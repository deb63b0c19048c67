#include "c/listing.h"

#include <cstdint>

#include "braid/error.h"

namespace braid::c {

Listing::Listing(const Executable& executable) {
  for (const GraphInput& input : executable.inputs()) {
    add(inputs_, input.name, input.type, static_cast<std::int32_t>(input.kind), input.per_rank);
  }
  for (const ExecutableOutput& output : executable.outputs()) {
    add(outputs_, output.name, output.type, 0, true);
  }
  for (const auto& [name, symbol] : executable.symbols()) {
    Named& named = symbols_.emplace_back(Named{name});
    named.info = {named.name.c_str(), symbol.min, symbol.max, symbol.multiple_of};
  }
}

void Listing::add(std::deque<Tensor>& to, const std::string& name, const TensorType& type,
                  std::int32_t kind, bool per_rank) {
  Tensor& tensor = to.emplace_back();
  tensor.name = name;
  tensor.dtype = dtype_name(type.dtype);
  for (const Dim& dim : type.shape) tensor.dims.push_back(dim.str());
  for (const std::string& dim : tensor.dims) tensor.shape.push_back(dim.c_str());
  tensor.info = {.name = tensor.name.c_str(),
                 .dtype = tensor.dtype.c_str(),
                 .dims = static_cast<std::int32_t>(tensor.dims.size()),
                 .shape = tensor.shape.data(),
                 .parameter = kind,
                 .per_rank = per_rank ? 1 : 0};
}

const braid_tensor_info* Listing::input(std::size_t index) const {
  return index < inputs_.size() ? &inputs_[index].info : nullptr;
}
const braid_tensor_info* Listing::output(std::size_t index) const {
  return index < outputs_.size() ? &outputs_[index].info : nullptr;
}
const braid_symbol_info* Listing::symbol(std::size_t index) const {
  return index < symbols_.size() ? &symbols_[index].info : nullptr;
}

int Listing::dims_of(std::string_view name) const {
  for (const std::deque<Tensor>* tensors : {&inputs_, &outputs_}) {
    for (const Tensor& tensor : *tensors) {
      if (tensor.name == name) return tensor.info.dims;
    }
  }
  throw_invalid(std::string(name), "is no input or output of the program");
}

}  // namespace braid::c
