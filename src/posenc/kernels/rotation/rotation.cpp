// Rotates pairs of channels: (a, b) -> (a cos - b sin, b cos + a sin), in one pass over memory and with one rounding.
//
//   x, out [b, h, t, d]    cos, sin [b, h, t, n], any strides; those of an expanded axis are 0
//
// The n pairs are channels start ... start + 2n - 1; the other channels are copied. Every sum and product is rounded as in plain
// torch, so results are equal bit for bit: fp32 for float, bfloat16 and half, fp64 for double.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <vector>

#include "processor.h"
#include "rotation.h"
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

template <class To, class From>
INLINE To bits(From from) {
  static_assert(sizeof(To) == sizeof(From), "bits are moved, not converted");
  To to;
  std::memcpy(&to, &from, sizeof(to));
  return to;
}

// The type in which a number is stored and the type of its arithmetic.

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
  static INLINE uint16_t round(float x) {  // results of arithmetic: a NaN is quiet and stays a NaN without its lower bits
    const uint32_t u = bits<uint32_t>(x), to_nearest_even = 0x7fffu + ((u >> 16) & 1u);
    return static_cast<uint16_t>((u + (x == x ? to_nearest_even : 0u)) >> 16);
  }
};

// For processors with an instruction that rounds to bfloat16.
struct RoundedByUnit : BFloat16 {};

// Without branches, so that it vectorises, and without fp32 subnormals, so that flushing to zero changes nothing.
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
    // Adding 2^(exponent + 13) rounds to eleven bits, to nearest even; the added constant is removed from the bits.
    const float rounded = bits<float>(size) + bits<float>(exponent + (13u << 23));
    const uint32_t low = bits<uint32_t>(rounded) & 0x0fffu;
    const uint32_t finite = ((exponent - 0x38800000u) >> 13) + low;
    const uint32_t result = size >= 0x47800000u ? (size > 0x7f800000u ? 0x7e00u : 0x7c00u) : finite;
    return static_cast<uint16_t>(sign | result);
  }
};

// `lots` times `rows` rows at equal distances with adjacent channels: the part that the processor variants share.
template <class N>
struct Run {
  const typename N::Stored* x;
  typename N::Stored* out;
  const typename N::Wide *cos, *sin;
  int64_t rows, x_step, out_step, cos_step, sin_step;
  int64_t channels, start, pairs;
  bool back;
  int64_t lots, x_leap, out_leap, cos_leap, sin_leap;

  INLINE const typename N::Stored* x_at(int64_t lot, int64_t row) const { return x + lot * x_leap + row * x_step; }
  INLINE typename N::Stored* out_at(int64_t lot, int64_t row) const { return out + lot * out_leap + row * out_step; }
  INLINE const typename N::Wide* cos_at(int64_t lot, int64_t row) const { return cos + lot * cos_leap + row * cos_step; }
  INLINE const typename N::Wide* sin_at(int64_t lot, int64_t row) const { return sin + lot * sin_leap + row * sin_step; }
};

// Pairs `from` ... n - 1 of a row.
template <class N, bool half_in, bool half_out>
INLINE void turn_pairs(const Run<N>& run, const typename N::Stored* x, typename N::Stored* out, const typename N::Wide* cos,
                       const typename N::Wide* sin, int64_t from) {
  const int64_t n = run.pairs;
  // Two differences: for a difference and a sum gcc emits fused multiply-adds even with contraction off.
  const typename N::Wide sign = run.back ? -1 : 1, opposite = run.back ? 1 : -1;
  LANES_ARE_INDEPENDENT
  for (int64_t i = from; i < n; ++i) {
    const typename N::Wide a = N::widen(x[half_in ? i : 2 * i]), b = N::widen(x[half_in ? n + i : 2 * i + 1]);
    const typename N::Wide c = cos[i], s = sin[i] * sign, minus_s = sin[i] * opposite;
    out[half_out ? i : 2 * i] = N::round(a * c - b * s);
    out[half_out ? n + i : 2 * i + 1] = N::round(b * c - a * minus_s);
  }
}

