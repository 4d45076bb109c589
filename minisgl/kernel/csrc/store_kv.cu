// Scatter new keys and values to their places in the pool.
//
// A warp copies one row: lane i takes the pieces i, i + 32, ..., so that the warp reads and writes whole lines
// of memory. Half of the grid (blockIdx.y) copies keys, half values.

#include <cassert>

#include "launch.h"

namespace minisgl {
namespace {

constexpr int kWarps = 4;

template <typename Piece>
__global__ void store_kv_kernel(StoreKV a) {
  const int64_t token = static_cast<int64_t>(blockIdx.x) * kWarps + threadIdx.x / 32;
  if (token >= a.tokens) return;
  const int64_t place = a.out_loc[token];
  assert(place >= 0 && place < a.positions && "store_kv: out_loc names a place outside of the pool");
  const bool values = blockIdx.y == 1;
  const char* from = values ? a.v + token * a.v_stride : a.k + token * a.k_stride;
  char* to = values ? a.v_cache + place * a.v_cache_stride : a.k_cache + place * a.k_cache_stride;
  const int64_t pieces = a.row_bytes / sizeof(Piece);
  for (int64_t i = threadIdx.x % 32; i < pieces; i += 32)
    reinterpret_cast<Piece*>(to)[i] = reinterpret_cast<const Piece*>(from)[i];
}

template <typename Piece>
cudaError_t launch(const StoreKV& a, cudaStream_t stream) {
  const dim3 grid(static_cast<unsigned>((a.tokens + kWarps - 1) / kWarps), 2);
  store_kv_kernel<Piece><<<grid, kWarps * 32, 0, stream>>>(a);
  return cudaGetLastError();
}

}  // namespace

cudaError_t launch_store_kv(const StoreKV& a, cudaStream_t stream) {
  if (a.tokens == 0 || a.row_bytes == 0) return cudaSuccess;
  const auto address = [](const char* p) { return reinterpret_cast<uint64_t>(p); };
  const auto number = [](int64_t n) { return static_cast<uint64_t>(n); };
  switch (common_width({address(a.k_cache), address(a.v_cache), address(a.k), address(a.v),
                        number(a.row_bytes), number(a.k_cache_stride), number(a.v_cache_stride),
                        number(a.k_stride), number(a.v_stride)})) {
    case 16: return launch<uint4>(a, stream);
    case 8: return launch<uint2>(a, stream);
    case 4: return launch<uint32_t>(a, stream);
    case 2: return launch<uint16_t>(a, stream);
    default: return launch<uint8_t>(a, stream);
  }
}

}  // namespace minisgl
