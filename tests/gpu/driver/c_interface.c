/* The C interface, used from C99: what kvscope_gpu.h shows. Exit code 0: every expectation holds. */
#include <stdio.h>
#include <string.h>

#include "gpu/driver/kvscope_gpu.h"

static const char ptx[] =
    ".version 8.0\n.target sm_90a\n.address_size 64\n"
    ".visible .entry twice(.param .u64 y, .param .u64 x) {\n"
    "  .reg .b32 %r<4>; .reg .b64 %rd<6>;\n"
    "  ld.param.u64 %rd1, [y]; ld.param.u64 %rd2, [x]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd3, %r1, 4;\n"
    "  add.u64 %rd4, %rd1, %rd3; add.u64 %rd5, %rd2, %rd3;\n"
    "  ld.global.u32 %r2, [%rd5]; add.u32 %r3, %r2, %r2; st.global.u32 [%rd4], %r3; ret;\n}\n";

/* tests/apps/matrix_sums.py derives what the three ways of adding give. */
static const char product_ptx[] =
    ".version 8.0\n.target sm_90a\n.address_size 64\n"
    ".visible .entry product(.param .u64 out) {\n"
    "  .reg .b32 %r<4>; .reg .b64 %rd<2>; .reg .f32 %f<6>;\n"
    "  mov.b32 %r1, 0x0f000f00; mov.b32 %r2, 0x0c000c00; mov.f32 %f5, 0f3f800000;\n"
    "  mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f1, %f2, %f3, %f4}, {%r1, %r1, %r1, %r1}, {%r2, %r2},\n"
    "    {%f5, %f5, %f5, %f5};\n"
    "  ld.param.u64 %rd1, [out]; mov.u32 %r3, %tid.x; mad.wide.u32 %rd1, %r3, 4, %rd1;\n"
    "  st.global.f32 [%rd1], %f1; ret;\n}\n";