// Prefetches rows ahead. The processor does not do it, because the arithmetic of a row is too long; without it the memory's time
// is added to the arithmetic's.
template <class N>
INLINE int64_t bytes_ahead(const Run<N>& run) {
  const int64_t row = run.channels * static_cast<int64_t>(sizeof(*run.x));
  return std::max<int64_t>(8192 / std::max<int64_t>(row, 1), 1) * run.x_step * static_cast<int64_t>(sizeof(*run.x));
}

template <class N>
INLINE void ask_for_rows_ahead(const Run<N>& run, const typename N::Stored* x, int64_t ahead) {
  const auto there = reinterpret_cast<uintptr_t>(x) + ahead;  // may be beyond the end, which has no effect
  const int64_t row = run.channels * static_cast<int64_t>(sizeof(*x));
  for (int64_t line = 0; line < row; line += 64) __builtin_prefetch(reinterpret_cast<const void*>(there + line));
}

template <class N>
INLINE void copy_the_rest(const Run<N>& run, const typename N::Stored* x, typename N::Stored* out) {
  if (out == x) return;
  const int64_t after = run.start + 2 * run.pairs;
  if (run.start) std::memcpy(out, x, run.start * sizeof(*x));
  if (after < run.channels) std::memcpy(out + after, x + after, (run.channels - after) * sizeof(*x));
}

template <class N, bool half_in, bool half_out>
INLINE void turn_run(const Run<N>& run) {
  const int64_t ahead = bytes_ahead(run);
  for (int64_t lot = 0; lot < run.lots; ++lot)
    for (int64_t row = 0; row < run.rows; ++row) {
      const auto* const x = run.x_at(lot, row);
      auto* const out = run.out_at(lot, row);
      ask_for_rows_ahead(run, x, ahead);
      turn_pairs<N, half_in, half_out>(run, x + run.start, out + run.start, run.cos_at(lot, row), run.sin_at(lot, row), 0);
      copy_the_rest(run, x, out);
    }
}

// The same for each width of vectors; the width is chosen at run time.

template <class N, bool half_in, bool half_out>
void portable(const Run<N>& run) {
  turn_run<N, half_in, half_out>(run);
}

#if defined(__x86_64__)
#define WITH_AVX2 __attribute__((target("avx2")))

template <class N, bool half_in, bool half_out>
WITH_AVX2 void avx2(const Run<N>& run) {
  turn_run<N, half_in, half_out>(run);
}

// Vectors of 256 bits, for fp32 and bfloat16 whose layout stays. `lanes` pairs are two vectors of stored numbers, x and y, which are
// computed as parts of 8 pairs in the order that takes the fewest instructions; a table is read in the same order.

template <class N, bool half>
struct Narrow;

template <>
struct Narrow<Plain<float>, true> {
  static constexpr int lanes = 8, parts = 1;
  static WITH_AVX2 INLINE __m256 a(__m256i x, __m256i, int) { return _mm256_castsi256_ps(x); }
  static WITH_AVX2 INLINE __m256 b(__m256i, __m256i y, int) { return _mm256_castsi256_ps(y); }
  static WITH_AVX2 INLINE __m256 table(const float* from, int) { return _mm256_loadu_ps(from); }
  static WITH_AVX2 INLINE __m256i x(const __m256* a, const __m256*) { return _mm256_castps_si256(a[0]); }
  static WITH_AVX2 INLINE __m256i y(const __m256*, const __m256* b) { return _mm256_castps_si256(b[0]); }
};

