// sin and cos of position times frequency, in fp64 and rounded once.
//
//     consecutive   sin(a+b) = sin a cos b + cos a sin b,   cos(a+b) = cos a cos b - sin a sin b
//                   sin and cos are computed for the first block of positions and for the start of every block;
//                   all other entries are products of the two
//     others        sin and cos of every position
//
// Without fused multiply-adds: all processors give the same bits.
// Legend: b rows, t tokens, n frequencies. Strides count elements.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "pages.h"
#include "processor.h"
#include "sin_cos.h"
#include "threads.h"

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

#define ALWAYS_INLINE inline __attribute__((always_inline))

namespace {

constexpr int64_t TILE = 256;      // frequencies at a time, so that their data fits the first-level cache
constexpr int64_t BLOCK = 16384;   // most entries of the first block: 256 KiB, kept in the second-level cache
constexpr int64_t POSITIONS = 64;  // and its positions: one sine in 64 entries is computed for block starts
constexpr int64_t CHUNK = 32768;   // the fewest entries for a thread
constexpr int64_t STREAM = 4 << 20;  // bytes from which a table is written with streaming stores

// The memory of a table. sin and cos of one entry are neighbours (cos = sin + 1, pair = 2) or in planes (pair = 1).
template <class Out>
struct Table {
  Out *sin, *cos;
  int64_t row, token, pair;
  bool neighbours() const { return pair == 2 && cos == sin + 1; }
  bool planes() const { return pair == 1; }
  bool dense(int64_t rows, int64_t length, int64_t n) const {
    return token == n * pair && row == length * token && (neighbours() || planes()) && rows > 0;
  }
};

// Angles up to a million quarter turns: π/2 = QUARTER + REST, and up to 2^20 times the 33 bits of QUARTER are exact.
// The remainder, |r| ≤ π/4, is used in the polynomials of Sun's fdlibm (k_sin.c, k_cos.c), error below 2^-57.
constexpr double FAR = 1.6e6, ROUNDER = 6755399441055744.0;  // 1.5 · 2^52: adding it rounds to a whole number
constexpr double QUARTERS = 6.36619772367581382433e-01, QUARTER = 1.57079632673412561417e+00, REST = 6.07710050650619224932e-11;

// sin and cos of n angles with errors below 2e-16; angles beyond FAR use the C library.
ALWAYS_INLINE void sin_cos(const double* __restrict angle, int64_t n, double* __restrict sin, double* __restrict cos) {
  int64_t far = 0;
  for (int64_t i = 0; i < n; ++i) {
    const double x = angle[i], shifted = x * QUARTERS + ROUNDER, turns = shifted - ROUNDER;
    int64_t bits;
    std::memcpy(&bits, &shifted, 8);
    far |= static_cast<int64_t>(!(std::fabs(x) <= FAR));
    const double r = (x - turns * QUARTER) - turns * REST, z = r * r, half = 0.5 * z, w = 1.0 - half;
    const double s = r + z * r * (-1.66666666666666324348e-01 + z * (8.33333333332248946124e-03 + z * (-1.98412698298579493134e-04 +
                     z * (2.75573137070700676789e-06 + z * (-2.50507602534068634195e-08 + z * 1.58969099521155010221e-10)))));
    const double c = w + (((1.0 - w) - half) + z * z * (4.16666666666666019037e-02 + z * (-1.38888888888741095749e-03 + z * (2.48015872894767294178e-05 +
                     z * (-2.75573143513906633035e-07 + z * (2.08757232129817482790e-09 + z * -1.13596475577881948265e-11))))));
    const double to_sin = bits & 1 ? c : s, to_cos = bits & 1 ? s : c;
    sin[i] = bits & 2 ? -to_sin : to_sin;
    cos[i] = (bits + 1) & 2 ? -to_cos : to_cos;
  }
  if (far)
    for (int64_t i = 0; i < n; ++i)
      if (!(std::fabs(angle[i]) <= FAR)) sin[i] = std::sin(angle[i]), cos[i] = std::cos(angle[i]);
}

// sin(i) and cos(i), rounded, to n entries of a table.
template <class Out, class Sin, class Cos>
ALWAYS_INLINE void put(Out* sin_at, Out* cos_at, int64_t pair, int64_t n, const Sin& sin, const Cos& cos) {
  if (pair == 2 && cos_at == sin_at + 1) {
    Out* __restrict out = sin_at;
    for (int64_t i = 0; i < n; ++i) out[2 * i] = static_cast<Out>(sin(i)), out[2 * i + 1] = static_cast<Out>(cos(i));
  } else if (pair == 1) {
    Out *__restrict s = sin_at, *__restrict c = cos_at;
    for (int64_t i = 0; i < n; ++i) s[i] = static_cast<Out>(sin(i));
    for (int64_t i = 0; i < n; ++i) c[i] = static_cast<Out>(cos(i));
  } else {
    for (int64_t i = 0; i < n; ++i) sin_at[i * pair] = static_cast<Out>(sin(i)), cos_at[i * pair] = static_cast<Out>(cos(i));
  }
}

// Streaming stores of whole cache lines.
ALWAYS_INLINE void stream(void* to, const void* from, int64_t bytes) {
#if defined(__x86_64__)
  for (int64_t i = 0; i < bytes; i += 16)
    _mm_stream_si128(reinterpret_cast<__m128i*>(static_cast<char*>(to) + i),
                     _mm_load_si128(reinterpret_cast<const __m128i*>(static_cast<const char*>(from) + i)));
#else
  std::memcpy(to, from, bytes);
#endif
}

ALWAYS_INLINE bool lines(const void* at, int64_t bytes) { return (reinterpret_cast<uintptr_t>(at) | bytes) % 64 == 0; }

struct Phasors {
  const double *sin, *cos;
};

// The product of begin and turn for n frequencies.
template <class Out>
ALWAYS_INLINE void product(Phasors begin, Phasors turn, int64_t n, Out* sin_at, Out* cos_at, int64_t pair, bool streaming) {
  const double *__restrict bs = begin.sin, *__restrict bc = begin.cos, *__restrict ts = turn.sin, *__restrict tc = turn.cos;
  const auto sin = [=](int64_t i) __attribute__((always_inline)) { return bs[i] * tc[i] + bc[i] * ts[i]; };
  const auto cos = [=](int64_t i) __attribute__((always_inline)) { return bc[i] * tc[i] - bs[i] * ts[i]; };
  if (!streaming) return put(sin_at, cos_at, pair, n, sin, cos);
  alignas(64) Out both[2 * TILE];
  const int64_t bytes = n * static_cast<int64_t>(sizeof(Out));
  if (pair == 2) {
    put(both, both + 1, 2, n, sin, cos);
    stream(sin_at, both, 2 * bytes);
  } else {
    put(both, both + TILE, 1, n, sin, cos);
    stream(sin_at, both, bytes);
    stream(cos_at, both + TILE, bytes);
  }
}

template <class Out>
struct Consecutive {
  const int64_t* starts;
  int64_t length, n, block, blocks;
  const double *frequencies, *turn_sin, *turn_cos;  // [block, n]
  Table<Out> out;
  bool streaming;
};

// Blocks begin … end - 1 of all rows.
template <class Out>
ALWAYS_INLINE void fill(const Consecutive<Out>& of, int64_t begin, int64_t end) {
  double angle[TILE], begin_sin[TILE], begin_cos[TILE];
  for (int64_t number = begin; number < end; ++number) {
    const int64_t row = number / of.blocks, first = number % of.blocks * of.block;
    const double start = static_cast<double>(of.starts[row] + first);
    const int64_t tokens = std::min(of.block, of.length - first);
    for (int64_t tile = 0; tile < of.n; tile += TILE) {
      const int64_t n = std::min(TILE, of.n - tile);
      for (int64_t i = 0; i < n; ++i) angle[i] = start * of.frequencies[tile + i];
      sin_cos(angle, n, begin_sin, begin_cos);
      const int64_t at = row * of.out.row + first * of.out.token + tile * of.out.pair;
      for (int64_t token = 0; token < tokens; ++token) {
        const int64_t turn = token * of.n + tile, here = at + token * of.out.token;
        product<Out>({begin_sin, begin_cos}, {of.turn_sin + turn, of.turn_cos + turn}, n, of.out.sin + here, of.out.cos + here,
                     of.out.pair, of.streaming);
      }
    }
  }
}

template <class Out>
struct Anywhere {
  const void* coords;
  bool real;
  int64_t length, n, row, token, axis;  // strides of coords
  const double* frequencies;
  const int64_t* axes;  // the coordinate that each frequency reads; null if there is one
  Table<Out> out;
};

// Tokens begin … end - 1 of all rows.
template <class Out>
ALWAYS_INLINE void fill(const Anywhere<Out>& of, int64_t begin, int64_t end) {
  double angle[TILE], sin[TILE], cos[TILE];
  const auto coordinate = [&](int64_t at) {
    return of.real ? static_cast<const double*>(of.coords)[at] : static_cast<double>(static_cast<const int64_t*>(of.coords)[at]);
  };
  for (int64_t number = begin; number < end; ++number) {
    const int64_t row = number / of.length, token = number % of.length;
    const int64_t at = row * of.row + token * of.token;
    for (int64_t tile = 0; tile < of.n; tile += TILE) {
      const int64_t n = std::min(TILE, of.n - tile);
      if (of.axes) {
        for (int64_t i = 0; i < n; ++i) angle[i] = coordinate(at + of.axes[tile + i] * of.axis) * of.frequencies[tile + i];
      } else {
        const double position = coordinate(at);
        for (int64_t i = 0; i < n; ++i) angle[i] = position * of.frequencies[tile + i];
      }
      sin_cos(angle, n, sin, cos);
      const int64_t here = row * of.out.row + token * of.out.token + tile * of.out.pair;
      put(of.out.sin + here, of.out.cos + here, of.out.pair, n, [&](int64_t i) __attribute__((always_inline)) { return sin[i]; },
          [&](int64_t i) __attribute__((always_inline)) { return cos[i]; });
    }
  }
}

struct Angles {
  const double* angle;
  double *sin, *cos;
};

ALWAYS_INLINE void fill(const Angles& of, int64_t begin, int64_t end) {
  sin_cos(of.angle + begin, end - begin, of.sin + begin, of.cos + begin);
}

// One build of each body for each vector width; the widest that the processor supports is used.
#if defined(__x86_64__)
template <class Work>
__attribute__((target("avx512f,avx512dq,avx512vl"))) void with_512_bits(const Work& work, int64_t begin, int64_t end) {
  fill(work, begin, end);
}
template <class Work>
__attribute__((target("avx2"))) void with_256_bits(const Work& work, int64_t begin, int64_t end) {
  fill(work, begin, end);
}
#endif
template <class Work>
void with_any(const Work& work, int64_t begin, int64_t end) {
  fill(work, begin, end);
}

template <class Work>
void run(const Work& work, int64_t begin, int64_t end) {
#if defined(__x86_64__)
  if (posenc::instructions() >= posenc::AVX512) return with_512_bits(work, begin, end);
  if (posenc::instructions() >= posenc::AVX2) return with_256_bits(work, begin, end);
#endif
  with_any(work, begin, end);
}

template <class Out>
void consecutive(const int64_t* starts, int64_t rows, int64_t length, const double* frequencies, int64_t n, Table<Out> out, int threads) {
  // The block does not depend on the length, so an entry is the same in tables of any length.
  const int64_t block = std::max<int64_t>(std::min(POSITIONS, BLOCK / n), 1);
  const int64_t turns = std::min(block, length);
  std::vector<double> angle(turns * n), sin(turns * n), cos(turns * n);
  for (int64_t token = 0; token < turns; ++token)
    for (int64_t i = 0; i < n; ++i) angle[token * n + i] = static_cast<double>(token) * frequencies[i];
  run(Angles{angle.data(), sin.data(), cos.data()}, 0, turns * n);
  const int64_t size = sizeof(Out), step = out.pair * size, tile = std::min(n, TILE);
  const bool whole = n % tile == 0 && lines(out.sin, tile * step | out.token * size | out.row * size) &&
                     (out.neighbours() || (out.planes() && lines(out.cos, 0)));
  const bool streaming = whole && 2 * rows * length * n * size >= STREAM;
  if (out.dense(rows, length, n)) {
    posenc::in_large_pages(out.sin, rows * length * n * size * out.pair);
    if (out.planes()) posenc::in_large_pages(out.cos, rows * length * n * size);
  }
  const int64_t blocks = (length + block - 1) / block;
  const Consecutive<Out> work{starts, length, n, block, blocks, frequencies, sin.data(), cos.data(), out, streaming};
  posenc::in_parallel(rows * blocks, std::max<int64_t>(CHUNK / (block * n), 1), threads, [&](int64_t begin, int64_t end) {
    run(work, begin, end);
#if defined(__x86_64__)
    if (streaming) _mm_sfence();
#endif
  });
}

template <class Out>
void anywhere(const Anywhere<Out>& work, int64_t rows, int threads) {
  posenc::in_parallel(rows * work.length, std::max<int64_t>(CHUNK / 4 / work.n, 1), threads,
                      [&](int64_t begin, int64_t end) { run(work, begin, end); });
}

template <class Out>
Table<Out> table(void* sin, void* cos, const int64_t* strides) {
  return {static_cast<Out*>(sin), static_cast<Out*>(cos), strides[0], strides[1], strides[2]};
}

}  // namespace

EXPORTED void posenc_sin_cos_consecutive(const int64_t* starts, int64_t rows, int64_t length, const double* frequencies, int64_t n,
                                       void* sin, void* cos, const int64_t* strides, int fp64, int threads) {
  if (fp64) return consecutive(starts, rows, length, frequencies, n, table<double>(sin, cos, strides), threads);
  consecutive(starts, rows, length, frequencies, n, table<float>(sin, cos, strides), threads);
}

// sin and cos of coords[b, t, axes[n]] · frequencies[n]; coords are int64 or (`real`) double, axes may be null.
EXPORTED void posenc_sin_cos_at(const void* coords, int real, const int64_t* of_coords, int64_t rows, int64_t length,
                              const double* frequencies, const int64_t* axes, int64_t n, void* sin, void* cos,
                              const int64_t* strides, int fp64, int threads) {
  const auto work = [&](auto out) {
    return Anywhere<std::remove_pointer_t<decltype(out.sin)>>{
        coords, real != 0, length, n, of_coords[0], of_coords[1], of_coords[2], frequencies, axes, out};
  };
  if (fp64) return anywhere(work(table<double>(sin, cos, strides)), rows, threads);
  anywhere(work(table<float>(sin, cos, strides)), rows, threads);
}
