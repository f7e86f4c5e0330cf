// The structures and numbers that functions of libcudart take, with the layout of the CUDA Runtime API of 12.x and 13.x. Declared here, so
// that the library builds without the toolkit; tests/gpu/driver compares them with the toolkit's where there is one.
#pragma once

#include <cstddef>
#include <cstdint>

namespace kvscope::driver {

// Numbers of the interface, which programs pass and receive as int.
enum CopyKind : int {  // cudaMemcpyKind
  kHostToHost = 0,
  kHostToDevice = 1,
  kDeviceToHost = 2,
  kDeviceToDevice = 3,
  kByAddresses = 4
};
enum NodeType : int {  // cudaGraphNodeType
  kKernelNode = 0,
  kCopyNode = 1,
  kSetNode = 2,
  kHostNode = 3,
  kGraphNode = 4,
  kEmptyNode = 5,
  kAllocationNode = 10,
  kFreeNode = 11
};

enum CaptureMode : int { kGlobalCapture = 0, kThreadLocalCapture = 1, kRelaxedCapture = 2 };  // cudaStreamCaptureMode
enum CaptureStatus : int { kNotCapturing = 0, kCapturing = 1, kInvalidated = 2 };             // cudaStreamCaptureStatus
enum UpdateResult : int { kUpdated = 0, kTopologyChanged = 2, kNodeTypeChanged = 3 };  // cudaGraphExecUpdateResult

struct Dim3 {
  unsigned x = 1, y = 1, z = 1;
};
struct Extent {
  std::size_t width, height, depth;
};
struct Position {
  std::size_t x, y, z;
};
struct PitchedPointer {
  void* pointer;
  std::size_t pitch, x_size, y_size;
};
struct Copy3D {  // cudaMemcpy3DParms
  void* from_array;
  Position from_position;
  PitchedPointer from;
  void* to_array;
  Position to_position;
  PitchedPointer to;
  Extent extent;
  int kind;
};
struct PointerAttributes {
  int type, device;  // 0 unregistered, 1 host, 2 device, 3 managed
  void *device_pointer, *host_pointer;
  long reserved[8];
};
struct FunctionAttributes {
  std::size_t shared_bytes, constant_bytes, local_bytes;
  int most_threads, registers, ptx_version, binary_version, cache_mode, most_dynamic_shared, carveout, cluster_required,
      cluster_width, cluster_height, cluster_depth, cluster_policy, non_portable_cluster;
  int reserved[16];
};
struct LaunchAttribute {
  int id;
  char padding[4];
  union {
    char bytes[64];
    int number;
    struct {
      unsigned x, y, z;
    } dim;
  } value;
};
struct LaunchConfiguration {
  Dim3 grid, block;
  std::size_t dynamic_shared;
  void* stream;
  LaunchAttribute* attributes;
  unsigned attribute_count;
};
struct KernelNodeParams {
  void* function;
  Dim3 grid, block;
  unsigned dynamic_shared;
  void** arguments;
  void** extra;
};
struct MemsetNodeParams {
  void* to;
  std::size_t pitch;
  unsigned value, element;
  std::size_t width, height;
};
struct UpdateResultInfo {
  int result;  // an UpdateResult
  void *node, *from_node;
};
struct HostNodeParams {
  void (*function)(void*);
  void* data;
};

// The fields of cudaDeviceProp in order. X(type, name, count); Y: fields that 12.x has and 13.x has not.
// clang-format off
#define KVSCOPE_DEVICE_FIELDS(X, Y)                                                         \
  X(char, name, 256)                           X(char, uuid, 16)                            \
  X(char, luid, 8)                             X(unsigned, luid_mask, 1)                    \
  X(std::size_t, global_memory, 1)             X(std::size_t, shared_per_block, 1)          \
  X(int, registers_per_block, 1)               X(int, warp_size, 1)                         \
  X(std::size_t, pitch, 1)                     X(int, threads_per_block, 1)                 \
  X(int, block_limits, 3)                      X(int, grid_limits, 3)                       \
  Y(int, clock_rate, 1)                        X(std::size_t, constant_memory, 1)           \
  X(int, major, 1)                             X(int, minor, 1)                             \
  X(std::size_t, texture_alignment, 1)         X(std::size_t, texture_pitch_alignment, 1)   \
  Y(int, device_overlap, 1)                    X(int, multiprocessors, 1)                   \
  Y(int, kernel_timeout, 1)                    X(int, integrated, 1)                        \
  X(int, maps_host_memory, 1)                  Y(int, compute_mode, 1)                      \
  X(int, texture_1d, 1)                        X(int, texture_1d_mipmap, 1)                 \
  Y(int, texture_1d_linear, 1)                 X(int, texture_2d, 2)                        \
  X(int, texture_2d_mipmap, 2)                 X(int, texture_2d_linear, 3)                 \
  X(int, texture_2d_gather, 2)                 X(int, texture_3d, 3)                        \
  X(int, texture_3d_alternate, 3)              X(int, texture_cubemap, 1)                   \
  X(int, texture_1d_layered, 2)                X(int, texture_2d_layered, 3)                \
  X(int, texture_cubemap_layered, 2)           X(int, surface_1d, 1)                        \
  X(int, surface_2d, 2)                        X(int, surface_3d, 3)                        \
  X(int, surface_1d_layered, 2)                X(int, surface_2d_layered, 3)                \
  X(int, surface_cubemap, 1)                   X(int, surface_cubemap_layered, 2)           \
  X(std::size_t, surface_alignment, 1)         X(int, concurrent_kernels, 1)                \
  X(int, ecc, 1)                               X(int, pci_bus, 1)                           \
  X(int, pci_device, 1)                        X(int, pci_domain, 1)                        \
  X(int, tcc_driver, 1)                        X(int, async_engines, 1)                     \
  X(int, unified_addressing, 1)                Y(int, memory_clock_rate, 1)                 \
  X(int, memory_bus_width, 1)                  X(int, l2_bytes, 1)                          \
  X(int, persisting_l2_bytes, 1)               X(int, threads_per_multiprocessor, 1)        \
  X(int, stream_priorities, 1)                 X(int, global_l1, 1)                         \
  X(int, local_l1, 1)                          X(std::size_t, shared_per_multiprocessor, 1) \
  X(int, registers_per_multiprocessor, 1)      X(int, managed_memory, 1)                    \
  X(int, multi_gpu_board, 1)                   X(int, multi_gpu_group, 1)                   \
  X(int, host_atomics, 1)                      Y(int, double_ratio, 1)                      \
  X(int, pageable_access, 1)                   X(int, concurrent_managed, 1)                \
  X(int, preemption, 1)                        X(int, registered_host_pointer, 1)           \
  X(int, cooperative_launch, 1)                Y(int, cooperative_multi_device, 1)          \
  X(std::size_t, shared_opt_in, 1)             X(int, pageable_uses_host_tables, 1)         \
  X(int, direct_managed_access, 1)             X(int, blocks_per_multiprocessor, 1)         \
  X(int, access_policy_window, 1)              X(std::size_t, reserved_shared, 1)           \
  X(int, host_register, 1)                     X(int, sparse_arrays, 1)                     \
  X(int, host_register_read_only, 1)           X(int, timeline_semaphores, 1)               \
  X(int, memory_pools, 1)                      X(int, gpu_direct, 1)                        \
  X(unsigned, gpu_direct_flush, 1)             X(int, gpu_direct_ordering, 1)               \
  X(unsigned, pool_handles, 1)                 X(int, deferred_arrays, 1)                   \
  X(int, ipc_events, 1)                        X(int, cluster_launch, 1)                    \
  X(int, unified_function_pointers, 1)
// clang-format on

#define KVSCOPE_FIELD(type, name, count) type name[count];
#define KVSCOPE_NO_FIELD(type, name, count)
struct DeviceProperties12 {
  KVSCOPE_DEVICE_FIELDS(KVSCOPE_FIELD, KVSCOPE_FIELD)
  int reserved[63];
};
struct DeviceProperties13 {
  KVSCOPE_DEVICE_FIELDS(KVSCOPE_FIELD, KVSCOPE_NO_FIELD)
  int numa_config, numa_id, mps, host_numa_id;
  unsigned gpu_pci_device, gpu_pci_subsystem;
  int host_numa_ipc;
  int reserved[56];
};
#undef KVSCOPE_FIELD
#undef KVSCOPE_NO_FIELD

}  // namespace kvscope::driver
