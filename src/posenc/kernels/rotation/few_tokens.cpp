// Queries and keys of a few tokens turned in one call, with cos and sin computed within.
//
// It calls the kernels of tables and of rotations one after the other: the same code, so the same bits.
#include <cstdint>
#include <memory>
#include <vector>

#include "exported.h"
#include "rotation.h"
#include "sin_cos/sin_cos.h"

namespace posenc {

constexpr int64_t FP64 = 1;  // as __init__.py numbers the types

// The layout that few_tokens.py packs.
struct FewTokens {
  const int64_t* coords;  // the first position of a row at coords[row · row_stride]; the others count up by one
  int64_t row_stride, rows;  // one row serves all rows of q and k, if there are more
  const double* frequencies;
  int64_t n;  // how many
  int64_t start, type, half_in, half_out, threads, heads_of_k;
  int64_t size[4];                   // of q [b, h, t, d]
  int64_t address[4], stride[4][4];  // of q, k, turned q and turned k
};
static_assert(sizeof(FewTokens) == 35 * sizeof(int64_t), "few_tokens.py packs 35 integers");

static Rotation rotation(const FewTokens& f, const void* cos, const void* sin, bool of_k) {
  Rotation r{};
  const int64_t heads = of_k ? f.heads_of_k : f.size[1], tokens = f.size[2], n = f.n;
  const int64_t size[4] = {f.size[0], heads, tokens, f.size[3]};
  const int64_t table_size[4] = {f.rows, 1, tokens, n}, table_stride[4] = {tokens * n, 0, n, 1};
  r.x = f.address[of_k], r.out = f.address[2 + of_k];
  r.cos = reinterpret_cast<int64_t>(cos), r.sin = reinterpret_cast<int64_t>(sin);
  for (int axis = 0; axis < 4; ++axis) {
    r.size[axis] = size[axis], r.table_size[axis] = table_size[axis];
    r.x_stride[axis] = f.stride[of_k][axis], r.out_stride[axis] = f.stride[2 + of_k][axis];
    r.cos_stride[axis] = r.sin_stride[axis] = table_stride[axis];
  }
  r.start = f.start, r.type = f.type, r.half_in = f.half_in, r.half_out = f.half_out, r.threads = f.threads;
  return r;
}

}  // namespace posenc

EXPORTED void posenc_rotate_few(const posenc::FewTokens* given) {
  const posenc::FewTokens& f = *given;
  const int64_t tokens = f.size[2], all = f.rows * tokens * f.n, strides[3] = {tokens * f.n, f.n, 1};
  const bool fp64 = f.type == posenc::FP64;
  std::vector<int64_t> starts(f.rows);
  for (int64_t row = 0; row < f.rows; ++row) starts[row] = f.coords[row * f.row_stride];
  const std::unique_ptr<double[]> memory(new double[2 * all]);  // of floats, half of it is used
  char* sin = reinterpret_cast<char*>(memory.get());
  char* cos = sin + all * (fp64 ? sizeof(double) : sizeof(float));
  posenc_sin_cos_consecutive(starts.data(), f.rows, tokens, f.frequencies, f.n, sin, cos, strides, fp64, static_cast<int>(f.threads));
  const posenc::Rotation both[2] = {posenc::rotation(f, cos, sin, false), posenc::rotation(f, cos, sin, true)};
  posenc_rotate(both, 2);
}
