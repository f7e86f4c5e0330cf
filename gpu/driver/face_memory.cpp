// libcudart: memory, copies, symbols.
#include <cstring>

#include "gpu/driver/cuda_types.h"
#include "gpu/driver/face.h"

namespace kvscope::driver {
namespace {

using Kinds = std::vector<MemoryKind>;

constexpr std::size_t kPitchAlign = 512;  // [bytes] of cudaMallocPitch

Status allocate(Runtime& r, MemoryKind kind, void** pointer, std::size_t bytes, unsigned flags = 0) {
  *pointer = nullptr;
  if (const Status status = r.check_unsafe(); status != kSuccess) return status;
  if (bytes == 0) return kSuccess;
  std::uint64_t address = 0;
  const Status status = r.allocate(kind, bytes, flags, address);
  if (status == kSuccess) *pointer = reinterpret_cast<void*>(address);
  return status;
}

// In a capture, a node of the graph allocates the memory.
Status allocate_async(Runtime& r, void** pointer, std::size_t bytes, void* handle) {
  *pointer = nullptr;
  Stream* stream = nullptr;
  if (const Status status = r.use_stream(handle, stream); status != kSuccess) return status;
  if (bytes == 0) return kSuccess;
  std::uint64_t address = 0;
  const bool captured = stream->point.capture != nullptr;
  const Status status = captured ? r.reserve(bytes, address) : r.allocate(MemoryKind::device, bytes, 0, address);
  if (status != kSuccess) return status;
  *pointer = reinterpret_cast<void*>(address);
  if (!captured) return kSuccess;
  return r.issue(handle, kAllocationNode, [&r, address] { return r.allocate_reserved(address); });
}

// depth x height rows of `width` bytes, at a distance that becomes the pitch.
Status allocate_rows(Runtime& r, void** pointer, std::size_t& pitch, const Extent& extent) {
  std::size_t padded = 0, rows = 0, bytes = 0;
  if (__builtin_add_overflow(extent.width, kPitchAlign - 1, &padded)) return kOutOfMemory;
  padded = padded / kPitchAlign * kPitchAlign;
  if (__builtin_mul_overflow(extent.height, extent.depth, &rows) || __builtin_mul_overflow(padded, rows, &bytes))
    return kOutOfMemory;
  pitch = padded;
  return allocate(r, MemoryKind::device, pointer, bytes);
}

Status free_memory(Runtime& r, const void* pointer, const Kinds& kinds) {
  if (pointer == nullptr) return kSuccess;
  const Status status = r.check_unsafe();
  return status == kSuccess ? r.release(address_of(pointer), kinds) : status;
}

// In a capture, only memory of an allocation node can be freed, once.
Status free_async(Runtime& r, const void* pointer, void* handle) {
  Stream* stream = nullptr;
  if (const Status status = r.use_stream(handle, stream); status != kSuccess) return status;
  if (pointer == nullptr) return kSuccess;
  const std::uint64_t address = address_of(pointer);
  if (stream->point.capture != nullptr && !r.claim_free_node(address)) {
    stream->point.capture->invalid = true;
    return kInvalidValue;
  }
  return r.issue(handle, kFreeNode, [&r, address] { return r.release(address, {MemoryKind::device}); });
}

// A copy whose host side may be changed by the program as soon as the call returns needs no staging here: work is performed
// when it is issued, except in a capture, which reads the source at each launch of the graph, as on hardware.
Status issue_copy(Runtime& r, void* stream, const Copy& copy) {
  return r.issue(stream, kCopyNode, [&r, copy] { return r.copy(copy); });
}

Copy line(const void* to, const void* from, std::size_t bytes, int kind) {
  return {.to = address_of(to), .from = address_of(from), .width = bytes, .kind = kind};
}

Copy rectangle(const void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch, std::size_t width,
               std::size_t height, int kind) {
  return {.to = address_of(to),
          .from = address_of(from),
          .to_pitch = to_pitch,
          .from_pitch = from_pitch,
          .width = width,
          .height = height,
          .kind = kind};
}

std::uint64_t start_of(const PitchedPointer& at, const Position& position) {
  return address_of(at.pointer) + position.x + position.y * at.pitch + position.z * at.pitch * at.y_size;
}

Status box_of(Runtime& r, const Copy3D* p, Copy& out) {
  if (p == nullptr) return kInvalidValue;
  if (p->from_array != nullptr || p->to_array != nullptr) {
    r.report_call("UNSUPPORTED", "a copy of a CUDA array", 0, "the virtual GPU has no textures: use linear memory");
    return kNotSupported;
  }
  out = {.to = start_of(p->to, p->to_position),
         .from = start_of(p->from, p->from_position),
         .to_pitch = p->to.pitch,
         .to_slice = p->to.pitch * p->to.y_size,
         .from_pitch = p->from.pitch,
         .from_slice = p->from.pitch * p->from.y_size,
         .width = p->extent.width,
         .height = p->extent.height,
         .depth = p->extent.depth,
         .kind = p->kind};
  return kSuccess;
}

Status issue_box(Runtime& r, void* stream, const Copy3D* p) {
  Copy copy;
  const Status status = box_of(r, p, copy);
  return status == kSuccess ? issue_copy(r, stream, copy) : status;
}

// A copy that is done when the call returns: no capture records it.
template <class Work>
Status enter_synchronous(const char* function, const void* caller, Work&& work) {
  return enter(function, caller, [&](Runtime& r) {
    const Status status = r.synchronize(nullptr);
    return status == kSuccess ? work(r) : status;
  });
}

struct Fill {
  const void* to;
  std::size_t pitch = 0, slice = 0;
  unsigned value = 0;
  std::size_t width = 0, height = 1, depth = 1;
};
Status issue_set(Runtime& r, void* stream, const Fill& f) {
  return r.issue(stream, kSetNode, [&r, f] {
    return r.set(address_of(f.to), f.pitch, f.slice, f.value & 0xff, 1, f.width, f.height, f.depth);
  });
}

// A copy to (`to_symbol`) or from a variable of the device.
Status issue_symbol(Runtime& r, void* stream, const void* symbol, const void* other, std::size_t bytes,
                    std::size_t offset, int kind, bool to_symbol) {
  std::uint64_t address = 0;
  std::size_t size = 0;
  if (const Status status = r.find_variable(symbol, address, size); status != kSuccess) return status;
  if (offset > size || bytes > size - offset) return kInvalidValue;
  if (kind == kHostToHost || kind == (to_symbol ? kDeviceToHost : kHostToDevice)) return kInvalidDirection;
  const void* const at = reinterpret_cast<const void*>(address + offset);
  return issue_copy(r, stream, to_symbol ? line(at, other, bytes, kind) : line(other, at, bytes, kind));
}

}  // namespace

// --- allocation ---

KVSCOPE_CUDA int cudaMalloc(void** pointer, std::size_t bytes) {
  return enter("cudaMalloc", KVSCOPE_CALLER, {pointer},
               [&](Runtime& r) { return allocate(r, MemoryKind::device, pointer, bytes); });
}
KVSCOPE_CUDA int cudaMallocAsync(void** pointer, std::size_t bytes, void* stream) {
  return enter("cudaMallocAsync", KVSCOPE_CALLER, {pointer},
               [&](Runtime& r) { return allocate_async(r, pointer, bytes, stream); });
}
KVSCOPE_CUDA int cudaMallocFromPoolAsync(void** pointer, std::size_t bytes, void*, void* stream) {
  return enter("cudaMallocFromPoolAsync", KVSCOPE_CALLER, {pointer},
               [&](Runtime& r) { return allocate_async(r, pointer, bytes, stream); });
}
KVSCOPE_CUDA int cudaMallocManaged(void** pointer, std::size_t bytes, unsigned flags) {
  return enter("cudaMallocManaged", KVSCOPE_CALLER, {pointer},
               [&](Runtime& r) { return allocate(r, MemoryKind::managed, pointer, bytes, flags); });
}
KVSCOPE_CUDA int cudaMallocHost(void** pointer, std::size_t bytes) {
  return enter("cudaMallocHost", KVSCOPE_CALLER, {pointer},
               [&](Runtime& r) { return allocate(r, MemoryKind::pinned, pointer, bytes); });
}
KVSCOPE_CUDA int cudaHostAlloc(void** pointer, std::size_t bytes, unsigned flags) {
  return enter("cudaHostAlloc", KVSCOPE_CALLER, {pointer},
               [&](Runtime& r) { return allocate(r, MemoryKind::pinned, pointer, bytes, flags); });
}
KVSCOPE_CUDA int cudaMallocPitch(void** pointer, std::size_t* pitch, std::size_t width, std::size_t height) {
  return enter("cudaMallocPitch", KVSCOPE_CALLER, {pointer, pitch}, [&](Runtime& r) {
    return allocate_rows(r, pointer, *pitch, {.width = width, .height = height, .depth = 1});
  });
}
KVSCOPE_CUDA int cudaMalloc3D(PitchedPointer* out, Extent extent) {
  return enter("cudaMalloc3D", KVSCOPE_CALLER, {out}, [&](Runtime& r) {
    *out = {.pointer = nullptr, .pitch = 0, .x_size = extent.width, .y_size = extent.height};
    return allocate_rows(r, &out->pointer, out->pitch, extent);
  });
}
KVSCOPE_CUDA int cudaFree(void* pointer) {
  return enter("cudaFree", KVSCOPE_CALLER, [&](Runtime& r) {
    return free_memory(r, pointer, {MemoryKind::device, MemoryKind::managed});
  });
}
KVSCOPE_CUDA int cudaFreeAsync(void* pointer, void* stream) {
  return enter("cudaFreeAsync", KVSCOPE_CALLER, [&](Runtime& r) { return free_async(r, pointer, stream); });
}
KVSCOPE_CUDA int cudaFreeHost(void* pointer) {
  return enter("cudaFreeHost", KVSCOPE_CALLER,
               [&](Runtime& r) { return free_memory(r, pointer, {MemoryKind::pinned}); });
}
KVSCOPE_CUDA int cudaHostRegister(void* pointer, std::size_t bytes, unsigned flags) {
  return enter("cudaHostRegister", KVSCOPE_CALLER, [&](Runtime& r) { return r.register_host(pointer, bytes, flags); });
}
KVSCOPE_CUDA int cudaHostUnregister(void* pointer) {
  return enter("cudaHostUnregister", KVSCOPE_CALLER, [&](Runtime& r) { return r.unregister_host(pointer); });
}
KVSCOPE_CUDA int cudaHostGetDevicePointer(void** device, void* host, unsigned) {
  return enter("cudaHostGetDevicePointer", KVSCOPE_CALLER, {device}, [&](Runtime& r) {
    const Block* const block = r.find_shared_block(address_of(host));
    if (block == nullptr || block->kind == MemoryKind::managed || block->kind == MemoryKind::variable)
      return kInvalidValue;
    *device = reinterpret_cast<void*>(block->address + (address_of(host) - address_of(block->host)));
    return kSuccess;
  });
}
KVSCOPE_CUDA int cudaHostGetFlags(unsigned* flags, void* host) {
  return enter("cudaHostGetFlags", KVSCOPE_CALLER, {flags}, [&](Runtime& r) {
    const Block* const block = r.find_block(address_of(host));
    if (block == nullptr || block->kind != MemoryKind::pinned) return kInvalidValue;
    *flags = block->flags;
    return kSuccess;
  });
}
KVSCOPE_CUDA int cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  return enter("cudaMemGetInfo", KVSCOPE_CALLER, {free, total}, [&](Runtime& r) {
    *free = static_cast<std::size_t>(r.engine().memory().room());
    *total = static_cast<std::size_t>(r.engine().options().memory);
    return kSuccess;
  });
}
KVSCOPE_CUDA int cudaPointerGetAttributes(PointerAttributes* out, const void* pointer) {
  return enter("cudaPointerGetAttributes", KVSCOPE_CALLER, {out}, [&](Runtime& r) {
    *out = {};
    const std::uint64_t address = address_of(pointer);
    out->host_pointer = const_cast<void*>(pointer);
    const Block* block = r.find_block(address);
    const bool inside = block != nullptr && block->is_live();
    if (!inside) block = r.find_shared_block(address);
    if (block != nullptr) {
      const std::uint64_t offset = address - (inside ? block->address : address_of(block->host));
      out->type = block->kind == MemoryKind::device                                           ? 2
                  : block->kind == MemoryKind::managed || block->kind == MemoryKind::variable ? 3
                                                                                              : 1;
      out->device_pointer = reinterpret_cast<void*>(block->address + offset);
      out->host_pointer = block->host == nullptr ? nullptr : block->host + offset;
      return kSuccess;
    }
    if (r.engine().memory().contains(address, 1)) {  // a variable of the device
      out->type = 2;
      out->device_pointer = const_cast<void*>(pointer);
      out->host_pointer = nullptr;
    }
    return kSuccess;
  });
}

