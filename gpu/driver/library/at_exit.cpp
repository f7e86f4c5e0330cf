// The start and the end of a program that has loaded the library: the reports at exit, and their exit code.
#include <unistd.h>

#include <cstdio>
#include <iostream>

#include "gpu/driver/face.h"

namespace kvscope::driver {
namespace {

__attribute__((constructor)) void library_begins() {
  runtime_version() = KVSCOPE_CUDA_MAJOR * 1000;
}

// After the destructors of the program, which may still free memory. Without findings the program's own exit code stays.
__attribute__((destructor)) void library_ends() {
  const int code = runtime().exit_code();
  if (code == 0) return;
  std::cout.flush();
  std::fflush(nullptr);
  _exit(code);
}

}  // namespace
}  // namespace kvscope::driver
