typedef struct { half x; __nv_bfloat16 y; } Pair;
struct alignas(16) P { const Pair* p[2]; float4 f; dim3 g; unsigned long long n{1}; Pair in[2][3]; };
