#pragma once

#include <filesystem>
#include <vector>

namespace braid {

/// The folders named `nvidia` in which wheels put CUDA's libraries, of the Python environments that
/// can be meant: the active one ($VIRTUAL_ENV, $CONDA_PREFIX), the one that the set-up step made in
/// the build tree that this library lies in, the user's and the system's. Only those that exist.
[[nodiscard]] std::vector<std::filesystem::path> cuda_wheels();

/// Where a CUDA toolkit may lie: $BRAID_CUDA_HOME, $CUDA_HOME, and the usual place.
[[nodiscard]] std::vector<std::filesystem::path> cuda_toolkits();

/// The Python environment beside the build tree whose libraries lie in this folder; empty where
/// that is no build tree. Where libraries are installed, anybody may own the folder beside the
/// prefix.
[[nodiscard]] std::filesystem::path build_environment(const std::filesystem::path& libraries);

}  // namespace braid
