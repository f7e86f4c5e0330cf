// The state behind the functions of libcudart: device memory, device code, streams, graphs and reports of one process.
// Every function locks `mutex`, so that a program may call from several threads. Work is performed when it is issued, in the
// order of the calls, whatever its stream; a stream in capture records it instead.
//
//   memory     cudaMalloc and its relatives: at addresses of the virtual GPU (device_memory.h), where the host has no memory
//   shared     managed and pinned memory: host memory at the same address, and registered memory of the program. Its bytes
//              are those of the device too, so that a launch costs nothing for shared memory that its kernel does not access
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "gpu/driver/cuda_types.h"
#include "gpu/driver/engine.h"
#include "gpu/driver/fat_binary.h"
#include "gpu/driver/program_debugger.h"
#include "gpu/driver/program_reports.h"
#include "gpu/driver/status.h"

namespace kvscope::driver {

struct RuntimeOptions {
  EngineOptions engine;
  bool leaks = true;        // report memory that is not freed when the program ends
  bool prints = true;       // each report, to standard error
  std::string report_path;  // a file with all reports, written at exit; "": none
  std::string report_format;
  int debug_commands = -1;  // file descriptor of the debugger's commands; -1: no debugger
  std::vector<ptx::BreakPlace> breaks;
};
// The variables KVSCOPE_CUDA_*, which `kvscope cuda` sets. Throws InputError for a value that is none.
[[nodiscard]] RuntimeOptions options_from_environment();

// A call of a runtime function.
struct CallSite {
  std::int64_t ordinal = 0;  // from 1; 0: none
  std::string function;      // "cudaMalloc"
  std::string detail;        // "of 64 bytes"; may be empty
  const void* caller = nullptr;
  bool per_thread = false;                 // its stream 0 is cudaStreamPerThread, not the legacy stream
  [[nodiscard]] std::string text() const;  // "call 1, cudaMalloc of 64 bytes, by main (app+0x1275)"
};

enum class MemoryKind : std::uint8_t { device, managed, pinned, registered, variable };  // variable: a managed one
[[nodiscard]] std::string_view name(MemoryKind kind);

struct Block {
  MemoryKind kind = MemoryKind::device;
  std::uint64_t address = 0;  // of the device
  std::size_t size = 0;       // [bytes]
  std::byte* host = nullptr;  // of shared memory; null for memory of the device only
  unsigned flags = 0;         // as passed by the program
  CallSite made, freed;       // freed.ordinal 0: live
  bool of_graph = false;      // allocated by a node of a graph, at each launch
  bool has_free_node = false;
  [[nodiscard]] bool is_live() const { return freed.ordinal == 0; }
};

// One copy of depth x height rows of `width` bytes. A pitch is the distance of rows, a slice that of planes, in bytes.
struct Copy {
  std::uint64_t to = 0, from = 0;
  std::size_t to_pitch = 0, to_slice = 0, from_pitch = 0, from_slice = 0;
  std::size_t width = 0, height = 1, depth = 1;
  int kind = kByAddresses;  // a CopyKind; any other number is rejected when the copy runs
};

// Device code of one fat binary. It is compiled when the program first uses it.
struct Binary {
  std::vector<FatEntry> entries;
  std::string fault;  // of the container itself
  const ptx::LoadedModule* module = nullptr;
  Status failure = kSuccess;                            // of loading it
  std::vector<std::pair<void**, std::string>> managed;  // the host's pointer to each managed variable
};

struct Kernel {
  Binary* binary = nullptr;
  std::string name;
  std::int64_t most_dynamic = 48 << 10;  // [bytes] cudaFuncAttributeMaxDynamicSharedMemorySize
  bool non_portable_cluster = false;
  int carveout = -1;
};

struct DeviceVariable {
  Binary* binary = nullptr;
  std::string name;
  std::size_t size = 0;
};

struct KernelLaunch {
  Kernel* kernel = nullptr;
  ptx::LaunchConfig config;
};

struct Graph;
struct GraphNode {
  Graph* graph = nullptr;
  NodeType type = kEmptyNode;
  std::vector<GraphNode*> after;
  std::function<Status()> work;  // null: none
};
struct Graph {
  std::vector<std::unique_ptr<GraphNode>> nodes;  // as created
};
struct GraphExec {
  struct Step {
    const GraphNode* node = nullptr;  // may be destroyed: compared only
    NodeType type = kEmptyNode;
    std::vector<std::size_t> after;  // steps
    std::function<Status()> work;
  };
  std::vector<Step> steps;  // in an order of the dependencies
};

// A capture, from cudaStreamBeginCapture to cudaStreamEndCapture.
struct Capture {
  Graph* graph = nullptr;
  int mode = kGlobalCapture;
  std::thread::id thread;  // that began it
  std::uint64_t id = 0;
  bool invalid = false;  // a call has broken a rule of captures
};

// What a stream or an event has of a capture.
struct CapturePoint {
  std::shared_ptr<Capture> capture;  // null: none
  std::vector<GraphNode*> last;      // the next node depends on them
};

struct Stream {
  unsigned flags = 0;
  int priority = 0;
  std::uint64_t id = 0;
  CapturePoint point{};  // of a capture, in which the stream records instead of running
  bool origin = false;   // the stream that began the capture
};

struct Event {
  unsigned flags = 0;
  bool recorded = false;
  std::uint64_t at = 0;  // warp instructions of all launches before it
  CapturePoint point;
};

// Of the calling thread: a CaptureMode, which cudaThreadExchangeStreamCaptureMode sets.
[[nodiscard]] int& thread_capture_mode();

class Runtime {
 public:
  explicit Runtime(RuntimeOptions options = {});
  ~Runtime();
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  std::recursive_mutex mutex;
  CallSite call;  // the current one
  std::int64_t calls = 0;
  Status sticky = kSuccess;  // of a kernel that failed: every later call returns it, as on hardware

