// Vectors of 16 numbers in fp32, whatever the processor, and e^x of them; halves and quarters of such vectors for code that keeps
// them in registers: gcc keeps a vector that is wider than the registers in memory.
#pragma once

#include <cstdint>

#define ALWAYS_INLINE inline __attribute__((always_inline))

namespace posenc {

constexpr int64_t LANES = 16;

template <int COUNT>
struct Of;  // as many numbers in fp32, anywhere in memory, and as many integers
template <>
struct Of<16> {
  typedef float Numbers __attribute__((vector_size(64), aligned(4), may_alias));
  typedef int32_t Integers __attribute__((vector_size(64)));
};
template <>
struct Of<8> {
  typedef float Numbers __attribute__((vector_size(32), aligned(4), may_alias));
  typedef int32_t Integers __attribute__((vector_size(32)));
};
template <>
struct Of<4> {
  typedef float Numbers __attribute__((vector_size(16), aligned(4), may_alias));
  typedef int32_t Integers __attribute__((vector_size(16)));
};
typedef Of<16>::Numbers Lanes;

ALWAYS_INLINE int64_t whole(int64_t n) { return (n + LANES - 1) / LANES * LANES; }

// e^x with an error of at most 1 unit in the last place: x = n·ln 2 + r, |r| ≤ ln 2 / 2, Taylor's series of e^r; 0 below `lowest`, at
// least -86.6: e^-86.6 is 2^-125.
template <int COUNT = LANES>
ALWAYS_INLINE void exponentiate(typename Of<COUNT>::Numbers& x, float lowest = -86.6f) {
  using V = typename Of<COUNT>::Numbers;
  using Integers = typename Of<COUNT>::Integers;
  const Integers seen = ~(x < lowest);  // NaN stays
  x = (V)((Integers)x & seen);
  const V shifted = x * 1.44269504f + 12582912.0f, n = shifted - 12582912.0f;  // 1.5 · 2^23: adding it rounds
  const V r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
  V sum = r * (1.0f / 5040) + 1.0f / 720;
  sum = sum * r + 1.0f / 120;
  sum = sum * r + 1.0f / 24;
  sum = sum * r + 1.0f / 6;
  sum = sum * r + 0.5f;
  sum = (sum * r) * r + r + 1.0f;
  const Integers power = ((Integers)shifted - 0x4b400000 + 127) << 23;
  x = (V)((Integers)(sum * (V)power) & seen);
}

}  // namespace posenc
