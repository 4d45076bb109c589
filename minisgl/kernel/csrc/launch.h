// What ops.cpp asks of the two kernels. No torch here: nvcc compiles these files in seconds.
//
// Rows are copied as raw bytes, whatever their dtype. All strides are in bytes.
#pragma once

#include <cstdint>
#include <initializer_list>

#include <cuda_runtime_api.h>

namespace minisgl {

struct StoreKV {
  char* k_cache;
  char* v_cache;
  const char* k;
  const char* v;
  const int32_t* out_loc;
  int64_t tokens;
  int64_t positions;        // places in the pool
  int64_t row_bytes;        // of one token: heads * head_dim * element size
  int64_t k_cache_stride;   // from one place to the next
  int64_t v_cache_stride;
  int64_t k_stride;         // from one token to the next
  int64_t v_stride;
};

struct Lookup {
  const char* weight;
  const int32_t* ids;
  char* out;                // dense
  int64_t tokens;
  int64_t row_bytes;
  int64_t weight_stride;    // from one row to the next
  int32_t first;            // row 0 is this id's
  int32_t end;
  bool must_be_inside;      // an id outside first .. end is an error, not a row of zeros
};

cudaError_t launch_store_kv(const StoreKV& args, cudaStream_t stream);
cudaError_t launch_lookup(const Lookup& args, cudaStream_t stream);

// The largest of 16, 8, 4, 2, 1 that divides every one of the numbers (addresses, strides, sizes).
inline int common_width(std::initializer_list<uint64_t> numbers) {
  uint64_t bits = 16;
  for (uint64_t number : numbers) bits |= number;
  return static_cast<int>(bits & (~bits + 1));
}

}  // namespace minisgl
