// Gather rows of an embedding; an id that is another rank's gives zeros.
//
// As in store_kv.cu, a warp copies one row, in pieces as large as alignment allows.

#include <cassert>

#include "launch.h"

namespace minisgl {
namespace {

constexpr int kWarps = 4;

template <typename Piece>
__global__ void lookup_kernel(Lookup a) {
  const int64_t token = static_cast<int64_t>(blockIdx.x) * kWarps + threadIdx.x / 32;
  if (token >= a.tokens) return;
  const int32_t id = a.ids[token];
  const bool inside = id >= a.first && id < a.end;
  assert((inside || !a.must_be_inside) && "embedding_lookup: a token id has no row");
  const int64_t row = static_cast<int64_t>(id) - a.first;
  const Piece* from = reinterpret_cast<const Piece*>(a.weight + (inside ? row : 0) * a.weight_stride);
  Piece* to = reinterpret_cast<Piece*>(a.out + token * a.row_bytes);
  const int64_t pieces = a.row_bytes / sizeof(Piece);
  for (int64_t i = threadIdx.x % 32; i < pieces; i += 32) to[i] = inside ? from[i] : Piece{};
}

template <typename Piece>
cudaError_t launch(const Lookup& a, cudaStream_t stream) {
  const unsigned blocks = static_cast<unsigned>((a.tokens + kWarps - 1) / kWarps);
  lookup_kernel<Piece><<<blocks, kWarps * 32, 0, stream>>>(a);
  return cudaGetLastError();
}

}  // namespace

cudaError_t launch_lookup(const Lookup& a, cudaStream_t stream) {
  if (a.tokens == 0 || a.row_bytes == 0) return cudaSuccess;
  switch (common_width({reinterpret_cast<uint64_t>(a.weight), reinterpret_cast<uint64_t>(a.out),
                        static_cast<uint64_t>(a.row_bytes), static_cast<uint64_t>(a.weight_stride)})) {
    case 16: return launch<uint4>(a, stream);
    case 8: return launch<uint2>(a, stream);
    case 4: return launch<uint32_t>(a, stream);
    case 2: return launch<uint16_t>(a, stream);
    default: return launch<uint8_t>(a, stream);
  }
}

}  // namespace minisgl
