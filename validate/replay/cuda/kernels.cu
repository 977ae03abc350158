#include <algorithm>

#include "validate/replay/contribution.hpp"
#include "validate/replay/cuda/kernels.cuh"

namespace ringsim::replay::gpu::kernels {

namespace {

constexpr int threads = 512;

// Enough blocks for `count` threads' work, but no more than keep any GPU busy: H200 holds 132 x 4 blocks of 512.
int blocks_for(std::int64_t count) {
  return static_cast<int>(std::clamp<std::int64_t>((count + threads - 1) / threads, 1, 1024));
}

__device__ std::int64_t first_of_thread() { return std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; }
__device__ std::int64_t all_threads() { return std::int64_t{gridDim.x} * blockDim.x; }

bool lie_on_16_bytes(std::initializer_list<const float*> places) {
  return std::all_of(places.begin(), places.end(),
                     [](const float* p) { return reinterpret_cast<std::uintptr_t>(p) % sizeof(float4) == 0; });
}

// Sixteen bytes at a time, where they lie so; four at a time the rest.
__global__ void copy_kernel(float* to, const float* from, std::int64_t wide, std::int64_t count) {
  for (std::int64_t i = first_of_thread(); i < wide; i += all_threads())
    reinterpret_cast<float4*>(to)[i] = reinterpret_cast<const float4*>(from)[i];
  for (std::int64_t i = 4 * wide + first_of_thread(); i < count; i += all_threads()) to[i] = from[i];
}

__device__ float4 operator+(float4 a, float4 b) { return make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w); }

// `to` may be `base` or `what`: each element is read before it is written, by the same thread.
__global__ void add_kernel(float* to, const float* base, const float* what, std::int64_t wide, std::int64_t count) {
  for (std::int64_t i = first_of_thread(); i < wide; i += all_threads())
    reinterpret_cast<float4*>(to)[i] =
        reinterpret_cast<const float4*>(base)[i] + reinterpret_cast<const float4*>(what)[i];
  for (std::int64_t i = 4 * wide + first_of_thread(); i < count; i += all_threads()) to[i] = base[i] + what[i];
}

__global__ void set_kernel(float* to, std::int64_t count, float value) {
  for (std::int64_t i = first_of_thread(); i < count; i += all_threads()) to[i] = value;
}

__device__ float sum_of(Numbers numbers, std::int64_t element) {
  float sum = 0;
  for (Actor rank = numbers.first; rank <= numbers.last; ++rank)
    sum += contribution(numbers.ranks, rank, numbers.chunk, element);
  return sum;
}

__global__ void put_kernel(float* to, std::int64_t count, Numbers numbers) {
  for (std::int64_t i = first_of_thread(); i < count; i += all_threads()) to[i] = sum_of(numbers, i);
}

__global__ void compare_kernel(const float* memory, std::int64_t count, Numbers numbers, Tally* tally) {
  for (std::int64_t i = first_of_thread(); i < count; i += all_threads()) {
    if (__float_as_uint(memory[i]) == __float_as_uint(sum_of(numbers, i))) continue;
    atomicAdd(&tally->wrong, 1ULL);
    atomicMin(&tally->first, static_cast<unsigned long long>(i));
  }
}

__device__ long long now() {
  long long nanoseconds;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(nanoseconds));
  return nanoseconds;
}

__global__ void compute_kernel(long long nanoseconds) {
  const long long begin = now();
  while (now() - begin < nanoseconds) {
  }
}

}  // namespace

cudaError_t load() {
  for (const void* kernel :
       {reinterpret_cast<const void*>(copy_kernel), reinterpret_cast<const void*>(add_kernel),
        reinterpret_cast<const void*>(set_kernel), reinterpret_cast<const void*>(put_kernel),
        reinterpret_cast<const void*>(compare_kernel), reinterpret_cast<const void*>(compute_kernel)}) {
    cudaFuncAttributes attributes{};
    if (const cudaError_t error = cudaFuncGetAttributes(&attributes, kernel); error != cudaSuccess) return error;
  }
  return cudaSuccess;
}

cudaError_t copy(cudaStream_t stream, Memory to, Memory from, int blocks) {
  const std::int64_t wide = lie_on_16_bytes({to.data, from.data}) ? to.count / 4 : 0;
  copy_kernel<<<blocks, threads, 0, stream>>>(to.data, from.data, wide, to.count);
  return cudaGetLastError();
}

cudaError_t add(cudaStream_t stream, Memory to, Memory base, Memory what) {
  const std::int64_t wide = lie_on_16_bytes({to.data, base.data, what.data}) ? to.count / 4 : 0;
  add_kernel<<<blocks_for(wide > 0 ? wide : to.count), threads, 0, stream>>>(to.data, base.data, what.data, wide,
                                                                             to.count);
  return cudaGetLastError();
}

cudaError_t set(cudaStream_t stream, Memory to, float value) {
  set_kernel<<<blocks_for(to.count), threads, 0, stream>>>(to.data, to.count, value);
  return cudaGetLastError();
}

cudaError_t put(cudaStream_t stream, Memory to, Numbers numbers) {
  put_kernel<<<blocks_for(to.count), threads, 0, stream>>>(to.data, to.count, numbers);
  return cudaGetLastError();
}

cudaError_t compute(cudaStream_t stream, std::chrono::nanoseconds time) {
  compute_kernel<<<1, 1, 0, stream>>>(time.count());
  return cudaGetLastError();
}

cudaError_t compare(cudaStream_t stream, Memory memory, Numbers numbers, Tally* tally) {
  compare_kernel<<<blocks_for(memory.count), threads, 0, stream>>>(memory.data, memory.count, numbers, tally);
  return cudaGetLastError();
}

}  // namespace ringsim::replay::gpu::kernels
