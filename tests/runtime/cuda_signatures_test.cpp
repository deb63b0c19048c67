// Our table of the driver's functions against the header that is installed.
#include <gtest/gtest.h>

#include <string_view>

#include "runtime/cuda/cuda_api.h"

#ifdef BRAID_HAS_CUDA_HEADER

namespace braid::cuda {

// Before cuda.h gives its functions other names.
#define BRAID_OURS(name, suffix, parameters)         \
  using Function_##name = decltype(Api::name)::Type; \
  constexpr std::string_view kSymbol_##name = #name suffix;
BRAID_CUDA_FUNCTIONS(BRAID_OURS)
BRAID_CUDA_OPTIONAL_FUNCTIONS(BRAID_OURS)
#undef BRAID_OURS

}  // namespace braid::cuda

#include <cuda.h>

#include "runtime/signature.h"

namespace braid {
namespace {

/// Drivers of CUDA 12 lack the later form of it, which does the same.
constexpr std::string_view kOlder = "cuEventElapsedTime";

#define BRAID_TEXT_OF(name) #name
#define BRAID_TEXT(name) BRAID_TEXT_OF(name)
#define BRAID_COMPARE(name, suffix, parameters)                                                  \
  static_assert(                                                                                 \
      std::is_same_v<Signature<cuda::Function_##name>::type, Signature<decltype(::name)>::type>, \
      #name);                                                                                    \
  static_assert(cuda::kSymbol_##name == BRAID_TEXT(name) || kOlder == #name, #name);
BRAID_CUDA_FUNCTIONS(BRAID_COMPARE)
BRAID_CUDA_OPTIONAL_FUNCTIONS(BRAID_COMPARE)
#undef BRAID_COMPARE

#define BRAID_SAME(ours, theirs) \
  static_assert(static_cast<int>(cuda::ours) == static_cast<int>(theirs), #theirs)
BRAID_SAME(kSuccess, CUDA_SUCCESS);
BRAID_SAME(kInvalidValue, CUDA_ERROR_INVALID_VALUE);
BRAID_SAME(kInvalidImage, CUDA_ERROR_INVALID_IMAGE);
BRAID_SAME(kPeerAccessUnsupported, CUDA_ERROR_PEER_ACCESS_UNSUPPORTED);
BRAID_SAME(kInvalidPtx, CUDA_ERROR_INVALID_PTX);
BRAID_SAME(kJitCompilerNotFound, CUDA_ERROR_JIT_COMPILER_NOT_FOUND);
BRAID_SAME(kUnsupportedPtxVersion, CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
BRAID_SAME(kJitCompilationDisabled, CUDA_ERROR_JIT_COMPILATION_DISABLED);
BRAID_SAME(kNotFound, CUDA_ERROR_NOT_FOUND);
BRAID_SAME(kPeerAccessAlreadyEnabled, CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
BRAID_SAME(kNotPermitted, CUDA_ERROR_NOT_PERMITTED);
BRAID_SAME(kNotSupported, CUDA_ERROR_NOT_SUPPORTED);
BRAID_SAME(kCaptureUnsupported, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
BRAID_SAME(kCaptureWrongThread, CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
BRAID_SAME(kCaptureRelaxed, CU_STREAM_CAPTURE_MODE_RELAXED);
BRAID_SAME(kHostAllocPortable, CU_MEMHOSTALLOC_PORTABLE);
BRAID_SAME(kHostAllocMapped, CU_MEMHOSTALLOC_DEVICEMAP);
BRAID_SAME(kStreamNonBlocking, CU_STREAM_NON_BLOCKING);
BRAID_SAME(kEventDisableTiming, CU_EVENT_DISABLE_TIMING);
BRAID_SAME(kAttributeComputeCapabilityMajor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
BRAID_SAME(kAttributeComputeCapabilityMinor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
BRAID_SAME(kAttributeVirtualMemory, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED);
BRAID_SAME(kAttributeFileHandles, CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED);
BRAID_SAME(kMemoryPinned, CU_MEM_ALLOCATION_TYPE_PINNED);
BRAID_SAME(kLocationDevice, CU_MEM_LOCATION_TYPE_DEVICE);
BRAID_SAME(kHandleFile, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
BRAID_SAME(kAccessReadWrite, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
BRAID_SAME(kGranularityMinimum, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
BRAID_SAME(kWaitValueGeq, CU_STREAM_WAIT_VALUE_GEQ);
BRAID_SAME(kFunctionMaxDynamicShared, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
BRAID_SAME(kLaunchClusterDimension, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION);
BRAID_SAME(kLaunchProgrammatic, CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION);
BRAID_SAME(kJitErrorLogBuffer, CU_JIT_ERROR_LOG_BUFFER);
BRAID_SAME(kJitErrorLogBufferBytes, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES);
#if CUDA_VERSION >= 12030
BRAID_SAME(kAttributeFabricHandles, CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED);
BRAID_SAME(kHandleFabric, CU_MEM_HANDLE_TYPE_FABRIC);
static_assert(sizeof(cuda::FabricHandle) == sizeof(CUmemFabricHandle));
#endif
static_assert(sizeof(CUresult) == 4 && sizeof(CUmemAllocationHandleType) == 4);
static_assert(sizeof(cuda::MemoryProperties) == sizeof(CUmemAllocationProp));
static_assert(offsetof(cuda::MemoryProperties, handle_types) ==
              offsetof(CUmemAllocationProp, requestedHandleTypes));
static_assert(offsetof(cuda::MemoryProperties, location) ==
              offsetof(CUmemAllocationProp, location));
static_assert(offsetof(cuda::MemoryProperties, flags) == offsetof(CUmemAllocationProp, allocFlags));
static_assert(sizeof(cuda::MemoryLocation) == sizeof(CUmemLocation));
static_assert(offsetof(cuda::MemoryLocation, id) == offsetof(CUmemLocation, id));
#if CUDA_VERSION >= 12010
BRAID_SAME(kAttributeMulticast, CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED);
static_assert(sizeof(cuda::MulticastProperties) == sizeof(CUmulticastObjectProp));
static_assert(offsetof(cuda::MulticastProperties, bytes) == offsetof(CUmulticastObjectProp, size));
static_assert(offsetof(cuda::MulticastProperties, handle_types) ==
              offsetof(CUmulticastObjectProp, handleTypes));
#endif
static_assert(sizeof(cuda::MemoryAccess) == sizeof(CUmemAccessDesc));
static_assert(offsetof(cuda::MemoryAccess, flags) == offsetof(CUmemAccessDesc, flags));
static_assert(sizeof(cuda::LaunchConfig) == sizeof(CUlaunchConfig));
static_assert(offsetof(cuda::LaunchConfig, attributes) == offsetof(CUlaunchConfig, attrs));
static_assert(offsetof(cuda::LaunchAttribute, value) == offsetof(CUlaunchAttribute, value));

#undef BRAID_SAME

TEST(CudaSignatures, AreThoseOfTheInstalledHeader) { RecordProperty("cuda.h", CUDA_VERSION); }

}  // namespace
}  // namespace braid

#else

TEST(CudaSignatures, AreThoseOfTheInstalledHeader) {
  GTEST_SKIP() << "no cuda.h was found when this was configured: nothing is compared";
}

#endif
