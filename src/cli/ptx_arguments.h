#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "braid/device.h"
#include "runtime/element_type.h"
#include "runtime/tensor_map.h"

namespace braid::cli {

/// The arguments of a kernel, in order, as --arg says them.
class PtxArguments {
 public:
  /// The forms of an argument, for --help and errors.
  static constexpr std::string_view kForms =
      "i32:7, f32:0.5, zero:f32:1024, random:f32:1024, poison:f32:1024 (nobody wrote it), "
      "FILE.safetensors:TENSOR, arg0+64 (into the buffer of the first one), bytes:0a0b0c0d, "
      "struct:i32:7,f32:0.5,zero:f32:4 (aligned as in C), table:zero:f32:4,zero:f32:8 (a buffer "
      "with their addresses), tensormap:BUFFER:64x32:256:16x8:64B (dims, strides in bytes, box and "
      "swizzle) or im2col:BUFFER:64x9x9x2::64x32:-1x-1:1x1:128B (a map of columns)";

  /// Throws kInvalidArgument with what was expected.
  PtxArguments(const std::vector<std::string>& specs, std::uint64_t seed);

  /// Throws kInvalidArgument unless these are what the parameters take; `ptx`: what errors call
  /// the PTX.
  void check(const Function& function, const std::string& entry, const std::string& ptx);
  /// Gives the buffers their memory.
  void allocate(Device& device);
  /// Writes what the buffers hold before a launch.
  void fill(Stream& stream) const;
  [[nodiscard]] std::vector<const void*> pointers() const;
  /// Writes what the buffers hold now, but for tables of addresses, which no two runs share.
  void write(Stream& stream, const std::string& directory);

 private:
  struct Place {
    std::size_t buffer = 0;  ///< its number
    std::size_t offset = 0;  ///< bytes
  };
  /// A map of what begins there.
  struct Map {
    Place place;
    TensorMap map;
  };
  struct Buffer {
    std::string name;
    const ElementType* type = nullptr;  ///< null for a table
    std::vector<std::int64_t> shape;
    std::vector<std::byte> data;
    bool filled = true;            ///< else nobody wrote it
    std::vector<Place> addressed;  ///< by a table
    std::optional<Map> map;        ///< that it holds
    std::unique_ptr<Memory> memory;
  };
  struct Value {
    enum class Kind : std::uint8_t { kFloat, kInteger, kAddress, kBytes, kMap };
    std::string what;  ///< "i32", "a struct"
    Kind kind = Kind::kBytes;
    std::vector<std::byte> bytes;
    std::size_t align = 1;
    std::vector<std::pair<std::size_t, Place>> addresses;  ///< offsets and what they hold
    std::vector<std::pair<std::size_t, Map>> maps;         ///< the same
    std::vector<Value> fields;                             ///< of a struct
  };

  Value parse(std::string_view spec, const std::string& name);
  [[nodiscard]] Value parse_bytes(std::string_view digits) const;
  Value parse_struct(std::string_view fields, const std::string& name);
  [[nodiscard]] static Value struct_of(std::vector<Value> fields, std::size_t map_align);
  Value parse_table(std::string_view entries, const std::string& name);
  Value parse_tensor_map(std::string_view spec, const std::string& name, bool columns);
  Place parse_mapped(std::string_view& spec, const std::string& name);
  [[nodiscard]] Place parse_place(std::string_view text) const;
  [[nodiscard]] TensorMap parse_boxes(std::string_view spec, const Buffer& buffer,
                                      bool columns) const;
  std::size_t parse_columns(std::string_view& spec, TensorMap& map) const;
  template <class T, std::size_t kMost>
  std::size_t parse_extents(std::string_view text, std::string_view what,
                            std::array<T, kMost>& out) const;
  [[nodiscard]] Value parse_scalar(const ElementType& type, std::string_view text) const;
  [[nodiscard]] static Value address_of(const Place& place, std::string what);
  Value add_buffer(Buffer buffer);
  Value make_buffer(std::string_view kind, std::string_view rest, const std::string& name);
  void reserve(std::uint64_t bytes);
  [[nodiscard]] std::vector<std::byte> random_data(const ElementType& type, std::size_t elements);

  std::mt19937_64 random_;
  std::string place_;        ///< of the spec that is read
  std::uint64_t total_ = 0;  ///< bytes of all buffers
  std::vector<Buffer> buffers_;
  std::vector<Value> values_;
};

}  // namespace braid::cli