  [[nodiscard]] Engine& engine() { return *engine_; }
  [[nodiscard]] const RuntimeOptions& options() const { return options_; }
  [[nodiscard]] ProgramReports& reports() { return reports_; }

  // --- memory: runtime_memory.cpp ---
  Status allocate(MemoryKind kind, std::size_t bytes, unsigned flags, std::uint64_t& address);
  Status register_host(void* host, std::size_t bytes, unsigned flags);
  Status unregister_host(void* host);
  // Reports a double free, or an address that no function of `kinds` returned.
  Status release(std::uint64_t address, const std::vector<MemoryKind>& kinds);
  // The memory of an allocation node: its address is fixed when the node is made, and the memory exists from the node's run to
  // the free.
  Status reserve(std::size_t bytes, std::uint64_t& address);
  Status allocate_reserved(std::uint64_t address);  // at each run of the node
  // Whether a free node for this address may be made: it is the memory of an allocation node, and has no free node.
  bool claim_free_node(std::uint64_t address);
  Status copy(const Copy& copy);
  // Sets each of `count` elements per row to the lowest `element` bytes of `value`.
  Status set(std::uint64_t address, std::size_t pitch, std::size_t slice, unsigned value, std::size_t element,
             std::size_t count, std::size_t height, std::size_t depth);
  [[nodiscard]] const Block* find_block(std::uint64_t address) const;  // live or freed
  // The live block of which the host has a byte in [host, host + bytes); null: none.
  [[nodiscard]] const Block* find_shared_block(std::uint64_t host, std::size_t bytes = 1) const;
  // In the range of addresses that the virtual GPU uses, inside an allocation or not.
  [[nodiscard]] bool is_device_address(std::uint64_t address);

  // --- device code: runtime_code.cpp ---
  Binary* add_binary(const void* container);
  void remove_binary(Binary* binary);
  void add_kernel(Binary* binary, const void* host, const char* name);
  void add_variable(Binary* binary, const void* host, const char* name, std::size_t size);
  Status load(Binary& binary);
  Kernel* find_kernel(const void* function);  // by the host function or by its handle; null: none
  Status find_variable(const void* symbol, std::uint64_t& address, std::size_t& size);
  [[nodiscard]] const ptx::Function* function_of(const Kernel& kernel) const;  // null before load

  // --- launches: runtime_launch.cpp ---
  // Copies the arguments: the program may reuse their memory when the call returns.
  Status pack(Kernel& kernel, void** arguments, std::vector<std::byte>& params);
  Status launch(const KernelLaunch& launch);