// --- copies ---

KVSCOPE_CUDA int cudaMemcpy(void* to, const void* from, std::size_t bytes, int kind) {
  return enter_synchronous("cudaMemcpy", KVSCOPE_CALLER,
                           [&](Runtime& r) { return issue_copy(r, nullptr, line(to, from, bytes, kind)); });
}
KVSCOPE_CUDA int cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, int kind, void* stream) {
  return enter("cudaMemcpyAsync", KVSCOPE_CALLER,
               [&](Runtime& r) { return issue_copy(r, stream, line(to, from, bytes, kind)); });
}
KVSCOPE_CUDA int cudaMemcpyPeer(void* to, int, const void* from, int, std::size_t bytes) {
  return enter_synchronous("cudaMemcpyPeer", KVSCOPE_CALLER,
                           [&](Runtime& r) { return issue_copy(r, nullptr, line(to, from, bytes, 3)); });
}
KVSCOPE_CUDA int cudaMemcpyPeerAsync(void* to, int, const void* from, int, std::size_t bytes, void* stream) {
  return enter("cudaMemcpyPeerAsync", KVSCOPE_CALLER,
               [&](Runtime& r) { return issue_copy(r, stream, line(to, from, bytes, 3)); });
}
KVSCOPE_CUDA int cudaMemcpy2D(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch,
                              std::size_t width, std::size_t height, int kind) {
  return enter_synchronous("cudaMemcpy2D", KVSCOPE_CALLER, [&](Runtime& r) {
    return issue_copy(r, nullptr, rectangle(to, to_pitch, from, from_pitch, width, height, kind));
  });
}
KVSCOPE_CUDA int cudaMemcpy2DAsync(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch,
                                   std::size_t width, std::size_t height, int kind, void* stream) {
  return enter("cudaMemcpy2DAsync", KVSCOPE_CALLER, [&](Runtime& r) {
    return issue_copy(r, stream, rectangle(to, to_pitch, from, from_pitch, width, height, kind));
  });
}
KVSCOPE_CUDA int cudaMemcpy3D(const Copy3D* p) {
  return enter_synchronous("cudaMemcpy3D", KVSCOPE_CALLER, [&](Runtime& r) { return issue_box(r, nullptr, p); });
}
KVSCOPE_CUDA int cudaMemcpy3DAsync(const Copy3D* p, void* stream) {
  return enter("cudaMemcpy3DAsync", KVSCOPE_CALLER, [&](Runtime& r) { return issue_box(r, stream, p); });
}

