// Vectors of 16 numbers in fp32, whatever the processor, and e^x of them.
#pragma once

#include <cstdint>

#define ALWAYS_INLINE inline __attribute__((always_inline))

namespace posenc {

constexpr int64_t LANES = 16;
typedef float Lanes __attribute__((vector_size(64), aligned(4), may_alias));
typedef int32_t Integers __attribute__((vector_size(64)));

ALWAYS_INLINE int64_t whole(int64_t n) { return (n + LANES - 1) / LANES * LANES; }

// e^x with an error of at most 1 unit in the last place: x = n·ln 2 + r, |r| ≤ ln 2 / 2, Taylor's series of e^r; 0 where e^x is below 2^-125.
ALWAYS_INLINE void exponentiate(Lanes& x) {
  const Integers seen = ~(x < -86.6f);  // NaN stays
  x = (Lanes)((Integers)x & seen);
  const Lanes shifted = x * 1.44269504f + 12582912.0f, n = shifted - 12582912.0f;  // 1.5 · 2^23: adding it rounds
  const Lanes r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
  Lanes sum = r * (1.0f / 5040) + 1.0f / 720;
  sum = sum * r + 1.0f / 120;
  sum = sum * r + 1.0f / 24;
  sum = sum * r + 1.0f / 6;
  sum = sum * r + 0.5f;
  sum = (sum * r) * r + r + 1.0f;
  const Integers power = ((Integers)shifted - 0x4b400000 + 127) << 23;
  x = (Lanes)((Integers)(sum * (Lanes)power) & seen);
}

}  // namespace posenc