template <>
struct Narrow<Plain<float>, false> {  // pairs 0 1 4 5 2 3 6 7
  static constexpr int lanes = 8, parts = 1;
  static WITH_AVX2 INLINE __m256 a(__m256i x, __m256i y, int) {
    return _mm256_shuffle_ps(_mm256_castsi256_ps(x), _mm256_castsi256_ps(y), 0x88);
  }
  static WITH_AVX2 INLINE __m256 b(__m256i x, __m256i y, int) {
    return _mm256_shuffle_ps(_mm256_castsi256_ps(x), _mm256_castsi256_ps(y), 0xdd);
  }
  static WITH_AVX2 INLINE __m256 table(const float* from, int) {
    return _mm256_castpd_ps(_mm256_permute4x64_pd(_mm256_castps_pd(_mm256_loadu_ps(from)), 0xd8));
  }
  static WITH_AVX2 INLINE __m256i x(const __m256* a, const __m256* b) {
    return _mm256_castps_si256(_mm256_unpacklo_ps(a[0], b[0]));
  }
  static WITH_AVX2 INLINE __m256i y(const __m256* a, const __m256* b) {
    return _mm256_castps_si256(_mm256_unpackhi_ps(a[0], b[0]));
  }
};

WITH_AVX2 INLINE __m256i rounded_to_bfloat16(__m256 x) {  // as BFloat16::round, in the lower word
  const __m256i u = _mm256_castps_si256(x), odd = _mm256_and_si256(_mm256_srli_epi32(u, 16), _mm256_set1_epi32(1));
  const __m256i number = _mm256_castps_si256(_mm256_cmp_ps(x, x, _CMP_ORD_Q));
  const __m256i added = _mm256_and_si256(_mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)), number);
  return _mm256_srli_epi32(_mm256_add_epi32(u, added), 16);
}

template <>
struct Narrow<BFloat16, true> {  // pairs 0 ... 3 and 8 ... 11, 4 ... 7 and 12 ... 15
  static constexpr int lanes = 16, parts = 2;
  static WITH_AVX2 INLINE __m256 wide(__m256i x, int part) {
    const __m256i zero = _mm256_setzero_si256();
    return _mm256_castsi256_ps(part ? _mm256_unpackhi_epi16(zero, x) : _mm256_unpacklo_epi16(zero, x));
  }
  static WITH_AVX2 INLINE __m256 a(__m256i x, __m256i, int part) { return wide(x, part); }
  static WITH_AVX2 INLINE __m256 b(__m256i, __m256i y, int part) { return wide(y, part); }
  static WITH_AVX2 INLINE __m256 table(const float* from, int part) {
    const __m256 lower = _mm256_castps128_ps256(_mm_loadu_ps(from + 4 * part));
    return _mm256_insertf128_ps(lower, _mm_loadu_ps(from + 4 * part + 8), 1);
  }
  static WITH_AVX2 INLINE __m256i packed(const __m256* x) {
    return _mm256_packus_epi32(rounded_to_bfloat16(x[0]), rounded_to_bfloat16(x[1]));
  }
  static WITH_AVX2 INLINE __m256i x(const __m256* a, const __m256*) { return packed(a); }
  static WITH_AVX2 INLINE __m256i y(const __m256*, const __m256* b) { return packed(b); }
};

template <>
struct Narrow<BFloat16, false> {  // a pair is one number of 32 bits
  static constexpr int lanes = 16, parts = 2;
  static WITH_AVX2 INLINE __m256 a(__m256i x, __m256i y, int part) {
    return _mm256_castsi256_ps(_mm256_slli_epi32(part ? y : x, 16));
  }
  static WITH_AVX2 INLINE __m256 b(__m256i x, __m256i y, int part) {
    return _mm256_castsi256_ps(_mm256_and_si256(part ? y : x, _mm256_set1_epi32(static_cast<int>(0xffff0000u))));
  }
  static WITH_AVX2 INLINE __m256 table(const float* from, int part) { return _mm256_loadu_ps(from + 8 * part); }
  static WITH_AVX2 INLINE __m256i packed(__m256 a, __m256 b) {
    return _mm256_or_si256(rounded_to_bfloat16(a), _mm256_slli_epi32(rounded_to_bfloat16(b), 16));
  }
  static WITH_AVX2 INLINE __m256i x(const __m256* a, const __m256* b) { return packed(a[0], b[0]); }
  static WITH_AVX2 INLINE __m256i y(const __m256* a, const __m256* b) { return packed(a[1], b[1]); }
};

