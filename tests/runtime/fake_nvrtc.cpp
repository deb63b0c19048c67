// A stand-in for NVRTC that compiles nothing and is of the major version that its file's name ends
// in, ".12" or ".13".
#include <dlfcn.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>

extern "C" {

int nvrtcVersion(int* major, int* minor) {
  Dl_info info{};
  dladdr(reinterpret_cast<const void*>(&nvrtcVersion), &info);
  *major = std::atoi(std::strrchr(info.dli_fname, '.') + 1);
  *minor = 4;
  return 0;
}
int nvrtcCreateProgram(void**, const char*, const char*, int, const char* const*,
                       const char* const*) {
  return 1;
}
int nvrtcDestroyProgram(void**) { return 1; }
int nvrtcCompileProgram(void*, int, const char* const*) { return 1; }
int nvrtcGetPTXSize(void*, std::size_t*) { return 1; }
int nvrtcGetPTX(void*, char*) { return 1; }
int nvrtcGetCUBINSize(void*, std::size_t*) { return 1; }
int nvrtcGetCUBIN(void*, char*) { return 1; }
int nvrtcGetProgramLogSize(void*, std::size_t*) { return 1; }
int nvrtcGetProgramLog(void*, char*) { return 1; }
const char* nvrtcGetErrorString(int) { return "stand-in"; }

}  // extern "C"
