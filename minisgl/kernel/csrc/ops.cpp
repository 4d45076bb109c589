// The operations as torch sees them: every tensor is checked here, then the kernels get plain pointers.
//
// torch/library.h instead of torch/extension.h: no Python binding, so a build takes half as long.

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <torch/library.h>

#include <string>

#include "launch.h"

namespace {

// Numbers become text here and not in a stream: where the compiler links a C++ library of its own into this
// one, streams of the two get in each other's way, and the message would be a crash.
std::string text(at::IntArrayRef numbers) {
  std::string out = "[";
  for (const int64_t number : numbers) out += (out.size() > 1 ? ", " : "") + std::to_string(number);
  return out + "]";
}

std::string kind(const at::Tensor& x) { return std::string(c10::toString(x.scalar_type())) + " " + text(x.sizes()); }

void check_indices(const at::Tensor& x, const char* name, const at::Tensor& beside, const char* other) {
  TORCH_CHECK_VALUE(x.scalar_type() == at::kInt && x.dim() == 1 && x.is_contiguous(), name,
                    " should be contiguous int32 [tokens], it is ", kind(x));
  TORCH_CHECK_VALUE(x.device() == beside.device(), name, " is on ", x.device().str(), ", ", other, " on ",
                    beside.device().str());
}

void check_on_cuda(const at::Tensor& x, const char* name) {
  TORCH_CHECK_VALUE(x.is_cuda(), name, " should be on a CUDA device, it is on ", x.device().str());
}

// A cache as places: [num_pages, page_size, H, D], whose places follow one another without gaps.
int64_t check_cache(const at::Tensor& cache, const char* name, const at::Tensor& like) {
  check_on_cuda(cache, name);
  TORCH_CHECK_VALUE(cache.dim() == 4 && cache.is_contiguous(), name,
                    " should be contiguous [num_pages, page_size, heads, head_dim], it is ", kind(cache),
                    " with strides ", text(cache.strides()));
  TORCH_CHECK_VALUE(cache.sizes() == like.sizes() && cache.scalar_type() == like.scalar_type() &&
                        cache.device() == like.device(),
                    "k_cache and v_cache should be alike, they are ", kind(like), " on ", like.device().str(),
                    " and ", kind(cache), " on ", cache.device().str());
  return cache.size(0) * cache.size(1);
}

void check_new(const at::Tensor& x, const char* name, const at::Tensor& cache, const at::Tensor& out_loc) {
  TORCH_CHECK_VALUE(x.dim() == 3 && x.size(0) == out_loc.size(0) && x.size(1) == cache.size(2) &&
                        x.size(2) == cache.size(3),
                    name, " should be [tokens, heads, head_dim] = ",
                    text({out_loc.size(0), cache.size(2), cache.size(3)}), ", it is ", text(x.sizes()));
  TORCH_CHECK_VALUE(x.scalar_type() == cache.scalar_type(), name, " is ", c10::toString(x.scalar_type()),
                    ", the cache ", c10::toString(cache.scalar_type()));
  TORCH_CHECK_VALUE(x.device() == cache.device(), name, " is on ", x.device().str(), ", the cache on ",
                    cache.device().str());
  TORCH_CHECK_VALUE(x.stride(2) == 1 && x.stride(1) == x.size(2), name,
                    " should have each token's heads side by side, its strides are ", text(x.strides()));
}

void store_kv(const at::Tensor& k_cache, const at::Tensor& v_cache, const at::Tensor& out_loc,
              const at::Tensor& k, const at::Tensor& v) {
  const int64_t positions = check_cache(k_cache, "k_cache", k_cache);
  check_cache(v_cache, "v_cache", k_cache);
  check_indices(out_loc, "out_loc", k_cache, "the cache");
  check_new(k, "k", k_cache, out_loc);
  check_new(v, "v", v_cache, out_loc);
  const int64_t size = k_cache.element_size();
  const int64_t row_bytes = k_cache.size(2) * k_cache.size(3) * size;
  const c10::cuda::CUDAGuard guard(k_cache.device());
  C10_CUDA_CHECK(minisgl::launch_store_kv(
      {
          .k_cache = static_cast<char*>(k_cache.data_ptr()),
          .v_cache = static_cast<char*>(v_cache.data_ptr()),
          .k = static_cast<const char*>(k.data_ptr()),
          .v = static_cast<const char*>(v.data_ptr()),
          .out_loc = out_loc.data_ptr<int32_t>(),
          .tokens = out_loc.size(0),
          .positions = positions,
          .row_bytes = row_bytes,
          .k_cache_stride = row_bytes,
          .v_cache_stride = row_bytes,
          .k_stride = k.stride(0) * size,
          .v_stride = v.stride(0) * size,
      },
      c10::cuda::getCurrentCUDAStream()));
}

at::Tensor embedding_lookup(const at::Tensor& weight, const at::Tensor& ids, int64_t first, int64_t end,
                            bool must_be_inside) {
  check_on_cuda(weight, "weight");
  TORCH_CHECK_VALUE(weight.dim() == 2 && weight.is_contiguous(),
                    "weight should be contiguous [rows, hidden], it is ", kind(weight), " with strides ",
                    text(weight.strides()));
  check_indices(ids, "ids", weight, "weight");
  TORCH_CHECK_VALUE(0 <= first && first <= end && end - first <= weight.size(0) && end <= INT32_MAX,
                    "vocab_range ", text({first, end}), " does not fit the ", std::to_string(weight.size(0)),
                    " rows of weight");
  at::Tensor out = at::empty({ids.size(0), weight.size(1)}, weight.options());
  const int64_t row_bytes = weight.size(1) * weight.element_size();
  const c10::cuda::CUDAGuard guard(weight.device());
  C10_CUDA_CHECK(minisgl::launch_lookup(
      {
          .weight = static_cast<const char*>(weight.data_ptr()),
          .ids = ids.data_ptr<int32_t>(),
          .out = static_cast<char*>(out.data_ptr()),
          .tokens = ids.size(0),
          .row_bytes = row_bytes,
          .weight_stride = row_bytes,
          .first = static_cast<int32_t>(first),
          .end = static_cast<int32_t>(end),
          .must_be_inside = must_be_inside,
      },
      c10::cuda::getCurrentCUDAStream()));
  return out;
}

}  // namespace

TORCH_LIBRARY(minisgl, m) {
  m.def("store_kv(Tensor(a!) k_cache, Tensor(b!) v_cache, Tensor out_loc, Tensor k, Tensor v) -> ()", &store_kv);
  m.def("embedding_lookup(Tensor weight, Tensor ids, int first, int end, bool must_be_inside) -> Tensor",
        &embedding_lookup);
}