template <class N, bool half, bool past_caches>
WITH_AVX2 void in_256_bits(const Run<N>& run) {
  using V = Narrow<N, half>;
  constexpr int L = V::lanes;
  const int64_t n = run.pairs, ahead = bytes_ahead(run), whole_vectors = n / L * L;
  const __m256 sign = _mm256_set1_ps(run.back ? -0.0f : 0.0f);
  for (int64_t lot = 0; lot < run.lots; ++lot) {
    const auto* whole_x = run.x_at(lot, 0);
    auto* whole_out = run.out_at(lot, 0);
    const float *cos = run.cos_at(lot, 0), *sin = run.sin_at(lot, 0);
    for (int64_t row = 0; row < run.rows; ++row) {
      const auto* const x = whole_x + run.start;
      auto* const out = whole_out + run.start;
      ask_for_rows_ahead(run, whole_x, ahead);
      for (int64_t i = 0; i < whole_vectors; i += L) {
        const int64_t at_x = half ? i : 2 * i, at_y = half ? n + i : 2 * i + L;
        const __m256i in_x = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(x + at_x));
        const __m256i in_y = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(x + at_y));
        __m256 turned_a[V::parts], turned_b[V::parts];
        for (int part = 0; part < V::parts; ++part) {
          const __m256 a = V::a(in_x, in_y, part), b = V::b(in_x, in_y, part);
          const __m256 c = V::table(cos + i, part), s = _mm256_xor_ps(V::table(sin + i, part), sign);
          turned_a[part] = _mm256_sub_ps(_mm256_mul_ps(a, c), _mm256_mul_ps(b, s));
          turned_b[part] = _mm256_add_ps(_mm256_mul_ps(b, c), _mm256_mul_ps(a, s));
        }
        auto *const to_x = reinterpret_cast<__m256i*>(out + at_x), *const to_y = reinterpret_cast<__m256i*>(out + at_y);
        const __m256i out_x = V::x(turned_a, turned_b), out_y = V::y(turned_a, turned_b);
        if constexpr (past_caches) {
          _mm256_stream_si256(to_x, out_x), _mm256_stream_si256(to_y, out_y);
        } else {
          _mm256_storeu_si256(to_x, out_x), _mm256_storeu_si256(to_y, out_y);
        }
      }
      if (whole_vectors < n) turn_pairs<N, half, half>(run, x, out, cos, sin, whole_vectors);
      copy_the_rest(run, whole_x, whole_out);
      whole_x += run.x_step, whole_out += run.out_step, cos += run.cos_step, sin += run.sin_step;
    }
  }
  if (past_caches) _mm_sfence();
}

// Clang accepts the bfloat16 instruction below only as an intrinsic, and the intrinsic only in functions of a target that has it.
// It is executed only if RoundedByUnit is chosen, on processors that have it.
#if defined(__clang__)
#define WITH_AVX512 OF_512_BITS("avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")
#else
#define WITH_AVX512 OF_512_BITS("avx512f,avx512bw,avx512dq,avx512vl")
#endif

template <class N, bool half_in, bool half_out>
WITH_AVX512 void avx512(const Run<N>& run) {
  turn_run<N, half_in, half_out>(run);
}

// Compilers emit three times as many instructions for the 16-bit types as necessary, so the code uses intrinsics. fp32 uses them
// for streaming stores.

template <class N>
struct Vector;  // `lanes` stored numbers, of which each part of 16 is computed at once

template <>
struct Vector<Plain<float>> {
  static constexpr int lanes = 16, parts = 1;
  static WITH_AVX512 INLINE __m512i index(int first, int step) {
    const __m512i count = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
    return _mm512_add_epi32(_mm512_set1_epi32(first), _mm512_mullo_epi32(_mm512_set1_epi32(step), count));
  }
  static WITH_AVX512 INLINE __m512i merged(int first) {  // 0 16 1 17 ..., counted from `first`
    return _mm512_add_epi32(_mm512_set1_epi32(first), _mm512_set_epi32(23, 7, 22, 6, 21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0));
  }
  static WITH_AVX512 INLINE __m512i choose(__m512i a, __m512i index, __m512i b) { return _mm512_permutex2var_epi32(a, index, b); }
  using Mask = __mmask16;
  static WITH_AVX512 INLINE __m512i load(const void* from, Mask of) { return _mm512_maskz_loadu_epi32(of, from); }
  static WITH_AVX512 INLINE void store(void* to, Mask of, __m512i x) { _mm512_mask_storeu_epi32(to, of, x); }
  static WITH_AVX512 INLINE __m512 part(__m512i x, int) { return _mm512_castsi512_ps(x); }
  static WITH_AVX512 INLINE __m512i pack(const __m512* x) { return _mm512_castps_si512(x[0]); }
};

