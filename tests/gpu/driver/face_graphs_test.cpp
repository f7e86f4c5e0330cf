// Graphs of libcudart: lists of nodes, and handles of nodes that a program passes.
#include <algorithm>
#include <array>
#include <cstddef>
#include <vector>

#include "gpu/driver/cuda_types.h"
#include "tests/gpu/driver/cuda_runtime_fixture.h"

extern "C" {
int cudaGraphCreate(void** graph, unsigned flags);
int cudaGraphDestroy(void* graph);
int cudaGraphAddEmptyNode(void** node, void* graph, void* const* after, std::size_t count);
int cudaGraphAddHostNode(void** node, void* graph, void* const* after, std::size_t count,
                         const kvscope::driver::HostNodeParams* p);
int cudaGraphAddKernelNode(void** node, void* graph, void* const* after, std::size_t count,
                           const kvscope::driver::KernelNodeParams* p);
int cudaGraphAddDependencies_v2(void* graph, void* const* from, void* const* to, const void* data, std::size_t count);
int cudaGraphGetNodes(void* graph, void** nodes, std::size_t* count);
int cudaGraphNodeGetType(void* node, int* type);
int cudaGraphKernelNodeSetParams(void* node, const kvscope::driver::KernelNodeParams* p);
int cudaGraphExecKernelNodeSetParams(void* exec, void* node, const kvscope::driver::KernelNodeParams* p);
int cudaGraphExecUpdate(void* exec, void* graph, kvscope::driver::UpdateResultInfo* result);
}

