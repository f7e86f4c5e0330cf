// Variables of every space, with every form of initializer.
__constant__ int table[8] = {1, 2, 3};
__constant__ double wide[2] = {1.5, 1e300};
__device__ float one = 1.0f;
__device__ int numbers[4] = {10, 20};
__device__ int* second = numbers + 1;
__device__ const char* names[2] = {"alpha", "beta"};
struct Node {
  int key;
  const float* value;
  const Node* next;
};
__device__ Node last = {7, &one, nullptr};
__constant__ Node first = {9, &one, &last};
template <int N>
__device__ int of_template[N] = {N};
extern __shared__ float dynamic[];
extern __shared__ __align__(1024) char tile[];
__managed__ int managed = 3;

template <int N>
__global__ void __launch_bounds__(128, 2) variables(int* out, int k) {
  __shared__ float rows[4][33];
  int local[16];
  for (int i = 0; i < 16; ++i) local[i] = out[i];
  rows[k & 3][threadIdx.x] = dynamic[threadIdx.x] + wide[k & 1];
  __syncthreads();
  out[0] = local[k] + table[k] + *second + names[k & 1][0] + first.next->key + of_template<N>[k] + managed + tile[k] +
           (int)rows[3][threadIdx.x];
}
template __global__ void variables<3>(int*, int);
