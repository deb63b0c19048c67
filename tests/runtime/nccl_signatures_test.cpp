// Our table of NCCL's functions against the header that is installed.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdlib>
#include <string>

#include "braid/error.h"
#include "runtime/nccl/nccl_api.h"
#include "runtime/signature.h"

#ifdef BRAID_HAS_NCCL_HEADER
#include <nccl.h>
#endif

namespace braid {
namespace {

#ifdef BRAID_HAS_NCCL_HEADER

#define BRAID_COMPARE(name, result, parameters)                                  \
  static_assert(std::is_same_v<Signature<decltype(nccl::Api::name)::Type>::type, \
                               Signature<decltype(::name)>::type>,               \
                #name);
BRAID_NCCL_FUNCTIONS(BRAID_COMPARE)
#undef BRAID_COMPARE

static_assert(sizeof(ncclResult_t) == 4 && sizeof(ncclDataType_t) == 4 && sizeof(ncclRedOp_t) == 4);
static_assert(nccl::kSuccess == ncclSuccess && nccl::kUnhandledCudaError == ncclUnhandledCudaError);
static_assert(nccl::kSystemError == ncclSystemError && nccl::kInvalidUsage == ncclInvalidUsage);
static_assert(nccl::kRemoteError == ncclRemoteError && nccl::kInProgress == ncclInProgress);
static_assert(nccl::kUint8 == ncclUint8 && nccl::kInt32 == ncclInt32 && nccl::kInt64 == ncclInt64);
static_assert(nccl::kFloat16 == ncclFloat16 && nccl::kFloat32 == ncclFloat32);
static_assert(nccl::kBfloat16 == ncclBfloat16);
#if NCCL_VERSION_CODE >= 22400
static_assert(nccl::kFloat8e4m3 == ncclFloat8e4m3 && nccl::kFloat8e5m2 == ncclFloat8e5m2);
#endif
static_assert(nccl::kSum == ncclSum && nccl::kProd == ncclProd && nccl::kMax == ncclMax);
static_assert(nccl::kMin == ncclMin && nccl::kAvg == ncclAvg);
static_assert(sizeof(nccl::UniqueId) == NCCL_UNIQUE_ID_BYTES);
static_assert(offsetof(nccl::Config, magic) == offsetof(ncclConfig_t, magic));
static_assert(offsetof(nccl::Config, version) == offsetof(ncclConfig_t, version));
static_assert(offsetof(nccl::Config, blocking) == offsetof(ncclConfig_t, blocking));
static_assert(offsetof(nccl::Config, max_ctas) == offsetof(ncclConfig_t, maxCTAs));
static_assert(offsetof(nccl::Config, net_name) == offsetof(ncclConfig_t, netName));
static_assert(offsetof(nccl::Config, split_share) == offsetof(ncclConfig_t, splitShare));

TEST(NcclSignatures, AreThoseOfTheInstalledHeader) {
  const ncclConfig_t theirs = NCCL_CONFIG_INITIALIZER;
  const nccl::Config ours;
  EXPECT_EQ(ours.magic, theirs.magic);
  EXPECT_EQ(ours.blocking, theirs.blocking);
  EXPECT_EQ(ours.split_share, theirs.splitShare);
  EXPECT_LE(ours.size, theirs.size);
  EXPECT_LE(ours.version, theirs.version);
  RecordProperty("nccl.h", NCCL_VERSION_CODE);
}

#else

TEST(NcclSignatures, AreThoseOfTheInstalledHeader) {
  GTEST_SKIP() << "no nccl.h was found when this was configured: nothing is compared";
}

#endif

TEST(NcclSignatures, TheInstalledLibraryHasAllFunctions) {
  ::unsetenv("BRAID_LIBNCCL");
  try {
    const nccl::Api api = nccl::Api::load();
    EXPECT_GE(api.number, 21800) << api.library.path();
    EXPECT_STREQ(api.ncclGetErrorString(nccl::kSuccess), "no error");
  } catch (const Error& error) {
    if (std::string(error.what()).find("not found") == std::string::npos) throw;
    GTEST_SKIP() << error.what();
  }
}

}  // namespace
}  // namespace braid