namespace kvscope::driver_tests::face_graphs_test {

using testing::ElementsAre;
constexpr int kInvalidValue = 1;  // cudaErrorInvalidValue

class CudaGraphs : public CudaRuntime {
 protected:
  void SetUp() override {
    CudaRuntime::SetUp();
    ASSERT_EQ(cudaGraphCreate(&graph_, 0), 0);
    ASSERT_EQ(cudaGraphCreate(&other_graph_, 0), 0);
    ASSERT_EQ(cudaGraphAddEmptyNode(&first_, graph_, nullptr, 0), 0);
    ASSERT_EQ(cudaGraphAddEmptyNode(&second_, graph_, &first_, 1), 0);
    ASSERT_EQ(cudaGraphAddEmptyNode(&foreign_, other_graph_, nullptr, 0), 0);
  }
  void *graph_ = nullptr, *other_graph_ = nullptr, *first_ = nullptr, *second_ = nullptr, *foreign_ = nullptr;
};

TEST_F(CudaGraphs, TheListOfNodesHasTheNumberObtained) {
  std::size_t count = 0;
  ASSERT_EQ(cudaGraphGetNodes(graph_, nullptr, &count), 0);
  EXPECT_EQ(count, 2U);
  std::array<void*, 4> nodes{&count, &count, &count, &count};
  for (const std::size_t room : {3, 2, 1, 0}) {
    nodes.fill(&count);
    count = room;
    ASSERT_EQ(cudaGraphGetNodes(graph_, nodes.data(), &count), 0);
    EXPECT_EQ(count, std::min<std::size_t>(room, 2)) << room;
    EXPECT_EQ(nodes[0], room > 0 ? first_ : &count) << room;
    EXPECT_EQ(nodes[1], room > 1 ? second_ : &count) << room;
    EXPECT_EQ(nodes[2], room > 2 ? nullptr : &count) << room;  // an entry without a node
    EXPECT_EQ(nodes[3], &count) << room;
  }
}

// Handles of another graph, of a destroyed graph, and of no object at all.
TEST_F(CudaGraphs, HandlesThatAreNoNodeOfTheGraphAreRejected) {
  void *destroyed = nullptr, *node = nullptr, *graph = nullptr;
  ASSERT_EQ(cudaGraphCreate(&graph, 0), 0);
  ASSERT_EQ(cudaGraphAddEmptyNode(&destroyed, graph, nullptr, 0), 0);
  ASSERT_EQ(cudaGraphDestroy(graph), 0);
  std::array<std::byte, 256> bytes{};
  int type = -1;
  for (void* const wrong : {foreign_, destroyed, static_cast<void*>(nullptr), static_cast<void*>(bytes.data())}) {
    EXPECT_EQ(cudaGraphAddEmptyNode(&node, graph_, &wrong, 1), kInvalidValue);
    EXPECT_EQ(cudaGraphAddDependencies_v2(graph_, &wrong, &first_, nullptr, 1), kInvalidValue);
    EXPECT_EQ(cudaGraphAddDependencies_v2(graph_, &first_, &wrong, nullptr, 1), kInvalidValue);
    if (wrong != foreign_) {
      EXPECT_EQ(cudaGraphNodeGetType(wrong, &type), kInvalidValue);
    }
  }
  std::size_t count = 0;
  ASSERT_EQ(cudaGraphGetNodes(graph_, nullptr, &count), 0);
  EXPECT_EQ(count, 2U);
  EXPECT_EQ(cudaGraphNodeGetType(first_, &type), 0);
  EXPECT_EQ(type, driver::kEmptyNode);
  EXPECT_EQ(cudaGraphNodeGetType(first_, nullptr), kInvalidValue);
}

TEST_F(CudaGraphs, OnlyAKernelNodeTakesParametersOfAKernel) {
  void* x = device_copy();
  void* y = device_copy();
  void *kernel = nullptr, *exec = nullptr;
  unsigned n = 64;
  std::array<void*, 3> arguments{&y, &x, &n};
  const driver::KernelNodeParams p{.function = &scale_function,
                                   .grid = {1, 1, 1},
                                   .block = {64, 1, 1},
                                   .dynamic_shared = 0,
                                   .arguments = arguments.data(),
                                   .extra = nullptr};
  ASSERT_EQ(cudaGraphAddKernelNode(&kernel, graph_, nullptr, 0, &p), 0);
  EXPECT_EQ(cudaGraphKernelNodeSetParams(kernel, &p), 0);
  EXPECT_EQ(cudaGraphKernelNodeSetParams(first_, &p), kInvalidValue);
  EXPECT_EQ(cudaGraphKernelNodeSetParams(&n, &p), kInvalidValue);
  ASSERT_EQ(cudaGraphInstantiate(&exec, graph_, 0), 0);
  EXPECT_EQ(cudaGraphExecKernelNodeSetParams(exec, kernel, &p), 0);
  EXPECT_EQ(cudaGraphExecKernelNodeSetParams(exec, first_, &p), kInvalidValue);
  EXPECT_EQ(cudaGraphExecKernelNodeSetParams(exec, foreign_, &p), kInvalidValue);
  ASSERT_EQ(cudaGraphLaunch(exec, nullptr), 0);
  ASSERT_EQ(cudaMemcpy(output_.data(), y, 4, 2), 0);
  EXPECT_EQ(output_[0], 2);
}

// Programs read the result, and instantiate the graph after an error.
TEST_F(CudaGraphs, AnUpdateKeepsTheInstanceUnlessTheGraphHasTheSameNodes) {
  void *exec = nullptr, *same = nullptr, *node = nullptr;
  ASSERT_EQ(cudaGraphInstantiate(&exec, graph_, 0), 0);
  ASSERT_EQ(cudaGraphCreate(&same, 0), 0);
  ASSERT_EQ(cudaGraphAddEmptyNode(&node, same, nullptr, 0), 0);
  ASSERT_EQ(cudaGraphAddEmptyNode(&node, same, &node, 1), 0);
  driver::UpdateResultInfo result{.result = 77, .node = nullptr, .from_node = nullptr};
  EXPECT_EQ(cudaGraphExecUpdate(exec, same, &result), 0);
  EXPECT_EQ(result.result, 0);                                       // cudaGraphExecUpdateSuccess
  EXPECT_EQ(cudaGraphExecUpdate(exec, other_graph_, &result), 910);  // cudaErrorGraphExecUpdateFailure
  EXPECT_EQ(result.result, 2);                                       // cudaGraphExecUpdateErrorTopologyChanged
  const driver::HostNodeParams work{.function = [](void*) {}, .data = nullptr};
  void *typed = nullptr, *last = nullptr;
  ASSERT_EQ(cudaGraphCreate(&typed, 0), 0);
  ASSERT_EQ(cudaGraphAddEmptyNode(&node, typed, nullptr, 0), 0);
  ASSERT_EQ(cudaGraphAddHostNode(&last, typed, &node, 1, &work), 0);
  EXPECT_EQ(cudaGraphExecUpdate(exec, typed, &result), 910);
  EXPECT_EQ(result.result, 3);  // cudaGraphExecUpdateErrorNodeTypeChanged
  EXPECT_EQ(result.node, last);
  // A cycle has no order.
  ASSERT_EQ(cudaGraphAddDependencies_v2(graph_, &second_, &first_, nullptr, 1), 0);
  EXPECT_EQ(cudaGraphExecUpdate(exec, graph_, &result), 910);
  EXPECT_EQ(result.result, 2);
  EXPECT_EQ(cudaGraphExecUpdate(exec, same, nullptr), 0);
}

}  // namespace kvscope::driver_tests::face_graphs_test
