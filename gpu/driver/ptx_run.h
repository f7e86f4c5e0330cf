/* The one function of libgpuocelot that projects load it for: run the first kernel of a PTX text on host memory. Projects that load
 * libgpuocelot.so can load kvscope's library of that name instead, and get the reports of all checks on standard error.
 *
 *   void* args[] = {y, x, (void*)(uintptr_t)64};
 *   int status = ptx_run(source, 3, args, 32, 1, 1, 2, 1, 1, 0);
 *
 * args[i] is the value of parameter i. A value of a 64-bit parameter that is the address of mapped host memory is a pointer to it:
 * the kernel works on a copy, from the lowest such pointer to the end of the mapping, at most 256 MiB behind the highest, and the
 * bytes that it changes are copied back. Pointers that are stored in memory are not translated. The variables KVSCOPE_CUDA_* select
 * checks, schedule and limits as for kvscope cuda. */
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

/* Threads of a CTA, then CTAs of the grid; `dynamic_shared` in bytes. 0: the kernel ran to its end, with or without reports; 1: it was
 * stopped; -1: the text or the launch breaks a rule, which is printed. Calls from several threads run one after the other. */
int ptx_run(const char* source, int n_args, void* args[], int block_x, int block_y, int block_z, int grid_x, int grid_y,
            int grid_z, int dynamic_shared);

#ifdef __cplusplus
}
#endif
