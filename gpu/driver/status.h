// Status codes of the CUDA runtime: the result of each of its functions. Source: CUDA Runtime API, cudaError.
#pragma once

namespace kvscope::driver {

using Status = int;

inline constexpr Status kSuccess = 0;
inline constexpr Status kInvalidValue = 1;
inline constexpr Status kOutOfMemory = 2;
inline constexpr Status kInvalidConfiguration = 9;
inline constexpr Status kInvalidPitch = 12;
inline constexpr Status kInvalidSymbol = 13;
inline constexpr Status kInvalidDirection = 21;
inline constexpr Status kMissingConfiguration = 52;
inline constexpr Status kInvalidFunction = 98;
inline constexpr Status kInvalidDevice = 101;
inline constexpr Status kNoKernelImage = 209;
inline constexpr Status kInvalidPtx = 218;
inline constexpr Status kUnsupportedLimit = 215;
inline constexpr Status kInvalidHandle = 400;
inline constexpr Status kIllegalState = 401;
inline constexpr Status kSymbolNotFound = 500;
inline constexpr Status kIllegalAddress = 700;
inline constexpr Status kOutOfResources = 701;
inline constexpr Status kLaunchTimeout = 702;
inline constexpr Status kPeerUnsupported = 217;
inline constexpr Status kHostMemoryRegistered = 712;
inline constexpr Status kHostMemoryNotRegistered = 713;
inline constexpr Status kAssert = 710;
inline constexpr Status kMisaligned = 716;
inline constexpr Status kLaunchFailure = 719;
inline constexpr Status kNotSupported = 801;
inline constexpr Status kCaptureUnsupported = 900;
inline constexpr Status kCaptureInvalidated = 901;
inline constexpr Status kCaptureMerge = 902;
inline constexpr Status kCaptureUnmatched = 903;
inline constexpr Status kCaptureUnjoined = 904;
inline constexpr Status kCaptureIsolation = 905;
inline constexpr Status kCaptureImplicit = 906;
inline constexpr Status kCapturedEvent = 907;
inline constexpr Status kCaptureWrongThread = 908;
inline constexpr Status kGraphUpdateFailure = 910;
inline constexpr Status kUnknown = 999;

// "cudaErrorInvalidValue" and "invalid argument" for 1; "unrecognized error code" for a number that is none.
[[nodiscard]] const char* status_name(Status status);
[[nodiscard]] const char* status_text(Status status);

}  // namespace kvscope::driver
