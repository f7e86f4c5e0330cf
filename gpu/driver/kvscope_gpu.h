/* The virtual GPU as a C interface: load PTX, launch a kernel, read the reports of the checks. C99, no other header of kvscope.
 *
 *   kvscope_gpu* gpu = kvscope_gpu_open(90);
 *   uint64_t y = kvscope_gpu_allocate(gpu, 4 * 64, "y");
 *   int module = kvscope_gpu_load(gpu, text, strlen(text), "scale.ptx");
 *   struct kvscope_gpu_launch launch = {sizeof launch, "scale", {2, 1, 1}, {32, 1, 1}, {0, 0, 0}, 0, &y, sizeof y};
 *   if (kvscope_gpu_run(gpu, module, &launch) < 0) puts(kvscope_gpu_error(gpu));
 *   for (int64_t i = 0; i < kvscope_gpu_reports(gpu); ++i) puts(kvscope_gpu_report_text(gpu, i));
 *   kvscope_gpu_close(gpu);
 *
 * Functions return a negative number, 0 or NULL on failure; kvscope_gpu_error then has the message. Strings are valid until the
 * next call with the same gpu. One thread at a time may use a gpu. Functions are added, never changed; KVSCOPE_GPU_VERSION counts
 * the additions. A struct begins with its size, so that later versions can add members at its end. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define KVSCOPE_GPU_VERSION 4

typedef struct kvscope_gpu kvscope_gpu;

struct kvscope_gpu_launch {
  size_t size;            /* sizeof(struct kvscope_gpu_launch) */
  const char* kernel;     /* as written in the PTX */
  uint32_t grid[3];       /* CTAs */
  uint32_t block[3];      /* threads */
  uint32_t cluster[3];    /* CTAs; 0: the kernel's own, or none */
  int64_t dynamic_shared; /* bytes */
  const void* params;     /* the parameter block, laid out as the kernel declares it */
  size_t params_bytes;
  const char* ctas; /* version 2: run these CTAs only, such as "0-3,last" or "(1,2,0)"; NULL: all */
  int32_t
      jobs; /* version 3: threads that run CTAs which cannot see one another, with the results of one; 0 and 1: one */
};

int kvscope_gpu_version(void); /* of the library */

/* 90: sm_90a, 100: sm_100a, 120: sm_120a. NULL for any other target. */
kvscope_gpu* kvscope_gpu_open(int target);
void kvscope_gpu_close(kvscope_gpu* gpu);              /* NULL is allowed */
const char* kvscope_gpu_error(const kvscope_gpu* gpu); /* of the last call that failed; "" without one */

/* Device addresses; 0: out of memory. `name` appears in reports. A kernel that reads bytes that nothing has written is reported. */
uint64_t kvscope_gpu_allocate(kvscope_gpu* gpu, int64_t bytes, const char* name);
int kvscope_gpu_free(kvscope_gpu* gpu, uint64_t address);
int kvscope_gpu_write(kvscope_gpu* gpu, uint64_t address, const void* from, size_t bytes);
int kvscope_gpu_read(kvscope_gpu* gpu, void* to, uint64_t address, size_t bytes);

/* Version 4: how matrix instructions of the modules that are loaded from now on add products: "seq", the default, "exact" or
 * "hopper", as the option --sum of kvscope ptx run. Modules that were loaded before keep theirs. */
int kvscope_gpu_set_sum(kvscope_gpu* gpu, const char* sum);

/* The number of the module, from 0. `file` appears in messages. */
int kvscope_gpu_load(kvscope_gpu* gpu, const char* ptx, size_t bytes, const char* file);

/* 0: the kernel ran, with or without reports; 1: it was stopped; negative: the launch breaks a rule. */
int kvscope_gpu_run(kvscope_gpu* gpu, int module, const struct kvscope_gpu_launch* launch);

/* The reports of all launches, in order. NULL for an index that is out of range. */
int64_t kvscope_gpu_reports(const kvscope_gpu* gpu);
const char* kvscope_gpu_report_kind(const kvscope_gpu* gpu, int64_t index);     /* "RACE_WR" */
const char* kvscope_gpu_report_severity(const kvscope_gpu* gpu, int64_t index); /* "note", "warning", "error" */
const char* kvscope_gpu_report_text(const kvscope_gpu* gpu, int64_t index);
/* Version 2: CTAs of the last launch that ran; fewer than its grid has if it was sampled: do not compare its arrays then. */
int64_t kvscope_gpu_ctas(const kvscope_gpu* gpu);
const char* kvscope_gpu_printed(const kvscope_gpu* gpu); /* by printf of the last launch */
/* Version 3: "4 threads", or "one thread: " and why, for the last launch; "" if it did not ask for several. */
const char* kvscope_gpu_jobs(const kvscope_gpu* gpu);

#ifdef __cplusplus
}
#endif