KVSCOPE_CUDA int cudaMemset(void* to, int value, std::size_t bytes) {
  return enter("cudaMemset", KVSCOPE_CALLER, [&](Runtime& r) {
    return issue_set(r, nullptr, {.to = to, .value = static_cast<unsigned>(value), .width = bytes});
  });
}
KVSCOPE_CUDA int cudaMemsetAsync(void* to, int value, std::size_t bytes, void* stream) {
  return enter("cudaMemsetAsync", KVSCOPE_CALLER, [&](Runtime& r) {
    return issue_set(r, stream, {.to = to, .value = static_cast<unsigned>(value), .width = bytes});
  });
}
KVSCOPE_CUDA int cudaMemset2D(void* to, std::size_t pitch, int value, std::size_t width, std::size_t height) {
  return enter("cudaMemset2D", KVSCOPE_CALLER, [&](Runtime& r) {
    return issue_set(
        r, nullptr,
        {.to = to, .pitch = pitch, .value = static_cast<unsigned>(value), .width = width, .height = height});
  });
}
KVSCOPE_CUDA int cudaMemset2DAsync(void* to, std::size_t pitch, int value, std::size_t width, std::size_t height,
                                   void* stream) {
  return enter("cudaMemset2DAsync", KVSCOPE_CALLER, [&](Runtime& r) {
    return issue_set(
        r, stream, {.to = to, .pitch = pitch, .value = static_cast<unsigned>(value), .width = width, .height = height});
  });
}

