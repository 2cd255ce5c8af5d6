// Turns pairs of channels: (a, b) -> (a cos - b sin, b cos + a sin), in one pass over memory and with one rounding.
//
//   x, out [b, h, t, d]    cos, sin [b, h, t, n], any strides; those of an expanded axis are 0
//
// The n pairs are channels start ... start + 2n - 1, the rest is copied. Sums and products are those of plain torch, each rounded
// by itself, so the results are too, bit for bit: fp32 for float, bfloat16 and half, fp64 for double.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "threads.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#if defined(__clang__)
#define LANES_ARE_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define LANES_ARE_INDEPENDENT _Pragma("GCC ivdep")
#endif
#define INLINE inline __attribute__((always_inline))

namespace posenc {

// As rotation.py packs it.
struct Rotation {
  int64_t x, out, cos, sin;  // addresses
  int64_t size[4], table_size[4], start;
  int64_t x_stride[4], out_stride[4], cos_stride[4], sin_stride[4];
  int64_t type, half_in, half_out, back, threads;
};
static_assert(sizeof(Rotation) == 34 * sizeof(int64_t), "rotation.py packs 34 integers");

template <class To, class From>
INLINE To bits(From from) {
  static_assert(sizeof(To) == sizeof(From), "bits are moved, not converted");
  To to;
  std::memcpy(&to, &from, sizeof(to));
  return to;
}

// How a number is stored and what it is computed in.

template <class T>
struct Plain {
  using Stored = T;
  using Wide = T;
  static INLINE Wide widen(Stored x) { return x; }
  static INLINE Stored round(Wide x) { return x; }
};

struct BFloat16 {
  using Stored = uint16_t;
  using Wide = float;
  static INLINE float widen(uint16_t x) { return bits<float>(static_cast<uint32_t>(x) << 16); }
  static INLINE uint16_t round(float x) {
    const uint32_t u = bits<uint32_t>(x);
    const uint32_t nearest_even = (u + 0x7fffu + ((u >> 16) & 1u)) >> 16;
    return static_cast<uint16_t>((u & 0x7fffffffu) > 0x7f800000u ? (u >> 16) | 0x40u : nearest_even);
  }
};

// Without branches and without fp32 subnormals, so that it vectorises and does not mind flushing to zero.
struct Half {
  using Stored = uint16_t;
  using Wide = float;
  static INLINE float widen(uint16_t x) {
    const uint32_t w = static_cast<uint32_t>(x) << 16, sign = w & 0x80000000u, twice = w + w;
    const float normal = bits<float>((twice >> 4) + (0xe0u << 23)) * 0x1p-112f;
    const float subnormal = bits<float>((twice >> 17) | (126u << 23)) - 0.5f;
    return bits<float>(sign | bits<uint32_t>(twice < (1u << 27) ? subnormal : normal));
  }
  static INLINE uint16_t round(float x) {
    const uint32_t w = bits<uint32_t>(x), sign = (w >> 16) & 0x8000u, size = w & 0x7fffffffu;
    const uint32_t exponent = std::max(size & 0x7f800000u, 0x38800000u);  // of the result's last place, at least 2^-14
    // Adding 2^(exponent + 13) rounds to eleven bits, to nearest even; what is added on top is taken off as bits.
    const float rounded = bits<float>(size) + bits<float>(exponent + (13u << 23));
    const uint32_t low = bits<uint32_t>(rounded) & 0x0fffu;
    const uint32_t finite = ((exponent - 0x38800000u) >> 13) + low;
    const uint32_t result = size >= 0x47800000u ? (size > 0x7f800000u ? 0x7e00u : 0x7c00u) : finite;
    return static_cast<uint16_t>(sign | result);
  }
};

template <class N, bool half_in, bool half_out>
INLINE void turn_row(const typename N::Stored* x, typename N::Stored* out, const typename N::Wide* cos,
                     const typename N::Wide* sin, typename N::Wide sign, int64_t n) {
  LANES_ARE_INDEPENDENT
  for (int64_t i = 0; i < n; ++i) {
    const typename N::Wide a = N::widen(x[half_in ? i : 2 * i]), b = N::widen(x[half_in ? n + i : 2 * i + 1]);
    const typename N::Wide c = cos[i], s = sin[i] * sign;
    out[half_out ? i : 2 * i] = N::round(a * c - b * s);
    out[half_out ? n + i : 2 * i + 1] = N::round(b * c + a * s);
  }
}

template <class T>
INLINE const T* gathered(const T* from, int64_t stride, int64_t n, T* into) {
  if (stride == 1) return from;
  for (int64_t i = 0; i < n; ++i) into[i] = from[i * stride];
  return into;
}

// Past the caches: a line that is written whole need not be read first.
template <class T>
INLINE void stream(const T* from, T* into, int64_t n) {
#if defined(__x86_64__)
  const auto* source = reinterpret_cast<const __m128i*>(from);
  auto* target = reinterpret_cast<__m128i*>(into);
  for (int64_t i = 0; i < n * static_cast<int64_t>(sizeof(T)) / 16; ++i) _mm_stream_si128(target + i, _mm_loadu_si128(source + i));
#else
  std::memcpy(into, from, n * sizeof(T));
#endif
}

// Outputs from here on are not in a cache by the time they are read.
constexpr int64_t LARGE = int64_t{1} << 22;

struct Plan {
  bool tokens_outside;  // rows are taken in the order in which they lie in memory
  bool streams;
};

template <class N, bool half_in, bool half_out>
INLINE void turn_rows(const Rotation& r, const Plan& plan, int64_t begin, int64_t end) {
  using Stored = typename N::Stored;
  using Wide = typename N::Wide;
  const int64_t d = r.size[3], n = r.table_size[3], after = r.start + 2 * n;
  const int64_t outer = plan.tokens_outside ? 2 : 1, inner = 3 - outer;
  const bool in_place = r.x == r.out;
  const bool buffered = plan.streams || r.out_stride[3] != 1 || (in_place && half_in != half_out);
  std::vector<Stored> buffer(buffered || r.x_stride[3] != 1 ? 2 * d : 0);
  std::vector<Wide> tables(r.cos_stride[3] != 1 || r.sin_stride[3] != 1 ? 2 * n : 0);
  Stored *const gathered_x = buffer.data(), *const made = buffer.data() + d;
  const Wide sign = r.back ? -1 : 1;

  int64_t at[4] = {begin / (r.size[1] * r.size[2]), 0, 0, 0};
  at[outer] = begin / r.size[inner] % r.size[outer];
  at[inner] = begin % r.size[inner];
  for (int64_t row = begin; row < end; ++row) {
    const auto offset = [&at](const int64_t* stride) { return at[0] * stride[0] + at[1] * stride[1] + at[2] * stride[2]; };
    const Stored* x = reinterpret_cast<const Stored*>(r.x) + offset(r.x_stride);
    x = gathered(x, r.x_stride[3], d, gathered_x);
    const Wide* cos = reinterpret_cast<const Wide*>(r.cos) + offset(r.cos_stride);
    cos = gathered(cos, r.cos_stride[3], n, tables.data());
    const Wide* sin = reinterpret_cast<const Wide*>(r.sin) + offset(r.sin_stride);
    sin = gathered(sin, r.sin_stride[3], n, tables.data() + n);
    Stored* const out = reinterpret_cast<Stored*>(r.out) + offset(r.out_stride);
    Stored* const into = buffered ? made : out;
    turn_row<N, half_in, half_out>(x + r.start, into + r.start, cos, sin, sign, n);
    if (into != x) {
      if (r.start) std::memcpy(into, x, r.start * sizeof(Stored));
      if (after < d) std::memcpy(into + after, x + after, (d - after) * sizeof(Stored));
    }
    if (plan.streams) {
      stream(into, out, d);
    } else if (buffered) {
      for (int64_t i = 0; i < d; ++i) out[i * r.out_stride[3]] = into[i];
    }
    if (++at[inner] == r.size[inner]) {
      at[inner] = 0;
      if (++at[outer] == r.size[outer]) at[outer] = 0, ++at[0];
    }
  }
#if defined(__x86_64__)
  if (plan.streams) _mm_sfence();
#endif
}

template <class N>
INLINE void turn_rows_of(const Rotation& r, const Plan& plan, int64_t begin, int64_t end) {
  if (r.half_in)
    r.half_out ? turn_rows<N, true, true>(r, plan, begin, end) : turn_rows<N, true, false>(r, plan, begin, end);
  else
    r.half_out ? turn_rows<N, false, true>(r, plan, begin, end) : turn_rows<N, false, false>(r, plan, begin, end);
}

// The same code for the vectors that processors have; which, is decided when it runs.

template <class N>
void portable(const Rotation& r, const Plan& plan, int64_t begin, int64_t end) {
  turn_rows_of<N>(r, plan, begin, end);
}

#if defined(__x86_64__)
template <class N>
__attribute__((target("avx2,fma"))) void avx2(const Rotation& r, const Plan& plan, int64_t begin, int64_t end) {
  turn_rows_of<N>(r, plan, begin, end);
}

template <class N>
__attribute__((target("avx2,fma,avx512f,avx512bw,avx512dq,avx512vl,prefer-vector-width=512"))) void avx512(
    const Rotation& r, const Plan& plan, int64_t begin, int64_t end) {
  turn_rows_of<N>(r, plan, begin, end);
}
#endif

template <class N>
void rotate(const Rotation& r) {
  const int64_t rows = r.size[0] * r.size[1] * r.size[2], bytes = r.size[3] * sizeof(typename N::Stored);
  Plan plan;
  plan.tokens_outside = r.x_stride[2] > r.x_stride[1] && r.size[1] > 1;
  const bool lines = bytes % 16 == 0 && r.out % 16 == 0 && r.out_stride[3] == 1 &&
                     (r.out_stride[0] | r.out_stride[1] | r.out_stride[2]) * static_cast<int64_t>(sizeof(typename N::Stored)) % 16 == 0;
  plan.streams = lines && r.x != r.out && rows * bytes >= LARGE;
  auto* work = &portable<N>;
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
    work = &avx512<N>;
  else if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    work = &avx2<N>;
#endif
  const int64_t chunk = std::max<int64_t>(1, (1 << 17) / std::max<int64_t>(bytes, 1));
  in_parallel(rows, chunk, static_cast<int>(r.threads), [&](int64_t begin, int64_t end) { work(r, plan, begin, end); });
}

}  // namespace posenc

extern "C" __attribute__((visibility("default"))) void posenc_rotate(const posenc::Rotation* given) {
  posenc::Rotation copy = *given, *const r = &copy;
  for (int axis = 0; axis < 3; ++axis)
    if (r->table_size[axis] == 1) r->cos_stride[axis] = r->sin_stride[axis] = 0;
  if (r->size[0] * r->size[1] * r->size[2] * r->size[3] == 0) return;
  switch (r->type) {
    case 0: return posenc::rotate<posenc::Plain<float>>(*r);
    case 1: return posenc::rotate<posenc::Plain<double>>(*r);
    case 2: return posenc::rotate<posenc::BFloat16>(*r);
    case 3: return posenc::rotate<posenc::Half>(*r);
  }
}
