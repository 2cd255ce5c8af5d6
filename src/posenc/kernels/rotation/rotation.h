// What one rotation is: addresses, sizes and strides.
#pragma once

#include <cstdint>

#include "exported.h"

namespace posenc {

// The layout that __init__.py packs.
struct Rotation {
  int64_t x, out, cos, sin;  // addresses
  int64_t size[4], table_size[4], start;
  int64_t x_stride[4], out_stride[4], cos_stride[4], sin_stride[4];
  int64_t type, half_in, half_out, back, threads;
};
static_assert(sizeof(Rotation) == 34 * sizeof(int64_t), "__init__.py packs 34 integers");

}  // namespace posenc

// Turns that many tensors one after the other.
EXPORTED void posenc_rotate(const posenc::Rotation* given, int64_t count);
