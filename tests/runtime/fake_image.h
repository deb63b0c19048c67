#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

namespace braid::fake {

/// A kernel that a PTX text declares.
struct Entry {
  std::vector<std::size_t> parameters;  ///< bytes of each
  int static_shared = 0;                ///< bytes
};

/// What a driver looks at before it loads code.
struct Image {
  enum class Kind { kPtx, kCubin, kOther };
  Kind kind = Kind::kOther;
  int version = 0;     ///< of PTX, 90 for 9.0; of a cubin the major one of its CUDA, 12 or 13
  int sm = 0;          ///< what it was made for: 90
  bool exact = false;  ///< of an architecture's own instructions: sm_90a
  std::map<std::string, Entry> entries;  ///< of PTX
};

/// Reads what cuModuleLoadDataEx is given. Text that is neither is kOther: the stand-in lets tests
/// load anything.
[[nodiscard]] Image read_image(const void* data);

/// What a driver of CUDA `driver` (13000) answers on a GPU of `capability` (90): a CUresult.
[[nodiscard]] int check_image(const Image& image, int driver, int capability);

/// Bytes of shared memory that a block may ask for after opting in (CUDA C++ Programming Guide,
/// technical specifications per compute capability).
[[nodiscard]] int max_shared_opt_in(int capability);

}  // namespace braid::fake