namespace {
Status issue_box_set(Runtime& r, void* stream, const PitchedPointer& to, int value, const Extent& extent) {
  return issue_set(r, stream,
                   {.to = to.pointer,
                    .pitch = to.pitch,
                    .slice = to.pitch * to.y_size,
                    .value = static_cast<unsigned>(value),
                    .width = extent.width,
                    .height = extent.height,
                    .depth = extent.depth});
}
}  // namespace

KVSCOPE_CUDA int cudaMemset3D(PitchedPointer to, int value, Extent extent) {
  return enter("cudaMemset3D", KVSCOPE_CALLER,
               [&](Runtime& r) { return issue_box_set(r, nullptr, to, value, extent); });
}
KVSCOPE_CUDA int cudaMemset3DAsync(PitchedPointer to, int value, Extent extent, void* stream) {
  return enter("cudaMemset3DAsync", KVSCOPE_CALLER,
               [&](Runtime& r) { return issue_box_set(r, stream, to, value, extent); });
}

// --- symbols ---

KVSCOPE_CUDA int cudaMemcpyToSymbol(const void* symbol, const void* from, std::size_t bytes, std::size_t offset,
                                    int kind) {
  return enter_synchronous("cudaMemcpyToSymbol", KVSCOPE_CALLER, [&](Runtime& r) {
    return issue_symbol(r, nullptr, symbol, from, bytes, offset, kind, true);
  });
}
KVSCOPE_CUDA int cudaMemcpyToSymbolAsync(const void* symbol, const void* from, std::size_t bytes, std::size_t offset,
                                         int kind, void* stream) {
  return enter("cudaMemcpyToSymbolAsync", KVSCOPE_CALLER,
               [&](Runtime& r) { return issue_symbol(r, stream, symbol, from, bytes, offset, kind, true); });
}
KVSCOPE_CUDA int cudaMemcpyFromSymbol(void* to, const void* symbol, std::size_t bytes, std::size_t offset, int kind) {
  return enter_synchronous("cudaMemcpyFromSymbol", KVSCOPE_CALLER, [&](Runtime& r) {
    return issue_symbol(r, nullptr, symbol, to, bytes, offset, kind, false);
  });
}
KVSCOPE_CUDA int cudaMemcpyFromSymbolAsync(void* to, const void* symbol, std::size_t bytes, std::size_t offset,
                                           int kind, void* stream) {
  return enter("cudaMemcpyFromSymbolAsync", KVSCOPE_CALLER,
               [&](Runtime& r) { return issue_symbol(r, stream, symbol, to, bytes, offset, kind, false); });
}
KVSCOPE_CUDA int cudaGetSymbolAddress(void** out, const void* symbol) {
  return enter("cudaGetSymbolAddress", KVSCOPE_CALLER, {out}, [&](Runtime& r) {
    std::uint64_t address = 0;
    std::size_t size = 0;
    const Status status = r.find_variable(symbol, address, size);
    if (status == kSuccess) *out = reinterpret_cast<void*>(address);
    return status;
  });
}
KVSCOPE_CUDA int cudaGetSymbolSize(std::size_t* out, const void* symbol) {
  return enter("cudaGetSymbolSize", KVSCOPE_CALLER, {out}, [&](Runtime& r) {
    std::uint64_t address = 0;
    return r.find_variable(symbol, address, *out);
  });
}

