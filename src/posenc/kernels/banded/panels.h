// What the kernels of a band share: numbers read as fp32, rows transposed in panels, and two products.
//
// Registers V hold COUNT numbers; a panel's 16 lanes are LANES / COUNT of them. Multiply-adds are fused.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "lanes.h"
#include "processor.h"

namespace posenc {

constexpr float WEIGHTLESS = -80.0f;  // less than the largest logit: e^-80 times a value is still no subnormal number, which are slow
constexpr float LOWEST = std::numeric_limits<float>::lowest();

// Swaps lanes of one half with those of the other between rows that stand as far apart; after halves of 1, 2, 4, … the rows are
// the columns.
template <int COUNT, int HALF>
ALWAYS_INLINE void swap_halves(typename Of<COUNT>::Numbers* rows) {
  using V = typename Of<COUNT>::Numbers;
#define FOUR(lane, from) lane(from), lane(from + 1), lane(from + 2), lane(from + 3)
#define EIGHT(lane, from) FOUR(lane, from), FOUR(lane, from + 4)
#define ABOVE(l) (((l)&HALF) ? COUNT + (l)-HALF : (l))
#define BELOW(l) (((l)&HALF) ? COUNT + (l) : (l) + HALF)
#if defined(__clang__)
#define TAKE(...) __builtin_shufflevector(above, below, __VA_ARGS__)
#else
#define TAKE(...) __builtin_shuffle(above, below, typename Of<COUNT>::Integers{__VA_ARGS__})
#endif
  for (int r = 0; r < COUNT; ++r) {
    if (r & HALF) continue;
    const V above = rows[r], below = rows[r + HALF];
    if constexpr (COUNT == 16) {
      rows[r] = TAKE(EIGHT(ABOVE, 0), EIGHT(ABOVE, 8));
      rows[r + HALF] = TAKE(EIGHT(BELOW, 0), EIGHT(BELOW, 8));
    } else if constexpr (COUNT == 8) {
      rows[r] = TAKE(EIGHT(ABOVE, 0));
      rows[r + HALF] = TAKE(EIGHT(BELOW, 0));
    } else {
      rows[r] = TAKE(FOUR(ABOVE, 0));
      rows[r + HALF] = TAKE(FOUR(BELOW, 0));
    }
  }
#undef TAKE
#undef BELOW
#undef ABOVE
#undef EIGHT
#undef FOUR
}

// COUNT numbers in fp32. bfloat16 is the upper half of it.
template <int COUNT>
ALWAYS_INLINE void read(const float* from, typename Of<COUNT>::Numbers& x) {
  x = *(const typename Of<COUNT>::Numbers*)from;
}
template <int COUNT>
ALWAYS_INLINE void read(const uint16_t* from, typename Of<COUNT>::Numbers& x) {
  typedef uint16_t Halves __attribute__((vector_size(2 * COUNT), aligned(2), may_alias));
  x = (typename Of<COUNT>::Numbers)(__builtin_convertvector(*(const Halves*)from, typename Of<COUNT>::Integers) << 16);
}

// Rows in panels: panel p holds channel c of row 16p + lane at (p·width + c)·16 + lane. Rows past the last are zeros.
template <int COUNT, class T>
ALWAYS_INLINE void transpose(const T* rows, int64_t stride, int64_t count, int64_t width, float* panels) {
  using V = typename Of<COUNT>::Numbers;
  for (int64_t first = 0; first < whole(count); first += COUNT) {
    float* const panel = panels + first / LANES * LANES * width + first % LANES;
    const int64_t real = std::min<int64_t>(COUNT, count - first);
    for (int64_t c = 0; c < width; c += COUNT) {
      V some[COUNT];
      for (int64_t r = 0; r < COUNT; ++r) {
        some[r] = V{};
        if (r < real) read<COUNT>(rows + (first + r) * stride + c, some[r]);
      }
      swap_halves<COUNT, 1>(some), swap_halves<COUNT, 2>(some);
      if constexpr (COUNT > 4) swap_halves<COUNT, 4>(some);
      if constexpr (COUNT > 8) swap_halves<COUNT, 8>(some);
      for (int64_t lane = 0; lane < COUNT; ++lane) *(V*)(panel + (c + lane) * LANES) = some[lane];
    }
  }
}

// Rows one after the other.
template <int COUNT, class T>
ALWAYS_INLINE void copy(const T* rows, int64_t stride, int64_t count, int64_t width, float* to) {
  for (int64_t r = 0; r < count; ++r)
    for (int64_t c = 0; c < width; c += COUNT)
      read<COUNT>(rows + r * stride + c, *(typename Of<COUNT>::Numbers*)(to + r * width + c));
}

// Logits of ROWS queries and WIDE registers of keys.
template <int COUNT, int ROWS, int WIDE>
ALWAYS_INLINE void products(const float* q, const float* panels, int64_t width, float* logits, int64_t pitch) {
  FUSED_HERE
  using V = typename Of<COUNT>::Numbers;
  constexpr int64_t PER = LANES / COUNT;
  V sum[ROWS][WIDE] = {};
  for (int64_t c = 0; c < width; ++c)
    for (int w = 0; w < WIDE; ++w) {
      const V k = *(const V*)(panels + (w / PER * width + c) * LANES + w % PER * COUNT);
      for (int r = 0; r < ROWS; ++r) sum[r][w] += q[r * width + c] * k;
    }
  for (int r = 0; r < ROWS; ++r)
    for (int w = 0; w < WIDE; ++w) *(V*)(logits + r * pitch + w * COUNT) = sum[r][w];
}

// WIDE registers of channels of ROWS sums over j of weights times rows: weight (r, j) is at r·across + j·along.
template <int COUNT, int ROWS, int WIDE>
ALWAYS_INLINE void sums(const float* weights, int64_t across, int64_t along, const float* rows, int64_t width, int64_t begin,
                        int64_t end, typename Of<COUNT>::Numbers (&sum)[ROWS][WIDE]) {
  FUSED_HERE
  using V = typename Of<COUNT>::Numbers;
  for (int r = 0; r < ROWS; ++r)
    for (int w = 0; w < WIDE; ++w) sum[r][w] = V{};
  for (int64_t j = begin; j < end; ++j)
    for (int w = 0; w < WIDE; ++w) {
      const V value = *(const V*)(rows + j * width + w * COUNT);
      for (int r = 0; r < ROWS; ++r) sum[r][w] += weights[r * across + j * along] * value;
    }
}

}  // namespace posenc