template <class N>
struct Words {  // shared by both 16-bit types
  static constexpr int lanes = 32, parts = 2;
  static WITH_AVX512 INLINE __m512i count() {
    return _mm512_set_epi16(31, 30, 29, 28, 27, 26, 25, 24, 23, 22, 21, 20, 19, 18, 17, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6,
                            5, 4, 3, 2, 1, 0);
  }
  static WITH_AVX512 INLINE __m512i index(int first, int step) {
    return _mm512_add_epi16(_mm512_set1_epi16(first), _mm512_mullo_epi16(_mm512_set1_epi16(step), count()));
  }
  static WITH_AVX512 INLINE __m512i merged(int first) {
    const __m512i halved = _mm512_srli_epi16(count(), 1);
    return _mm512_add_epi16(_mm512_set1_epi16(first), _mm512_mask_add_epi16(halved, 0xaaaaaaaau, halved, _mm512_set1_epi16(32)));
  }
  static WITH_AVX512 INLINE __m512i choose(__m512i a, __m512i index, __m512i b) { return _mm512_permutex2var_epi16(a, index, b); }
  using Mask = __mmask32;
  static WITH_AVX512 INLINE __m512i load(const void* from, Mask of) { return _mm512_maskz_loadu_epi16(of, from); }
  static WITH_AVX512 INLINE void store(void* to, Mask of, __m512i x) { _mm512_mask_storeu_epi16(to, of, x); }
};

template <>
struct Vector<BFloat16> : Words<BFloat16> {
  static WITH_AVX512 INLINE __m512 part(__m512i x, int number) {  // each word becomes the upper one of two, the lower is zero
    const __m512i from = _mm512_add_epi16(_mm512_set1_epi16(static_cast<short>(16 * number)), _mm512_srli_epi16(count(), 1));
    return _mm512_castsi512_ps(_mm512_maskz_permutexvar_epi16(0xaaaaaaaau, from, x));
  }
  static WITH_AVX512 INLINE __m512i rounded(__m512 x) {  // in the upper word
    const __m512i u = _mm512_castps_si512(x);
    const __mmask16 number = _mm512_cmp_ps_mask(x, x, _CMP_ORD_Q);
    const __mmask16 odd = _mm512_mask_test_epi32_mask(number, u, _mm512_set1_epi32(0x10000));
    const __m512i below = _mm512_mask_add_epi32(u, number, u, _mm512_set1_epi32(0x7fff));
    return _mm512_mask_add_epi32(below, odd, below, _mm512_set1_epi32(1));
  }
  static WITH_AVX512 INLINE __m512i pack(const __m512* x) { return choose(rounded(x[0]), index(1, 2), rounded(x[1])); }
};

template <>
struct Vector<RoundedByUnit> : Vector<BFloat16> {
  static WITH_AVX512 INLINE __m512i pack(const __m512* x) {  // the instruction flushes subnormals to zero, so they use the other code
    constexpr int subnormal = 0x20;
    if (__builtin_expect(_mm512_fpclass_ps_mask(x[0], subnormal) | _mm512_fpclass_ps_mask(x[1], subnormal), 0))
      return Vector<BFloat16>::pack(x);
#if defined(__clang__)
    return (__m512i)_mm512_cvtne2ps_pbh(x[1], x[0]);
#else
    __m512i both;
    __asm__("vcvtne2ps2bf16 %2, %1, %0" : "=v"(both) : "v"(x[1]), "v"(x[0]));
    return both;
#endif
  }
};

