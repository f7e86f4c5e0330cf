// libcudart: graphs, built by hand or by a capture (face_streams.cpp), and their launches.
#include <algorithm>
#include <cstring>

#include "gpu/driver/cuda_types.h"
#include "gpu/driver/face.h"

namespace kvscope::driver {
namespace {

Graph* find_graph(Runtime& r, void* handle) {
  const auto found = r.graphs.find(handle);
  return found == r.graphs.end() ? nullptr : found->second.get();
}

// The nodes of `graph` behind `count` handles; false if one of them is not a node of it.
bool find_nodes(const Graph& graph, void* const* handles, std::size_t count, std::vector<GraphNode*>& out) {
  for (std::size_t i = 0; i < count; ++i) {
    const auto found = std::find_if(graph.nodes.begin(), graph.nodes.end(),
                                    [&](const auto& node) { return node.get() == handles[i]; });
    if (found == graph.nodes.end()) return false;
    out.push_back(found->get());
  }
  return true;
}

Status add_node(Runtime& r, void** out, void* graph, void* const* after, std::size_t count, NodeType type,
                std::function<Status()> work) {
  Graph* const to = find_graph(r, graph);
  if (to == nullptr || (count > 0 && after == nullptr)) return kInvalidValue;
  auto node = std::make_unique<GraphNode>();
  node->graph = to;
  node->type = type;
  if (!find_nodes(*to, after, count, node->after)) return kInvalidValue;
  node->work = std::move(work);
  *out = node.get();
  to->nodes.push_back(std::move(node));
  return kSuccess;
}

Status kernel_work(Runtime& r, const KernelNodeParams* p, std::function<Status()>& out) {
  if (p == nullptr) return kInvalidValue;
  KernelLaunch launch;
  launch.kernel = r.find_kernel(p->function);
  if (launch.kernel == nullptr) return kInvalidFunction;
  launch.config.grid = {p->grid.x, p->grid.y, p->grid.z};
  launch.config.block = {p->block.x, p->block.y, p->block.z};
  launch.config.dynamic_shared = p->dynamic_shared;
  if (const Status status = r.pack(*launch.kernel, p->arguments, launch.config.params); status != kSuccess)
    return status;
  out = [&r, launch] { return r.launch(launch); };
  return kSuccess;
}

}  // namespace

KVSCOPE_CUDA int cudaGraphCreate(void** graph, unsigned) {
  return enter("cudaGraphCreate", KVSCOPE_CALLER, {graph}, [&](Runtime& r) {
    auto made = std::make_unique<Graph>();
    *graph = made.get();
    r.graphs.emplace(*graph, std::move(made));
    return kSuccess;
  });
}
KVSCOPE_CUDA int cudaGraphDestroy(void* graph) {
  return enter("cudaGraphDestroy", KVSCOPE_CALLER, [&](Runtime& r) {
    const auto found = r.graphs.find(graph);
    if (found == r.graphs.end() || r.is_in_capture(*found->second)) return kInvalidValue;
    r.graphs.erase(found);
    return kSuccess;
  });
}
KVSCOPE_CUDA int cudaGraphAddKernelNode(void** node, void* graph, void* const* after, std::size_t count,
                                        const KernelNodeParams* p) {
  return enter("cudaGraphAddKernelNode", KVSCOPE_CALLER, {node}, [&](Runtime& r) {
    std::function<Status()> work;
    if (const Status status = kernel_work(r, p, work); status != kSuccess) return status;
    return add_node(r, node, graph, after, count, kKernelNode, std::move(work));
  });
}
KVSCOPE_CUDA int cudaGraphAddMemcpyNode1D(void** node, void* graph, void* const* after, std::size_t count, void* to,
                                          const void* from, std::size_t bytes, int kind) {
  return enter("cudaGraphAddMemcpyNode1D", KVSCOPE_CALLER, {node}, [&](Runtime& r) {
    const Copy copy{.to = address_of(to), .from = address_of(from), .width = bytes, .kind = kind};
    return add_node(r, node, graph, after, count, kCopyNode, [&r, copy] { return r.copy(copy); });
  });
}
KVSCOPE_CUDA int cudaGraphAddMemsetNode(void** node, void* graph, void* const* after, std::size_t count,
                                        const MemsetNodeParams* p) {
  return enter("cudaGraphAddMemsetNode", KVSCOPE_CALLER, {node}, [&](Runtime& r) {
    if (p == nullptr || (p->element != 1 && p->element != 2 && p->element != 4)) return kInvalidValue;
    return add_node(r, node, graph, after, count, kSetNode, [&r, p = *p] {
      return r.set(address_of(p.to), p.pitch, 0, p.value, p.element, p.width, p.height, 1);
    });
  });
}
KVSCOPE_CUDA int cudaGraphAddHostNode(void** node, void* graph, void* const* after, std::size_t count,
                                      const HostNodeParams* p) {
  return enter("cudaGraphAddHostNode", KVSCOPE_CALLER, {node}, [&](Runtime& r) {
    if (p == nullptr || p->function == nullptr) return kInvalidValue;
    return add_node(r, node, graph, after, count, kHostNode, [p = *p] { return p.function(p.data), kSuccess; });
  });
}
KVSCOPE_CUDA int cudaGraphAddEmptyNode(void** node, void* graph, void* const* after, std::size_t count) {
  return enter("cudaGraphAddEmptyNode", KVSCOPE_CALLER, {node},
               [&](Runtime& r) { return add_node(r, node, graph, after, count, kEmptyNode, nullptr); });
}

namespace {
Status add_edges(Runtime& r, void* graph, void* const* from, void* const* to, std::size_t count) {
  const Graph* const g = find_graph(r, graph);
  if (g == nullptr || (count > 0 && (from == nullptr || to == nullptr))) return kInvalidValue;
  std::vector<GraphNode*> begins, ends;
  if (!find_nodes(*g, from, count, begins) || !find_nodes(*g, to, count, ends)) return kInvalidValue;
  for (std::size_t i = 0; i < count; ++i) ends[i]->after.push_back(begins[i]);
  return kSuccess;
}
}  // namespace

// The fourth argument is the number of edges in 12.x, and edge data in 13.x and in the form _v2.
KVSCOPE_CUDA int cudaGraphAddDependencies(void* graph, void* const* from, void* const* to, const void* fourth,
                                          std::size_t fifth) {
  return enter("cudaGraphAddDependencies", KVSCOPE_CALLER, [&](Runtime& r) {
    return add_edges(r, graph, from, to, runtime_version() < 13000 ? address_of(fourth) : fifth);
  });
}
KVSCOPE_CUDA int cudaGraphAddDependencies_v2(void* graph, void* const* from, void* const* to, const void*,
                                             std::size_t count) {
  return enter("cudaGraphAddDependencies", KVSCOPE_CALLER,
               [&](Runtime& r) { return add_edges(r, graph, from, to, count); });
}

// `count` is the room of `nodes`, then the number of nodes in it; further entries become null. Without `nodes`, it is the number of
// nodes of the graph.
KVSCOPE_CUDA int cudaGraphGetNodes(void* graph, void** nodes, std::size_t* count) {
  return enter("cudaGraphGetNodes", KVSCOPE_CALLER, {count}, [&](Runtime& r) {
    const Graph* const g = find_graph(r, graph);
    if (g == nullptr) return kInvalidValue;
    const std::size_t room = nodes == nullptr ? 0 : *count;
    for (std::size_t i = 0; i < room; ++i) nodes[i] = i < g->nodes.size() ? g->nodes[i].get() : nullptr;
    *count = nodes == nullptr ? g->nodes.size() : std::min(room, g->nodes.size());
    return kSuccess;
  });
}
KVSCOPE_CUDA int cudaGraphNodeGetType(void* node, int* type) {
  return enter("cudaGraphNodeGetType", KVSCOPE_CALLER, {type}, [&](Runtime& r) {
    const GraphNode* const n = r.find_node(node);
    if (n == nullptr) return kInvalidValue;
    *type = n->type;
    return kSuccess;
  });
}
KVSCOPE_CUDA int cudaGraphKernelNodeSetParams(void* node, const KernelNodeParams* p) {
  return enter("cudaGraphKernelNodeSetParams", KVSCOPE_CALLER, [&](Runtime& r) {
    GraphNode* const n = r.find_node(node);
    if (n == nullptr || n->type != kKernelNode) return kInvalidValue;
    return kernel_work(r, p, n->work);
  });
}

// --- executable graphs ---

namespace {
Status instantiate(Runtime& r, void** exec, void* graph) {
  const Graph* const g = find_graph(r, graph);
  if (g == nullptr) return kInvalidValue;
  auto made = std::make_unique<GraphExec>(Runtime::instantiate(*g));
  if (made->steps.size() != g->nodes.size()) return kInvalidValue;  // a cycle
  *exec = made.get();
  r.execs.emplace(*exec, std::move(made));
  return kSuccess;
}
}  // namespace

KVSCOPE_CUDA int cudaGraphInstantiate(void** exec, void* graph, unsigned long long) {
  return enter("cudaGraphInstantiate", KVSCOPE_CALLER, {exec}, [&](Runtime& r) { return instantiate(r, exec, graph); });
}
KVSCOPE_CUDA int cudaGraphInstantiateWithFlags(void** exec, void* graph, unsigned long long) {
  return enter("cudaGraphInstantiateWithFlags", KVSCOPE_CALLER, {exec},
               [&](Runtime& r) { return instantiate(r, exec, graph); });
}
KVSCOPE_CUDA int cudaGraphExecKernelNodeSetParams(void* exec, void* node, const KernelNodeParams* p) {
  return enter("cudaGraphExecKernelNodeSetParams", KVSCOPE_CALLER, [&](Runtime& r) {
    const auto found = r.execs.find(exec);
    if (found == r.execs.end()) return kInvalidValue;
    for (GraphExec::Step& step : found->second->steps) {
      if (step.node == node && step.type == kKernelNode) return kernel_work(r, p, step.work);
    }
    return kInvalidValue;
  });
}
// The work of `graph`, if its nodes and dependencies are those of the instance. Otherwise the instance stays as it is: programs then
// instantiate the graph.
KVSCOPE_CUDA int cudaGraphExecUpdate(void* exec, void* graph, UpdateResultInfo* info) {
  return enter("cudaGraphExecUpdate", KVSCOPE_CALLER, [&](Runtime& r) {
    const auto found = r.execs.find(exec);
    const Graph* const g = find_graph(r, graph);
    if (found == r.execs.end() || g == nullptr) return kInvalidValue;
    GraphExec update = Runtime::instantiate(*g);
    UpdateResultInfo result{.result = kUpdated, .node = nullptr, .from_node = nullptr};
    std::vector<GraphExec::Step>& steps = found->second->steps;
    const auto same = [](const auto& a, const auto& b) { return a.after == b.after; };
    if (update.steps.size() != g->nodes.size() ||
        !std::equal(steps.begin(), steps.end(), update.steps.begin(), update.steps.end(), same))
      result.result = kTopologyChanged;
    for (std::size_t i = 0; result.result == kUpdated && i < steps.size(); ++i) {
      if (steps[i].type == update.steps[i].type) continue;
      result = {.result = kNodeTypeChanged, .node = const_cast<GraphNode*>(update.steps[i].node), .from_node = nullptr};
    }
    if (info != nullptr) *info = result;
    if (result.result != kUpdated) return kGraphUpdateFailure;
    for (std::size_t i = 0; i < steps.size(); ++i) steps[i].work = std::move(update.steps[i].work);
    return kSuccess;
  });
}
KVSCOPE_CUDA int cudaGraphExecDestroy(void* exec) {
  return enter("cudaGraphExecDestroy", KVSCOPE_CALLER,
               [&](Runtime& r) { return r.execs.erase(exec) == 1 ? kSuccess : kInvalidValue; });
}
KVSCOPE_CUDA int cudaGraphUpload(void*, void*) {
  return kSuccess;
}
KVSCOPE_CUDA int cudaGraphLaunch(void* exec, void* stream) {
  return enter("cudaGraphLaunch", KVSCOPE_CALLER, [&](Runtime& r) {
    const auto found = r.execs.find(exec);
    if (found == r.execs.end()) return kInvalidValue;
    return r.issue(stream, kGraphNode, [&r, run = found->second] {
      for (const GraphExec::Step& step : run->steps) {
        if (!step.work) continue;
        if (const Status status = step.work(); status != kSuccess) return status;
        if (r.sticky != kSuccess) break;
      }
      return kSuccess;
    });
  });
}
KVSCOPE_CUDA_PER_THREAD(cudaGraphLaunch_ptsz, cudaGraphLaunch, (void* exec, void* stream), (exec, stream))
KVSCOPE_CUDA_ALIAS(cudaGraphUpload_ptsz, cudaGraphUpload)

}  // namespace kvscope::driver
