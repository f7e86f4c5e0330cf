// The functions of libcudart that the tests call, as a program declares them.
#pragma once

#include <cstddef>
#include <cstdint>

extern "C" {
struct CudaDim3 {
  unsigned x = 1, y = 1, z = 1;
};
void** __cudaRegisterFatBinary(void* wrapper);
void __cudaRegisterFatBinaryEnd(void** binary);
void __cudaUnregisterFatBinary(void** binary);
void __cudaRegisterFunction(void** binary, const char* host, char* device, const char* name, int, void*, void*, void*,
                            void*, int*);
void __cudaRegisterVar(void** binary, char* host, char* device, const char* name, int, std::size_t size, int, int);
void __cudaRegisterManagedVar(void** binary, void** host, char* device, const char* name, int, std::size_t size, int,
                              int);
char __cudaInitModule(void** binary);
unsigned __cudaPushCallConfiguration(CudaDim3 grid, CudaDim3 block, std::size_t shared, void* stream);
int __cudaPopCallConfiguration(CudaDim3* grid, CudaDim3* block, std::size_t* shared, void* stream);
int cudaLaunchKernel(const void* function, CudaDim3 grid, CudaDim3 block, void** arguments, std::size_t shared,
                     void* stream);
int cudaMalloc(void** pointer, std::size_t bytes);
int cudaMallocManaged(void** pointer, std::size_t bytes, unsigned flags);
int cudaMallocHost(void** pointer, std::size_t bytes);
int cudaFreeHost(void* pointer);
int cudaMallocPitch(void** pointer, std::size_t* pitch, std::size_t width, std::size_t height);
int cudaFree(void* pointer);
int cudaMemcpy(void* to, const void* from, std::size_t bytes, int kind);
int cudaMemcpy2D(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch, std::size_t width,
                 std::size_t height, int kind);
int cudaMemset(void* to, int value, std::size_t bytes);
int cudaMemcpyToSymbol(const void* symbol, const void* from, std::size_t bytes, std::size_t offset, int kind);
int cudaDeviceSynchronize();
int cudaDeviceReset();
int cudaGetLastError();
const char* cudaGetErrorString(int status);
const char* cudaGetErrorName(int status);
int cudaStreamCreate(void** stream);
int cudaStreamDestroy(void* stream);
int cudaStreamSynchronize(void* stream);
int cudaStreamBeginCapture(void* stream, int mode);
int cudaStreamEndCapture(void* stream, void** graph);
int cudaStreamWaitEvent(void* stream, void* event, unsigned flags);
int cudaGraphInstantiate(void** exec, void* graph, unsigned long long flags);
int cudaGraphLaunch(void* exec, void* stream);
int cudaGraphExecDestroy(void* exec);
int cudaEventCreate(void** event);
int cudaEventRecord(void* event, void* stream);
int cudaEventElapsedTime(float* milliseconds, void* begin, void* end);
int cudaHostRegister(void* pointer, std::size_t bytes, unsigned flags);
int cudaHostUnregister(void* pointer);
int cudaHostGetDevicePointer(void** device, void* host, unsigned flags);
int cudaGetDriverEntryPoint(const char* symbol, void** function, unsigned long long flags, int* found);
int cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* function, int block, std::size_t dynamic);
int cudaDeviceGetAttribute(int* value, int attribute, int device);
int cudaMallocArray();
}