template <>
struct Vector<Half> : Words<Half> {
  static WITH_AVX512 INLINE __m512 part(__m512i x, int number) {
    return _mm512_cvtph_ps(number ? _mm512_extracti64x4_epi64(x, 1) : _mm512_castsi512_si256(x));
  }
  static WITH_AVX512 INLINE __m512i pack(const __m512* x) {
    const __m256i low = _mm512_cvtps_ph(x[0], _MM_FROUND_TO_NEAREST_INT), high = _mm512_cvtps_ph(x[1], _MM_FROUND_TO_NEAREST_INT);
    return _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
  }
};

template <class Mask>
INLINE Mask lowest(int64_t n) {  // as many bits
  return static_cast<Mask>((uint64_t{1} << std::clamp<int64_t>(n, 0, 32)) - 1);
}

template <class N, bool half_in, bool half_out, bool past_caches>
WITH_AVX512 void written_out(const Run<N>& run) {
  using V = Vector<N>;
  using Mask = typename V::Mask;
  constexpr int L = V::lanes;
  const int64_t n = run.pairs, ahead = bytes_ahead(run), whole_vectors = n / L * L, left = n % L;
  const __m512 sign = _mm512_set1_ps(run.back ? -0.0f : 0.0f);
  const __m512i even = V::index(0, 2), odd = V::index(1, 2), lower = V::merged(0), upper = V::merged(L / 2);
  // The rest of a row after whole vectors: numbers of the two vectors that are read, of those written, of the tables.
  const Mask in_a = lowest<Mask>(half_in ? left : std::min<int64_t>(2 * left, L)), in_b = lowest<Mask>(half_in ? left : 2 * left - L);
  const Mask out_a = lowest<Mask>(half_out ? left : std::min<int64_t>(2 * left, L)), out_b = lowest<Mask>(half_out ? left : 2 * left - L);
  const __mmask16 of_table[2] = {lowest<__mmask16>(std::min<int64_t>(left, 16)), lowest<__mmask16>(left - 16)};

  for (int64_t lot = 0; lot < run.lots; ++lot) {
    const auto* whole_x = run.x_at(lot, 0);
    auto* whole_out = run.out_at(lot, 0);
    const float *cos = run.cos_at(lot, 0), *sin = run.sin_at(lot, 0);
    for (int64_t row = 0; row < run.rows; ++row) {
      const auto* const x = whole_x + run.start;
      auto* const out = whole_out + run.start;
      ask_for_rows_ahead(run, whole_x, ahead);
      // Pairs i ... i + L - 1, or the remaining ones; `whole` is a compile-time constant.
      const auto turn = [&](int64_t i, auto whole) WITH_AVX512 {
        __m512i a, b;
        if constexpr (whole) {
          a = _mm512_loadu_si512(x + (half_in ? i : 2 * i)), b = _mm512_loadu_si512(x + (half_in ? n + i : 2 * i + L));
        } else {
          a = V::load(x + (half_in ? i : 2 * i), in_a), b = V::load(x + (half_in ? n + i : 2 * i + L), in_b);
        }
        if constexpr (!half_in) {
          const __m512i first = a;
          a = V::choose(first, even, b), b = V::choose(first, odd, b);
        }
        __m512 turned_a[V::parts], turned_b[V::parts];
        for (int part = 0; part < V::parts; ++part) {
          const float *const cosines = cos + i + 16 * part, *const sines = sin + i + 16 * part;
          const __m512 wide_a = V::part(a, part), wide_b = V::part(b, part);
          const __m512 c = whole ? _mm512_loadu_ps(cosines) : _mm512_maskz_loadu_ps(of_table[part], cosines);
          const __m512 s = _mm512_xor_ps(whole ? _mm512_loadu_ps(sines) : _mm512_maskz_loadu_ps(of_table[part], sines), sign);
          turned_a[part] = _mm512_sub_ps(_mm512_mul_ps(wide_a, c), _mm512_mul_ps(wide_b, s));
          turned_b[part] = _mm512_add_ps(_mm512_mul_ps(wide_b, c), _mm512_mul_ps(wide_a, s));
        }
        a = V::pack(turned_a), b = V::pack(turned_b);
        if constexpr (!half_out) {
          const __m512i first = a;
          a = V::choose(first, lower, b), b = V::choose(first, upper, b);
        }
        auto *const to_a = out + (half_out ? i : 2 * i), *const to_b = out + (half_out ? n + i : 2 * i + L);
        if constexpr (!whole) {
          V::store(to_a, out_a, a);
          if (out_b) V::store(to_b, out_b, b);  // an empty masked store takes as long as a full one
        } else if constexpr (past_caches) {
          _mm512_stream_si512(reinterpret_cast<__m512i*>(to_a), a), _mm512_stream_si512(reinterpret_cast<__m512i*>(to_b), b);
        } else {
          _mm512_storeu_si512(to_a, a), _mm512_storeu_si512(to_b, b);
        }
      };
      for (int64_t i = 0; i < whole_vectors; i += L) turn(i, std::true_type{});
      if (left) turn(whole_vectors, std::false_type{});
      copy_the_rest(run, whole_x, whole_out);
      whole_x += run.x_step, whole_out += run.out_step, cos += run.cos_step, sin += run.sin_step;
    }
  }
  if (past_caches) _mm_sfence();
}
#endif

