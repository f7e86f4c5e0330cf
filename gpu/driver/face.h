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
#include "gpu/driver/user_call.h"

#define KVSCOPE_CUDA extern "C" __attribute__((visibility("default")))
#define KVSCOPE_CALLER __builtin_return_address(0)
// A second name of a function.
#define KVSCOPE_CUDA_ALIAS(alias_name, function) \
  extern "C" __attribute__((visibility("default"), alias(#function))) decltype(function) alias_name;
// The name of a function in programs compiled with --default-stream per-thread. For it, stream 0 is cudaStreamPerThread.
//
//   KVSCOPE_CUDA_PER_THREAD(cudaMemset_ptds, cudaMemset, (void* to, int value, std::size_t bytes), (to, value, bytes))
#define KVSCOPE_CUDA_PER_THREAD(name, function, parameters, arguments) \
  KVSCOPE_CUDA int name parameters {                                   \
    const PerThreadCall call(KVSCOPE_CALLER);                          \
    return function arguments;                                         \
  }

namespace kvscope::driver {

// 13000 unless the library is that of CUDA 12: a few functions have other arguments there.
[[nodiscard]] int& runtime_version();

// Of this thread, for cudaGetLastError.
[[nodiscard]] Status& last_status();

// A call by a name for per-thread default streams, until the function enters the runtime.
class PerThreadCall {
 public:
  explicit PerThreadCall(const void* caller) { current() = caller; }
  ~PerThreadCall() { current() = nullptr; }
  PerThreadCall(const PerThreadCall&) = delete;
  PerThreadCall& operator=(const PerThreadCall&) = delete;

  // The address that the call of this thread returns to; null: the call is by another name.
  [[nodiscard]] static const void* take() { return std::exchange(current(), nullptr); }

 private:
  static const void*& current() {
    thread_local const void* caller = nullptr;
    return caller;
  }
};

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
  const void* const per_thread = PerThreadCall::take();
  const auto is_kernel = [&r](const void* host) { return r.find_kernel(host) != nullptr; };
  r.call = {.ordinal = ++r.calls,
            .function = function,
            .detail = {},
            .caller = user_call(per_thread == nullptr ? caller : per_thread, is_kernel),
            .per_thread = per_thread != nullptr};
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
