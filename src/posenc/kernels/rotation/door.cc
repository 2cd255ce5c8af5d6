// Operators for one decoded token: allocation, addresses and both kernels in one call from Python.
//
// Written against PyTorch's stable C ABI (torch/csrc/stable), so that one build serves all later versions of PyTorch and every
// version of Python. The kernels are those of the plain library, whose addresses posenc_door_open takes: same code, same bits.
// The arguments are checked in Python (door.py).

#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>
#include <torch/csrc/stable/tensor.h>

#include <cstdint>
#include <tuple>
#include <vector>

namespace {

using torch::stable::Tensor;
using Rotate = void (*)(const void*, int64_t);
using Fill = void (*)(const void*, int64_t, int64_t, const void*, int64_t, void*, void*, const void*, int, int);

Rotate rotate = nullptr;
Fill fill = nullptr;

constexpr int64_t DOUBLE = 1;  // as native.py numbers the types

// The 34 integers of rotation.cpp's struct Rotation.
struct Packed {
  int64_t at[34];
  int count = 0;
  void add(int64_t value) { at[count++] = value; }
  void add(const Tensor& x) {
    for (int64_t axis = 0; axis < 4; axis++) add(x.stride(axis));
  }
};

struct Table {
  const void *cos, *sin;
  int64_t size[4], cos_stride[4], sin_stride[4];
};

struct Options {
  int64_t start;
  bool half_in, half_out, back;
  int64_t type, threads;
};

void pack(Packed& to, const Tensor& x, const Tensor& out, const Table& table, const Options& options) {
  to.add(reinterpret_cast<int64_t>(x.data_ptr()));
  to.add(reinterpret_cast<int64_t>(out.data_ptr()));
  to.add(reinterpret_cast<int64_t>(table.cos));
  to.add(reinterpret_cast<int64_t>(table.sin));
  for (int64_t axis = 0; axis < 4; axis++) to.add(x.size(axis));
  for (int64_t size : table.size) to.add(size);
  to.add(options.start);
  to.add(x);
  to.add(out);
  for (int64_t stride : table.cos_stride) to.add(stride);
  for (int64_t stride : table.sin_stride) to.add(stride);
  to.add(options.type), to.add(options.half_in), to.add(options.half_out), to.add(options.back), to.add(options.threads);
}

Tensor like(const Tensor& x) { return x.is_contiguous() ? torch::stable::new_empty(x, x.sizes()) : torch::stable::empty_like(x); }

std::tuple<Tensor, Tensor> turn(const Tensor& q, const Tensor& k, const Table& table, const Options& options) {
  Tensor out_q = like(q), out_k = like(k);
  Packed both[2];
  pack(both[0], q, out_q, table, options);
  pack(both[1], k, out_k, table, options);
  int64_t packed[68];
  for (int i = 0; i < 68; i++) packed[i] = both[i / 34].at[i % 34];
  rotate(packed, 2);
  return {out_q, out_k};
}

// Queries and keys turned, with the tables of consecutive positions computed within; coords [b, t] int64, omega [n] float64.
std::tuple<Tensor, Tensor> rotate_at(
    const Tensor q, const Tensor k, const Tensor coords, const Tensor omega, int64_t start, bool half_in, bool half_out,
    int64_t type, int64_t threads) {
  const int64_t rows = coords.stride(0) == 0 ? 1 : coords.size(0), tokens = coords.size(1), n = omega.size(0);
  std::vector<int64_t> firsts(rows);
  for (int64_t row = 0; row < rows; row++)
    firsts[row] = static_cast<const int64_t*>(coords.data_ptr())[row * coords.stride(0)];
  std::vector<double> memory(2 * rows * tokens * n);  // enough for either type
  const int64_t strides[3] = {tokens * n, n, 1}, bytes = type == DOUBLE ? 8 : 4;
  char* sin = reinterpret_cast<char*>(memory.data());
  char* cos = sin + rows * tokens * n * bytes;
  fill(firsts.data(), rows, tokens, omega.data_ptr(), n, sin, cos, strides, type == DOUBLE, static_cast<int>(threads));
  const Table table{cos, sin, {rows, 1, tokens, n}, {tokens * n, 0, n, 1}, {tokens * n, 0, n, 1}};
  return turn(q, k, table, {start, half_in, half_out, false, type, threads});
}

}  // namespace

extern "C" __attribute__((visibility("default"))) void posenc_door_open(void* rotation, void* tables) {
  rotate = reinterpret_cast<Rotate>(rotation);
  fill = reinterpret_cast<Fill>(tables);
}

extern "C" __attribute__((visibility("default"))) const char* posenc_door_sources() { return POSENC_SOURCES; }

STABLE_TORCH_LIBRARY(posenc_door, m) {
  m.def(
      "rotate_at(Tensor q, Tensor k, Tensor coords, Tensor omega, int start, bool half_in, bool half_out, int type, "
      "int threads) -> (Tensor, Tensor)");
}

STABLE_TORCH_LIBRARY_IMPL(posenc_door, CPU, m) {
  m.impl("rotate_at", TORCH_BOX(&rotate_at));
}
