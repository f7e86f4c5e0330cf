/* ptx_run, found by dlopen in the library that the command line names, as projects find it in libgpuocelot.so. Exit code 0: every
 * expectation holds. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/driver/ptx_run.h"

typedef int (*PtxRun)(const char*, int, void**, int, int, int, int, int, int, int);

/* y[i] = x[i] + add for all threads; the CTA's number selects nothing but the offset. */
static const char source[] =
    ".version 8.0\n.target sm_80\n.address_size 64\n"
    ".visible .entry add(.param .u64 y, .param .u64 x, .param .u32 add) {\n"
    "  .reg .b32 %r<8>; .reg .b64 %rd<6>;\n"
    "  ld.param.u64 %rd1, [y]; ld.param.u64 %rd2, [x]; ld.param.u32 %r5, [add];\n"
    "  mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x; mad.lo.u32 %r1, %r1, %r2, %r3;\n"
    "  mul.wide.u32 %rd3, %r1, 4; add.u64 %rd4, %rd1, %rd3; add.u64 %rd5, %rd2, %rd3;\n"
    "  ld.global.u32 %r2, [%rd5]; add.u32 %r3, %r2, %r5; st.global.u32 [%rd4], %r3; ret;\n}\n";

#define EXPECT(condition)                            \
  do {                                               \
    if (!(condition)) {                              \
      printf("line %d: %s\n", __LINE__, #condition); \
      return 1;                                      \
    }                                                \
  } while (0)

static const uint32_t constant[8] = {9, 9, 9, 9, 9, 9, 9, 9};

int main(int count, char** arguments) {
  void* const library = count > 1 ? dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL) : NULL;
  PtxRun run = NULL;
  void* symbol;
  /* x and y in one mapping, so that one copy serves both; the guard words around y must stay. */
  uint32_t* const x = malloc(8 * sizeof *x);
  uint32_t* const y = malloc(10 * sizeof *y);
  uint32_t on_stack[8];
  void* args[3];
  int i;
  if (library == NULL) {
    printf("%s\n", count > 1 ? dlerror() : "usage: gpu_ptx_run_test LIBRARY");
    return 1;
  }
  symbol = dlsym(library, "ptx_run");
  EXPECT(symbol != NULL);
  memcpy(&run, &symbol, sizeof run);
  for (i = 0; i < 8; ++i) x[i] = (uint32_t)(i * i);
  for (i = 0; i < 10; ++i) y[i] = 0xabcd;
  args[0] = y + 1;
  args[1] = x;
  args[2] = (void*)(uintptr_t)1000;
  EXPECT(run(source, 3, args, 4, 1, 1, 2, 1, 1, 0) == 0); /* 4 threads of 2 CTAs */
  for (i = 0; i < 8; ++i) EXPECT(y[i + 1] == (uint32_t)(i * i + 1000));
  EXPECT(y[0] == 0xabcd && y[9] == 0xabcd);

  args[0] = on_stack; /* another mapping than x */
  EXPECT(run(source, 3, args, 8, 1, 1, 1, 1, 1, 0) == 0);
  EXPECT(on_stack[0] == 1000 && on_stack[7] == 1049);

  args[0] = (void*)(uintptr_t)constant; /* the host cannot write it */
  EXPECT(run(source, 3, args, 8, 1, 1, 1, 1, 1, 0) == -1);
  EXPECT(constant[0] == 9);

  args[0] = NULL; /* reported, and the kernel goes on */
  EXPECT(run(source, 3, args, 8, 1, 1, 1, 1, 1, 0) == 0);
  EXPECT(run(".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k() { trap; }\n", 0, NULL, 1, 1, 1, 1, 1,
             1, 0) == 1);
  args[0] = y;
  EXPECT(run(source, 2, args, 8, 1, 1, 1, 1, 1, 0) == -1);
  EXPECT(run("no ptx", 3, args, 8, 1, 1, 1, 1, 1, 0) == -1);
  EXPECT(run(source, 3, args, 5000, 1, 1, 1, 1, 1, 0) == -1);
  EXPECT(run(NULL, 3, args, 8, 1, 1, 1, 1, 1, 0) == -1);
  free(x);
  free(y);
  return 0;
}
