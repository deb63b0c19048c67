#pragma once

// The CUresults that the stand-in answers with, as NVIDIA documents them.

namespace braid::fake {

inline constexpr int kInvalidValue = 1;
inline constexpr int kOutOfMemory = 2;
inline constexpr int kInvalidDevice = 101;
inline constexpr int kInvalidImage = 200;
inline constexpr int kInvalidContext = 201;
inline constexpr int kNoBinaryForGpu = 209;
inline constexpr int kInvalidPtx = 218;
inline constexpr int kUnsupportedPtxVersion = 222;
inline constexpr int kInvalidHandle = 400;
inline constexpr int kNotFound = 500;
inline constexpr int kIllegalAddress = 700;
inline constexpr int kAlreadyEnabled = 704;
inline constexpr int kLaunchTimeout = 702;
inline constexpr int kLaunchFailed = 719;
inline constexpr int kNotPermitted = 800;
inline constexpr int kNotSupported = 801;
inline constexpr int kSystemNotReady = 802;
inline constexpr int kCaptureUnsupported = 900;
inline constexpr int kCaptureMerge = 902;
inline constexpr int kCaptureUnmatched = 903;
inline constexpr int kCaptureUnjoined = 904;
inline constexpr int kCaptureIsolation = 905;
inline constexpr int kCapturedEvent = 907;
inline constexpr int kInvalidClusterSize = 912;
inline constexpr int kUnknown = 999;

}  // namespace braid::fake
