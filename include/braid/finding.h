#pragma once

#include <cstdint>
#include <string>

#include "braid/dim3.h"
#include "braid/export.h"

namespace braid {

/// An error of a kernel, found by the cpu device's sanitizer. The run's results are not to be
/// trusted.
struct BRAID_API Finding {
  std::string kind;      ///< "bounds", "misaligned", "uninitialized", "race", "barrier", "mask",
                         ///< "deadlock", "exited" (another block of its cluster has exited),
                         ///< "proxy" (no fence to the async proxy), "unfinished" (copies still in
                         ///< flight at the end of a block); or "note", see Inspector::notes()
  std::string message;   ///< what happened, without the place
  int rank = 0;          ///< rank that ran the kernel
  std::string kernel;    ///< the kernel's entry
  Dim3 block{0, 0, 0};   ///< index in the grid
  Dim3 thread{0, 0, 0};  ///< index in the block of the first lane at fault
  std::uint32_t ptx_line = 0;   ///< from 1
  std::uint32_t cuda_line = 0;  ///< 0 when the code has no line information
  std::string inlined;          ///< where that code was inlined from: "mine.cuh:5 in outer"
  std::string ptx_file;         ///< file of ptx_line: KernelImage::file, or KERNEL.ptx where that
                                ///< is empty
  std::string cuda_file;        ///< file of cuda_line, perhaps a header: as its PTX names it, or
                                ///< likewise, or KERNEL.cu; empty where that is 0
  std::string buffer;           ///< name of the memory; empty when unknown
  std::int64_t offset = 0;      ///< bytes from the buffer's start
  std::string other;            ///< the other access of a race, with its place

  /// The finding on one line, for people.
  [[nodiscard]] std::string text() const;
};

}  // namespace braid
