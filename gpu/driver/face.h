// How a function of libcudart enters the runtime: lock, count the call, reject null outputs, convert exceptions to a status,
// remember the status for cudaGetLastError.
//
//   KVSCOPE_CUDA int cudaGetDevice(int* device) {
//     return enter("cudaGetDevice", KVSCOPE_CALLER, {device}, [&](Runtime&) { return *device = 0, kSuccess; });
//   }
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <initializer_list>
#include <mutex>
#include <new>
#include <utility>

#include "core/base/errors.h"
#include "gpu/driver/runtime.h"

#define KVSCOPE_CUDA extern "C" __attribute__((visibility("default")))
#define KVSCOPE_CALLER __builtin_return_address(0)
// Programs compiled with --default-stream per-thread call these names. Work is performed when it is issued, whatever its stream.
// Handle 0 is the legacy stream for them too, so they capture cudaStreamPerThread by its name.
#define KVSCOPE_CUDA_ALIAS(alias_name, function) \
  extern "C" __attribute__((visibility("default"), alias(#function))) decltype(function) alias_name;

namespace kvscope::driver {

// 13000 unless the library is that of CUDA 12: a few functions have other arguments there.
[[nodiscard]] int& runtime_version();

// Of this thread, for cudaGetLastError.
[[nodiscard]] Status& last_status();

// The pointers that a function writes through. If one is null, the call returns cudaErrorInvalidValue and `work` does not run. An
// optional output is not in the list. Held by tests/gpu/driver/null_outputs_test.py.
using Outputs = std::initializer_list<const void*>;

inline bool has_null(Outputs outputs) {
  return std::find(outputs.begin(), outputs.end(), nullptr) != outputs.end();
}

// A call that a kernel's failure does not affect: `work` runs even if the sticky status is set.
template <class Work>
Status enter_always(const char* function, const void* caller, Outputs outputs, Work&& work) {
  Runtime& r = runtime();
  const std::lock_guard lock(r.mutex);
  r.call = {.ordinal = ++r.calls, .function = function, .detail = {}, .caller = caller};
  Status status = kUnknown;
  try {
    status = has_null(outputs) ? kInvalidValue : work(r);
  } catch (const OverflowError&) {
    status = kOutOfMemory;
  } catch (const std::bad_alloc&) {
    status = kOutOfMemory;
  } catch (const std::exception& error) {
    r.report_call("INTERNAL", function, 0, error.what());
  }
  if (status != kSuccess) last_status() = status;
  return status;
}

template <class Work>
Status enter_always(const char* function, const void* caller, Work&& work) {
  return enter_always(function, caller, {}, std::forward<Work>(work));
}

template <class Work>
Status enter(const char* function, const void* caller, Outputs outputs, Work&& work) {
  return enter_always(function, caller, outputs, [&](Runtime& r) {
    if (r.sticky != kSuccess) return r.sticky;
    return work(r);
  });
}
template <class Work>
Status enter(const char* function, const void* caller, Work&& work) {
  return enter(function, caller, {}, std::forward<Work>(work));
}

inline std::uint64_t address_of(const void* pointer) {
  return reinterpret_cast<std::uint64_t>(pointer);
}

}  // namespace kvscope::driver
