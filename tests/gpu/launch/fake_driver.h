// How a test makes the stand-in of the driver (fake_driver.cpp) misbehave: `kvscope_fake_driver(&behaviour)` of the
// library sets what its calls answer from then on.
#pragma once

namespace kvscope::gpu::test {

struct FakeBehaviour {
  int gpus = 1;
  int major = 9, minor = 0;
  int version = 13000;
  int init = 0;         // what cuInit answers
  int allocate = 0;     // cuMemAlloc
  int module_load = 0;  // cuModuleLoadDataEx
  int encode = 0;       // cuTensorMapEncodeTiled
  int synchronize = 0;  // cuCtxSynchronize
};
using SetFakeBehaviour = void (*)(const FakeBehaviour*);
inline constexpr const char* kSetFakeBehaviour = "kvscope_fake_driver";

}  // namespace kvscope::gpu::test