  // --- streams and graphs: runtime_streams.cpp ---
  Stream* find_stream(void* handle);  // null: no such stream
  // The same for a call that adds to the stream or waits for it, which a capture may forbid.
  Status use_stream(void* handle, Stream*& stream);
  // Runs the work, or records it if the stream is in capture.
  Status issue(void* handle, NodeType type, std::function<Status()> work);
  // Waits for the stream, which no capture allows.
  Status synchronize(void* handle);
  Status synchronize_device();
  // For a call that belongs to no stream, such as cudaMalloc: the captures in progress may forbid it, by their modes and by that of
  // the calling thread.
  Status check_unsafe();
  [[nodiscard]] bool is_in_capture(const Graph& graph);  // a stream records into it
  [[nodiscard]] bool has_blocking_capture();             // of a stream that the legacy stream waits for
  // No stream and no event refers to the capture afterwards. `graph` is null if the capture broke a rule.
  Status end_capture(Stream& origin, Graph*& graph);
  // Without steps if the dependencies form a cycle.
  [[nodiscard]] static GraphExec instantiate(const Graph& graph);
  GraphNode* find_node(const void* handle);  // of any graph; null: no such node

  std::map<void*, std::unique_ptr<Stream>> streams;
  std::map<void*, std::unique_ptr<Event>> events;
  std::map<void*, std::unique_ptr<Graph>> graphs;
  std::map<void*, std::shared_ptr<GraphExec>> execs;     // shared with graphs that captured their launch
  Stream legacy_stream{.id = 1};                         // never in capture
  std::map<std::thread::id, Stream> per_thread_streams;  // cudaStreamPerThread of each thread that used it
  std::uint64_t next_stream = 1, next_capture = 0;

  // --- reports: runtime_reports.cpp ---
  // `address` 0: about none. The lines after the first: the call, the allocation, `hint`.
  void report_call(std::string kind, const std::string& subject, std::uint64_t address, const std::string& hint);
  void report_kernel(const ptx::Report& report, bool prints);
  [[nodiscard]] ProgramReport described(const ptx::Report& report) const;  // with the calls that it is about
  // Leaks, then the file of all reports. Returns the number of findings. Once only.
  std::int64_t finish();
  // The same, and the exit code that replaces the program's own: 0 keeps it, 1 findings, 2 a wrong command of the debugger.
  int exit_code();
  // Host code accessed this address and the process is about to end. True if the address is one of the device.
  bool host_fault(std::uint64_t address);
  void reset();  // frees all memory and forgets streams, events, graphs and the sticky error

 private:
  struct Side {
    std::byte* bytes = nullptr;  // null: already reported
    bool device = false;
  };
  Side side_of(std::uint64_t address, std::size_t bytes, bool write, bool as_device);
  void write_reports();
  [[noreturn]] void quit();  // at a command of the debugger
  std::vector<std::string> block_lines(std::uint64_t address) const;
  [[nodiscard]] std::vector<Stream*> streams_in_capture();
  // Invalidates the captures of the streams that `forbids` selects. Returns `status` if there is one.
  template <class Forbids>
  Status invalidate(Status status, Forbids&& forbids);
  void share(Block& block, std::byte* host);  // `host` becomes its memory on both sides
  void unshare(Block& block);
  void end(Block& block);  // frees its memory
  void set_debugger();

  RuntimeOptions options_;
  std::unique_ptr<Engine> engine_;
  ProgramReports reports_;
  std::unique_ptr<ProgramDebugger> debugger_;  // null: none
  std::set<std::string> told_;                 // reports of this launch that the debugger has printed
  std::map<std::uint64_t, Block> blocks_;      // by address; freed ones too
  std::map<std::uint64_t, Block*> shared_;     // live blocks with host memory, by its address
  std::map<const void*, std::unique_ptr<Binary>> binaries_;
  std::map<const void*, std::unique_ptr<Kernel>> kernels_;  // by host function
  std::set<const void*> handles_;                           // all kernels
  std::map<const void*, DeviceVariable> variables_;         // by host variable
  bool told_of_addresses_ = false;                          // that no address of device memory is left
  bool finished_ = false;
};

// The runtime of this process, made at the first call from the environment's options. Never destroyed, because
// destructors of the program may still call.
[[nodiscard]] Runtime& runtime();
void replace_runtime(RuntimeOptions options);  // for tests

[[nodiscard]] std::string program_name();

}  // namespace kvscope::driver
