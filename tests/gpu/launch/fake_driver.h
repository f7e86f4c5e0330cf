// How a test makes the fake driver (fake_driver.cpp) fail: `kvscope_fake_driver(&behavior)` of the library sets the
// results of its later calls.
#pragma once

namespace kvscope::gpu::test {

struct FakeBehavior {
  int gpus = 1;
  int major = 9, minor = 0;
  int version = 13000;
  int init = 0;         // the result of cuInit
  int allocate = 0;     // cuMemAlloc
  int module_load = 0;  // cuModuleLoadDataEx
  int encode = 0;       // cuTensorMapEncodeTiled
  int synchronize = 0;  // cuCtxSynchronize
};
using SetFakeBehavior = void (*)(const FakeBehavior*);
inline constexpr const char* kSetFakeBehavior = "kvscope_fake_driver";

// For programs, by environment variables: the kernel with this name ends its context, as a fault on hardware does;
// never ends; kills its process. And, with any value: a machine without a GPU, or with one of compute capability 10.0.
inline constexpr const char* kEndsContext = "KVSCOPE_FAKE_ENDS_CONTEXT";
inline constexpr const char* kHangs = "KVSCOPE_FAKE_HANGS";
inline constexpr const char* kCrashes = "KVSCOPE_FAKE_CRASHES";
inline constexpr const char* kNoGpu = "KVSCOPE_FAKE_NO_GPU";
inline constexpr const char* kNewer = "KVSCOPE_FAKE_NEWER";

}  // namespace kvscope::gpu::test
