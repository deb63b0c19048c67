#pragma once

#include <cstdint>
#include <string>

#include "braid/dim3.h"
#include "braid/export.h"

namespace braid {

/// Something a kernel did that its results cannot be trusted after: what the cpu device reports
/// when it runs with checks on.
struct BRAID_API Finding {
  std::string kind;      ///< "bounds", "misaligned", "uninitialized", "race", "barrier", "mask",
                         ///< "deadlock", "exited" (another block of its cluster), "proxy" (no
                         ///< fence to the async proxy), "unfinished" (copies at the end of a
                         ///< block); or "note", see Device::notes()
  std::string message;   ///< what happened, without the place
  int rank = 0;          ///< whose kernel it was
  std::string kernel;    ///< its entry
  Dim3 block{0, 0, 0};   ///< of the grid
  Dim3 thread{0, 0, 0};  ///< of the block: its first lane that did it
  std::uint32_t ptx_line = 0;   ///< from 1
  std::uint32_t cuda_line = 0;  ///< 0 when the code carries no line information
  std::string inlined;          ///< of code inlined there, its own place: "mine.cuh:5 in outer"
  std::string ptx_file;         ///< of ptx_line: KERNEL.ptx unless KernelImage::file has a name
  std::string cuda_file;        ///< of cuda_line: KERNEL.cu likewise
  std::string buffer;           ///< the memory's name; empty when there is none
  std::int64_t offset = 0;      ///< bytes into it
  std::string other;            ///< the other side of a race, with its place

  /// One line for people.
  [[nodiscard]] std::string text() const;
};

}  // namespace braid
