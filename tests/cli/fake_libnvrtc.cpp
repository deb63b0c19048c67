// A stand-in for NVRTC of any version (FAKE_NVRTC_VERSION=MAJOR.MINOR): its "PTX" is a comment with
// that version, so that a test sees who compiled what.

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "runtime/compile/nvrtc_api.h"

namespace {

std::string version() {
  const char* given = std::getenv("FAKE_NVRTC_VERSION");
  return given == nullptr ? "0.0" : given;
}
std::string ptx() { return "// by NVRTC " + version() + "\n"; }

}  // namespace

extern "C" {
int nvrtcVersion(int* major, int* minor) {
  return std::sscanf(version().c_str(), "%d.%d", major, minor) == 2 ? 0 : 1;
}
int nvrtcCreateProgram(void** program, const char*, const char*, int, const char* const*,
                       const char* const*) {
  *program = program;
  return 0;
}
int nvrtcDestroyProgram(void** program) {
  *program = nullptr;
  return 0;
}
int nvrtcCompileProgram(void*, int, const char* const*) { return 0; }
int nvrtcGetPTXSize(void*, std::size_t* size) {
  *size = ptx().size() + 1;
  return 0;
}
int nvrtcGetPTX(void*, char* text) {
  std::strcpy(text, ptx().c_str());
  return 0;
}
int nvrtcGetCUBINSize(void*, std::size_t* size) {
  *size = 1;
  return 0;
}
int nvrtcGetCUBIN(void*, char* bytes) {
  *bytes = 0;
  return 0;
}
int nvrtcGetProgramLogSize(void*, std::size_t* size) {
  *size = 1;
  return 0;
}
int nvrtcGetProgramLog(void*, char* text) {
  *text = 0;
  return 0;
}
const char* nvrtcGetErrorString(int) { return "an error"; }
}

// The signatures are those that braid calls.
#define BRAID_CHECK(name, result, parameters) \
  static_assert(std::is_same_v<decltype(&name), decltype(braid::NvrtcApi::name)>);
BRAID_NVRTC_FUNCTIONS(BRAID_CHECK)
#undef BRAID_CHECK
