#pragma once

#include <filesystem>
#include <vector>

namespace braid {

/// The existing folders named `nvidia`, where wheels put CUDA's libraries, of these Python
/// environments: the one with this library in its package braid, the active one ($VIRTUAL_ENV,
/// $CONDA_PREFIX), the one that the set-up step made in this library's build tree, the user's and
/// the system's.
[[nodiscard]] std::vector<std::filesystem::path> cuda_wheels();

/// Possible CUDA toolkits: $BRAID_CUDA_HOME, $CUDA_HOME, and the usual place.
[[nodiscard]] std::vector<std::filesystem::path> cuda_toolkits();

/// The Python environment of the build tree whose libraries are in this folder; empty if it is no
/// build tree. An installed library has none: anybody may own the folder beside its prefix.
[[nodiscard]] std::filesystem::path build_environment(const std::filesystem::path& libraries);

/// site-packages, where the folder is site-packages/braid/lib as a wheel makes it; else empty.
[[nodiscard]] std::filesystem::path packages_around(const std::filesystem::path& libraries);

}  // namespace braid