#define EXPECT(condition)                                                        \
  do {                                                                           \
    if (!(condition)) {                                                          \
      printf("line %d: %s: %s\n", __LINE__, #condition, kvscope_gpu_error(gpu)); \
      return 1;                                                                  \
    }                                                                            \
  } while (0)

static int sums(void) {
  static const char* const names[] = {"seq", "exact", "hopper"};
  static const uint32_t expected[] = {0x3f800010, 0x3f80000e, 0x3f80000c};
  int i, first, again;
  uint32_t got;
  struct kvscope_gpu_launch launch;
  kvscope_gpu* gpu = kvscope_gpu_open(90);
  uint64_t out = kvscope_gpu_allocate(gpu, 128, "out");
  memset(&launch, 0, sizeof launch);
  launch.size = sizeof launch;
  launch.kernel = "product";
  launch.grid[0] = launch.grid[1] = launch.grid[2] = launch.block[1] = launch.block[2] = 1;
  launch.block[0] = 32;
  launch.params = &out;
  launch.params_bytes = sizeof out;
  first = kvscope_gpu_load(gpu, product_ptx, strlen(product_ptx), "product.ptx");
  for (i = 0; i < 3; ++i) {
    EXPECT(kvscope_gpu_set_sum(gpu, names[i]) == 0);
    again = kvscope_gpu_load(gpu, product_ptx, strlen(product_ptx), "product.ptx");
    EXPECT(kvscope_gpu_run(gpu, again, &launch) == 0);
    EXPECT(kvscope_gpu_read(gpu, &got, out, sizeof got) == 0);
    EXPECT(got == expected[i]);
    EXPECT(kvscope_gpu_run(gpu, first, &launch) == 0); /* keeps the default */
    EXPECT(kvscope_gpu_read(gpu, &got, out, sizeof got) == 0);
    EXPECT(got == expected[0]);
  }
  EXPECT(kvscope_gpu_set_sum(gpu, "ampere") < 0);
  EXPECT(strcmp(kvscope_gpu_error(gpu), "sum: 'ampere' is not one of seq, exact, hopper") == 0);
  EXPECT(kvscope_gpu_set_sum(gpu, NULL) < 0);
  EXPECT(kvscope_gpu_set_sum(NULL, "seq") < 0);
  kvscope_gpu_close(gpu);
  return 0;
}

int main(void) {
  uint32_t numbers[4] = {1, 2, 3, 4};
  uint64_t params[2];
  struct kvscope_gpu_launch launch;
  int module;
  kvscope_gpu* gpu = kvscope_gpu_open(90);
  EXPECT(gpu != NULL);
  EXPECT(kvscope_gpu_version() == KVSCOPE_GPU_VERSION);
  EXPECT(kvscope_gpu_open(35) == NULL);
  EXPECT(sums() == 0);

  module = kvscope_gpu_load(gpu, ptx, strlen(ptx), "twice.ptx");
  EXPECT(module == 0);
  params[0] = kvscope_gpu_allocate(gpu, 16, "y");
  params[1] = kvscope_gpu_allocate(gpu, 16, "x");
  EXPECT(kvscope_gpu_write(gpu, params[1], numbers, 12) == 0);

  memset(&launch, 0, sizeof launch);
  launch.size = sizeof launch;
  launch.kernel = "twice";
  launch.grid[0] = launch.grid[1] = launch.grid[2] = 1;
  launch.block[0] = 3;
  launch.block[1] = launch.block[2] = 1;
  launch.params = params;
  launch.params_bytes = sizeof params;
  EXPECT(kvscope_gpu_run(gpu, module, &launch) == 0);
  EXPECT(kvscope_gpu_reports(gpu) == 0);
  EXPECT(kvscope_gpu_read(gpu, numbers, params[0], 12) == 0);
  EXPECT(numbers[2] == 6);

  launch.block[0] = 4; /* the fourth number of x has not been written */
  EXPECT(kvscope_gpu_run(gpu, module, &launch) == 0);
  EXPECT(kvscope_gpu_reports(gpu) == 1);
  EXPECT(strcmp(kvscope_gpu_report_kind(gpu, 0), "UNINITIALIZED") == 0);
  EXPECT(strstr(kvscope_gpu_report_text(gpu, 0), "x + 12") != NULL);
  EXPECT(kvscope_gpu_report_text(gpu, 1) == NULL);

  launch.block[0] = 3;
  launch.grid[0] = 5;
  launch.ctas = "1-2,last";
  EXPECT(kvscope_gpu_run(gpu, module, &launch) == 0);
  EXPECT(kvscope_gpu_ctas(gpu) == 3);
  launch.ctas = "7";
  EXPECT(kvscope_gpu_run(gpu, module, &launch) < 0);
  EXPECT(strstr(kvscope_gpu_error(gpu), "CTAs 0 to 4") != NULL);
  launch.size = offsetof(struct kvscope_gpu_launch, ctas); /* of a program that was compiled for version 1 */
  EXPECT(kvscope_gpu_run(gpu, module, &launch) == 0);
  EXPECT(kvscope_gpu_ctas(gpu) == 5);

  launch.size = sizeof launch;
  launch.ctas = NULL;
  launch.grid[0] = 1;
  launch.jobs = 2; /* all CTAs of this kernel would write the same words */
  EXPECT(kvscope_gpu_run(gpu, module, &launch) == 0);
  EXPECT(strcmp(kvscope_gpu_jobs(gpu), "one thread: it has one CTA") == 0);
  launch.jobs = -1;
  EXPECT(kvscope_gpu_run(gpu, module, &launch) < 0);
  EXPECT(strstr(kvscope_gpu_error(gpu), "jobs: -1 threads: 1 to 256") != NULL);
  launch.jobs = 0;

  launch.block[0] = 5000;
  EXPECT(kvscope_gpu_run(gpu, module, &launch) < 0);
  EXPECT(strstr(kvscope_gpu_error(gpu), "block") != NULL);
  EXPECT(kvscope_gpu_load(gpu, "no ptx", 6, "bad.ptx") < 0);
  EXPECT(kvscope_gpu_free(gpu, params[0]) == 0);
  EXPECT(kvscope_gpu_free(gpu, params[0]) < 0);
  kvscope_gpu_close(gpu);
  return 0;
}