template <class N>
using Turn = void (*)(const Run<N>&);

// The best variant for this processor; it reports whether it uses streaming stores as requested.
template <class N, bool half_in, bool half_out>
Turn<N> variant([[maybe_unused]] bool& past_caches) {
#if defined(__x86_64__)
  if (instructions() >= AVX512) {
    if constexpr (std::is_same_v<typename N::Wide, float>)
      return past_caches ? written_out<N, half_in, half_out, true> : written_out<N, half_in, half_out, false>;
    past_caches = false;
    return avx512<N, half_in, half_out>;
  }
  if (instructions() >= AVX2) {
    if constexpr (half_in == half_out && (std::is_same_v<N, Plain<float>> || std::is_same_v<N, BFloat16>)) {
      return past_caches ? in_256_bits<N, half_in, true> : in_256_bits<N, half_in, false>;
    } else {
      past_caches = false;
      return avx2<N, half_in, half_out>;
    }
  }
#endif
  past_caches = false;
  return portable<N, half_in, half_out>;
}

// Larger outputs are no longer in a cache when they are read: streaming stores need not read their cache lines first.
constexpr int64_t CHUNK = int64_t{1} << 17;  // bytes: the smallest chunk for which a second thread pays
constexpr int64_t LARGE = int64_t{1} << 22;

template <class T>
const T* gathered(const T* from, int64_t stride, int64_t n, T* into) {
  if (stride == 1) return from;
  for (int64_t i = 0; i < n; ++i) into[i] = from[i * stride];
  return into;
}