// --- hints, which change no result ---

KVSCOPE_CUDA int cudaMemAdvise() {
  return kSuccess;
}
KVSCOPE_CUDA int cudaMemAdvise_v2() {
  return kSuccess;
}
KVSCOPE_CUDA int cudaMemPrefetchAsync() {
  return kSuccess;
}
KVSCOPE_CUDA int cudaMemPrefetchAsync_v2() {
  return kSuccess;
}
KVSCOPE_CUDA int cudaStreamAttachMemAsync() {
  return kSuccess;
}

// --- pools: every pool is the device's memory ---

namespace {
Status get_pool(const char* function, const void* caller, void** pool) {
  return enter(function, caller, {pool},
               [&](Runtime&) { return *pool = reinterpret_cast<void*>(&last_status), kSuccess; });
}
}  // namespace

KVSCOPE_CUDA int cudaDeviceGetDefaultMemPool(void** pool, int) {
  return get_pool("cudaDeviceGetDefaultMemPool", KVSCOPE_CALLER, pool);
}
KVSCOPE_CUDA int cudaDeviceGetMemPool(void** pool, int) {
  return get_pool("cudaDeviceGetMemPool", KVSCOPE_CALLER, pool);
}
KVSCOPE_CUDA int cudaDeviceSetMemPool(int, void*) {
  return kSuccess;
}
KVSCOPE_CUDA int cudaMemPoolCreate(void** pool, const void*) {
  return get_pool("cudaMemPoolCreate", KVSCOPE_CALLER, pool);
}
KVSCOPE_CUDA int cudaMemPoolDestroy(void*) {
  return kSuccess;
}
KVSCOPE_CUDA int cudaMemPoolSetAttribute(void*, int, void*) {
  return kSuccess;
}
KVSCOPE_CUDA int cudaMemPoolGetAttribute(void*, int, void* value) {
  return enter("cudaMemPoolGetAttribute", KVSCOPE_CALLER, {value},
               [&](Runtime&) { return std::memset(value, 0, 8), kSuccess; });
}
KVSCOPE_CUDA int cudaMemPoolTrimTo(void*, std::size_t) {
  return kSuccess;
}