template <class N>
void rotate(const Rotation& r) {
  using Stored = typename N::Stored;
  using Wide = typename N::Wide;
  const int64_t d = r.size[3], n = r.table_size[3];
  const int64_t bytes = d * static_cast<int64_t>(sizeof(Stored)), all_steps = r.out_stride[0] | r.out_stride[1] | r.out_stride[2];
  const bool lines = n % 32 == 0 && d == 2 * n && r.out_stride[3] == 1 && r.out % 64 == 0 && all_steps * sizeof(Stored) % 64 == 0;
  bool past_caches = lines && r.x != r.out && r.size[0] * r.size[1] * r.size[2] * bytes >= LARGE;
  const Turn<N> turn = r.half_in ? (r.half_out ? variant<N, true, true>(past_caches) : variant<N, true, false>(past_caches))
                                 : (r.half_out ? variant<N, false, true>(past_caches) : variant<N, false, false>(past_caches));
  // For channels that are not adjacent, or if writing pairs would overwrite others that are still to be read.
  const bool gathers = r.x_stride[3] != 1, gathers_tables = r.cos_stride[3] != 1 || r.sin_stride[3] != 1;
  const bool scatters = r.out_stride[3] != 1 || (r.x == r.out && r.half_in != r.half_out);
  const bool one_by_one = gathers || gathers_tables || scatters;
  // Rows are processed in memory order. Processing a few tokens of all heads, whose cos and sin stay in the first-level cache,
  // was slower.
  const bool along_heads = r.size[1] > 1 && (r.size[2] == 1 || r.x_stride[2] > r.x_stride[1]);
  const int64_t tokens = r.size[2], heads = r.size[1];
  const int64_t of_token = along_heads ? heads * bytes : bytes;
  const int64_t longest = std::max<int64_t>(1, std::min(tokens, CHUNK / of_token));
  const int64_t blocks = (tokens + longest - 1) / longest, side = along_heads ? 1 : heads;

  const auto work = [&](int64_t begin, int64_t end) {
    std::vector<Stored> numbers((gathers ? d : 0) + (scatters ? d : 0));
    std::vector<Wide> tables(gathers_tables ? 2 * n : 0);
    for (int64_t unit = begin; unit < end; ++unit) {
      const int64_t first = unit % blocks * longest, at[3] = {unit / blocks / side, unit / blocks % side, first};
      const auto offset = [&at](const int64_t* stride) { return at[0] * stride[0] + at[1] * stride[1] + at[2] * stride[2]; };
      const int64_t count = std::min(longest, tokens - first), inner = along_heads ? 1 : 2, outer = 3 - inner;
      Run<N> run{reinterpret_cast<const Stored*>(r.x) + offset(r.x_stride),
                 reinterpret_cast<Stored*>(r.out) + offset(r.out_stride),
                 reinterpret_cast<const Wide*>(r.cos) + offset(r.cos_stride),
                 reinterpret_cast<const Wide*>(r.sin) + offset(r.sin_stride),
                 along_heads ? heads : count, r.x_stride[inner], r.out_stride[inner], r.cos_stride[inner], r.sin_stride[inner],
                 d, r.start, n, r.back != 0,
                 along_heads ? count : 1, r.x_stride[outer], r.out_stride[outer], r.cos_stride[outer], r.sin_stride[outer]};
      if (!one_by_one) {
        turn(run);
        continue;
      }
      const Run<N> all = run;
      run.lots = run.rows = 1;
      for (int64_t lot = 0; lot < all.lots; ++lot)
        for (int64_t row = 0; row < all.rows; ++row) {
          auto* const out = all.out_at(lot, row);
          run.x = gathered(all.x_at(lot, row), r.x_stride[3], d, numbers.data());
          run.cos = gathered(all.cos_at(lot, row), r.cos_stride[3], n, tables.data());
          run.sin = gathered(all.sin_at(lot, row), r.sin_stride[3], n, tables.data() + n);
          run.out = scatters ? numbers.data() + numbers.size() - d : out;
          turn(run);
          if (scatters)
            for (int64_t i = 0; i < d; ++i) out[i * r.out_stride[3]] = run.out[i];
        }
    }
  };
  in_parallel(r.size[0] * side * blocks, std::max<int64_t>(1, CHUNK / (of_token * longest)), static_cast<int>(r.threads), work);
}

}  // namespace posenc

namespace posenc {

void rotate(const Rotation& given) {
  Rotation r = given;
  for (int axis = 0; axis < 3; ++axis)
    if (r.table_size[axis] == 1) r.cos_stride[axis] = r.sin_stride[axis] = 0;
  if (r.size[0] * r.size[1] * r.size[2] * r.size[3] == 0) return;
  switch (r.type) {
    case 0: return rotate<Plain<float>>(r);
    case 1: return rotate<Plain<double>>(r);
#if defined(__x86_64__)
    case 2:
      if (instructions() >= AVX512_BF16) return rotate<RoundedByUnit>(r);
      return rotate<BFloat16>(r);
#else
    case 2: return rotate<BFloat16>(r);
#endif
    case 3: return rotate<Half>(r);
  }
}

}  // namespace posenc

EXPORTED void posenc_rotate(const posenc::Rotation* given, int64_t count) {
  for (int64_t n = 0; n < count; ++n) posenc::rotate(given[n]);
}