KVSCOPE_CUDA_PER_THREAD(cudaMemcpy_ptds, cudaMemcpy, (void* to, const void* from, std::size_t bytes, int kind),
                        (to, from, bytes, kind))
KVSCOPE_CUDA_PER_THREAD(cudaMemcpyAsync_ptsz, cudaMemcpyAsync,
                        (void* to, const void* from, std::size_t bytes, int kind, void* stream),
                        (to, from, bytes, kind, stream))
KVSCOPE_CUDA_PER_THREAD(cudaMemcpy2D_ptds, cudaMemcpy2D,
                        (void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch, std::size_t width,
                         std::size_t height, int kind),
                        (to, to_pitch, from, from_pitch, width, height, kind))
KVSCOPE_CUDA_PER_THREAD(cudaMemcpy2DAsync_ptsz, cudaMemcpy2DAsync,
                        (void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch, std::size_t width,
                         std::size_t height, int kind, void* stream),
                        (to, to_pitch, from, from_pitch, width, height, kind, stream))
KVSCOPE_CUDA_PER_THREAD(cudaMemcpy3D_ptds, cudaMemcpy3D, (const Copy3D* p), (p))
KVSCOPE_CUDA_PER_THREAD(cudaMemcpy3DAsync_ptsz, cudaMemcpy3DAsync, (const Copy3D* p, void* stream), (p, stream))
KVSCOPE_CUDA_PER_THREAD(cudaMemset_ptds, cudaMemset, (void* to, int value, std::size_t bytes), (to, value, bytes))
KVSCOPE_CUDA_PER_THREAD(cudaMemsetAsync_ptsz, cudaMemsetAsync, (void* to, int value, std::size_t bytes, void* stream),
                        (to, value, bytes, stream))
KVSCOPE_CUDA_PER_THREAD(cudaMemset2D_ptds, cudaMemset2D,
                        (void* to, std::size_t pitch, int value, std::size_t width, std::size_t height),
                        (to, pitch, value, width, height))
KVSCOPE_CUDA_PER_THREAD(cudaMemset2DAsync_ptsz, cudaMemset2DAsync,
                        (void* to, std::size_t pitch, int value, std::size_t width, std::size_t height, void* stream),
                        (to, pitch, value, width, height, stream))
KVSCOPE_CUDA_PER_THREAD(cudaMemset3D_ptds, cudaMemset3D, (PitchedPointer to, int value, Extent extent),
                        (to, value, extent))
KVSCOPE_CUDA_PER_THREAD(cudaMemset3DAsync_ptsz, cudaMemset3DAsync,
                        (PitchedPointer to, int value, Extent extent, void* stream), (to, value, extent, stream))
KVSCOPE_CUDA_PER_THREAD(cudaMemcpyToSymbol_ptds, cudaMemcpyToSymbol,
                        (const void* symbol, const void* from, std::size_t bytes, std::size_t offset, int kind),
                        (symbol, from, bytes, offset, kind))
KVSCOPE_CUDA_PER_THREAD(cudaMemcpyToSymbolAsync_ptsz, cudaMemcpyToSymbolAsync,
                        (const void* symbol, const void* from, std::size_t bytes, std::size_t offset, int kind,
                         void* stream),
                        (symbol, from, bytes, offset, kind, stream))
KVSCOPE_CUDA_PER_THREAD(cudaMemcpyFromSymbol_ptds, cudaMemcpyFromSymbol,
                        (void* to, const void* symbol, std::size_t bytes, std::size_t offset, int kind),
                        (to, symbol, bytes, offset, kind))
KVSCOPE_CUDA_PER_THREAD(cudaMemcpyFromSymbolAsync_ptsz, cudaMemcpyFromSymbolAsync,
                        (void* to, const void* symbol, std::size_t bytes, std::size_t offset, int kind, void* stream),
                        (to, symbol, bytes, offset, kind, stream))
KVSCOPE_CUDA_PER_THREAD(cudaMallocAsync_ptsz, cudaMallocAsync, (void** pointer, std::size_t bytes, void* stream),
                        (pointer, bytes, stream))
KVSCOPE_CUDA_PER_THREAD(cudaMallocFromPoolAsync_ptsz, cudaMallocFromPoolAsync,
                        (void** pointer, std::size_t bytes, void* pool, void* stream), (pointer, bytes, pool, stream))
KVSCOPE_CUDA_PER_THREAD(cudaFreeAsync_ptsz, cudaFreeAsync, (void* pointer, void* stream), (pointer, stream))
KVSCOPE_CUDA_ALIAS(cudaMemPrefetchAsync_ptsz, cudaMemPrefetchAsync)
KVSCOPE_CUDA_ALIAS(cudaStreamAttachMemAsync_ptsz, cudaStreamAttachMemAsync)

}  // namespace kvscope::driver
