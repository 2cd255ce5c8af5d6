// Causal self-attention of consecutive tokens over a band of keys: every query sees its own key and at most `left` before it,
// or as many as `reach` says for its row and head.
//
//   out_i = Σ_j softmax_j(q_i·k_j·scale + bias[i - j])·v_j,   0 ≤ i - j ≤ left
//
// A few queries at a time meet exactly the keys that they may see, so that work is that of the pairs. Keys are transposed in panels
// of 16, and logits of a few queries and their keys stay in the second-level cache. What a query may not see has a bias of -inf.
// Sums have an order that depends on neither the batch nor the threads nor the processor. Multiply-adds are fused.
// Legend: b batch, h query heads, g key heads, t tokens, d channels. Strides count elements; channels are adjacent.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "exported.h"
#include "lanes.h"
#include "processor.h"
#include "threads.h"

// The other kernels are compiled without fused multiply-adds: two compilers, two words for the exception.
#if defined(__clang__)
#define FUSED
#define FUSED_HERE _Pragma("clang fp contract(fast)")
#else
#define FUSED __attribute__((optimize("fp-contract=fast")))
#define FUSED_HERE
#endif

namespace posenc {

// The layout that __init__.py packs.
struct Banded {
  const float *q, *k, *v;
  const float* bias;  // [h or 1, left + 1] by distance, or null
  float* out;
  const int64_t* reach;  // [b, h] at most left, or null: left
  int64_t batch, heads, key_heads, length, width, left;  // width: a multiple of 16
  int64_t stride[4][3];                                  // of q, k, v, out along b, h, t
  int64_t bias_stride, threads;
  double scale;
};
static_assert(sizeof(Banded) == 27 * 8, "__init__.py packs 26 integers and a real");

namespace {

constexpr int64_t MARGIN = 32;     // more than a block of queries and a panel reach beyond the band
constexpr int64_t SEGMENT = 1024;   // the fewest queries that share transposed keys

struct Scratch {
  int64_t pitch;  // of rows of logits
  std::vector<float> memory;
  float *k, *v, *q, *logits, *bias;

  Scratch(const Banded& of, int64_t keys, int64_t rows) : pitch((keys + LANES - 1) / LANES * LANES) {
    memory.resize(2 * pitch * of.width + rows * (of.width + pitch) + of.left + 1 + 2 * MARGIN);
    k = memory.data(), v = k + pitch * of.width, q = v + pitch * of.width, logits = q + rows * of.width;
    bias = logits + rows * pitch;
  }
};

// Swaps lanes of one half with those of the other between rows that stand as far apart; after halves of 1, 2, 4, 8 the 16 rows
// are the columns.
template <int HALF>
ALWAYS_INLINE void swap_halves(Lanes (&rows)[LANES]) {
#define ALL(lane)                                                                                                      \
  lane(0), lane(1), lane(2), lane(3), lane(4), lane(5), lane(6), lane(7), lane(8), lane(9), lane(10), lane(11), lane(12), \
      lane(13), lane(14), lane(15)
#define LEFT(l) ((l)&HALF ? 16 + (l)-HALF : (l))
#define RIGHT(l) ((l)&HALF ? 16 + (l) : (l) + HALF)
#if defined(__clang__)
#define TAKE(lane) __builtin_shufflevector(above, below, ALL(lane))
#else
#define TAKE(lane) __builtin_shuffle(above, below, Integers{ALL(lane)})
#endif
  for (int r = 0; r < LANES; ++r) {
    if (r & HALF) continue;
    const Lanes above = rows[r], below = rows[r + HALF];
    rows[r] = TAKE(LEFT);
    rows[r + HALF] = TAKE(RIGHT);
  }
#undef TAKE
#undef RIGHT
#undef LEFT
#undef ALL
}

// Keys in panels: panel p holds channel c of key 16p + lane at (p·width + c)·16 + lane. Values one after the other.
ALWAYS_INLINE void pack(const Banded& of, const Scratch& s, int64_t b, int64_t g, int64_t begin, int64_t end) {
  const int64_t count = end - begin;
  const float* const keys = of.k + b * of.stride[1][0] + g * of.stride[1][1] + begin * of.stride[1][2];
  const float* const values = of.v + b * of.stride[2][0] + g * of.stride[2][1] + begin * of.stride[2][2];
  for (int64_t first = 0; first < count; first += LANES) {
    float* const panel = s.k + first * of.width;
    const int64_t real = std::min(LANES, count - first);
    for (int64_t c = 0; c < of.width; c += LANES) {
      Lanes rows[LANES];
      for (int64_t r = 0; r < LANES; ++r) rows[r] = r < real ? *(const Lanes*)(keys + (first + r) * of.stride[1][2] + c) : Lanes{};
      swap_halves<1>(rows), swap_halves<2>(rows), swap_halves<4>(rows), swap_halves<8>(rows);
      for (int64_t lane = 0; lane < LANES; ++lane) *(Lanes*)(panel + (c + lane) * LANES) = rows[lane];
    }
  }
  for (int64_t j = 0; j < count; ++j) std::copy_n(values + j * of.stride[2][2], of.width, s.v + j * of.width);
}

// Logits of ROWS queries and WIDE panels of keys.
template <int ROWS, int WIDE>
ALWAYS_INLINE void products(const float* q, const float* panels, int64_t width, float* logits, int64_t pitch) {
  FUSED_HERE
  Lanes sum[ROWS][WIDE] = {};
  for (int64_t c = 0; c < width; ++c) {
    Lanes k[WIDE];
    for (int w = 0; w < WIDE; ++w) k[w] = *(const Lanes*)(panels + (w * width + c) * LANES);
    for (int r = 0; r < ROWS; ++r)
      for (int w = 0; w < WIDE; ++w) sum[r][w] += q[r * width + c] * k[w];
  }
  for (int r = 0; r < ROWS; ++r)
    for (int w = 0; w < WIDE; ++w) *(Lanes*)(logits + r * pitch + w * LANES) = sum[r][w];
}

// 16·WIDE channels of the sums of probabilities times values.
template <int ROWS, int WIDE>
ALWAYS_INLINE void sums(const float* probs, int64_t pitch, const float* v, int64_t width, int64_t begin, int64_t end,
                        Lanes (&sum)[ROWS][WIDE]) {
  FUSED_HERE
  for (int r = 0; r < ROWS; ++r)
    for (int w = 0; w < WIDE; ++w) sum[r][w] = Lanes{};
  for (int64_t j = begin; j < end; ++j) {
    Lanes value[WIDE];
    for (int w = 0; w < WIDE; ++w) value[w] = *(const Lanes*)(v + j * width + w * LANES);
    for (int r = 0; r < ROWS; ++r)
      for (int w = 0; w < WIDE; ++w) sum[r][w] += probs[r * pitch + j] * value[w];
  }
}

// Exponentials of a row less its largest; returns one over their sum.
ALWAYS_INLINE float softmax(float* row, const float* bias, int64_t begin, int64_t end) {
  Lanes largest = Lanes{} - std::numeric_limits<float>::infinity(), total = {};
  for (int64_t j = begin; j < end; j += LANES) {
    const Lanes x = *(const Lanes*)(row + j) + *(const Lanes*)(bias + j);
    *(Lanes*)(row + j) = x;
    largest = x > largest ? x : largest;
  }
  float most = largest[0];
  for (int lane = 1; lane < LANES; ++lane) most = std::max(most, largest[lane]);
  for (int64_t j = begin; j < end; j += LANES) {
    Lanes x = *(const Lanes*)(row + j) - most;
    exponentiate(x);
    *(Lanes*)(row + j) = x;
    total += x;
  }
  float sum = 0.0f;
  for (int lane = 0; lane < LANES; ++lane) sum += total[lane];
  return 1.0f / sum;
}

// ROWS queries from `first`, of which those before `last` are real; keys in scratch begin at token `base`.
template <int ROWS, int WIDE>
ALWAYS_INLINE void block(const Banded& of, const Scratch& s, int64_t b, int64_t h, int64_t left, int64_t first, int64_t last,
                         int64_t base) {
  const int64_t width = of.width, real = std::min<int64_t>(ROWS, last - first);
  const int64_t begin = std::max<int64_t>(first - left, 0) - base, end = first + real - base;
  const int64_t from = begin / LANES * LANES, to = (end + LANES - 1) / LANES * LANES;
  const float scale = static_cast<float>(of.scale);
  for (int64_t r = 0; r < ROWS; ++r) {  // rows past the last one are the last one again
    const float* const q =
        of.q + b * of.stride[0][0] + h * of.stride[0][1] + (first + std::min(r, real - 1)) * of.stride[0][2];
    for (int64_t c = 0; c < width; ++c) s.q[r * width + c] = q[c] * scale;
  }
  int64_t j = from;
  for (; j + WIDE * LANES <= to; j += WIDE * LANES)
    products<ROWS, WIDE>(s.q, s.k + j * width, width, s.logits + j, s.pitch);
  if constexpr (WIDE > 2)
    for (; j + 2 * LANES <= to; j += 2 * LANES) products<ROWS, 2>(s.q, s.k + j * width, width, s.logits + j, s.pitch);
  for (; j < to; j += LANES) products<ROWS, 1>(s.q, s.k + j * width, width, s.logits + j, s.pitch);
  float share[ROWS];
  for (int64_t r = 0; r < ROWS; ++r) {
    const int64_t i = first + std::min(r, real - 1);
    share[r] = softmax(s.logits + r * s.pitch, s.bias + base - i + of.left + MARGIN, from, to);
  }
  const auto write = [&](int64_t r, int64_t c, const Lanes& sum) {
    float* const out = of.out + b * of.stride[3][0] + h * of.stride[3][1] + (first + r) * of.stride[3][2] + c;
    if (r < real) *(Lanes*)out = sum * share[r];
  };
  int64_t c = 0;
  for (; c + WIDE * LANES <= width; c += WIDE * LANES) {
    Lanes sum[ROWS][WIDE];
    sums<ROWS, WIDE>(s.logits, s.pitch, s.v + c, width, begin, end, sum);
    for (int r = 0; r < ROWS; ++r)
      for (int w = 0; w < WIDE; ++w) write(r, c + w * LANES, sum[r][w]);
  }
  for (; c < width; c += LANES) {
    Lanes sum[ROWS][1];
    sums<ROWS, 1>(s.logits, s.pitch, s.v + c, width, begin, end, sum);
    for (int r = 0; r < ROWS; ++r) write(r, c, sum[r][0]);
  }
}

// Queries that share transposed keys: a segment of a key head's tokens, for all query heads of it.
inline int64_t segment(const Banded& of) { return std::max(SEGMENT, of.left + 1); }
inline int64_t segments(const Banded& of) { return (of.length + segment(of) - 1) / segment(of); }

template <int ROWS, int WIDE>
ALWAYS_INLINE void some(const Banded& of, int64_t from, int64_t to) {
  const int64_t group = of.heads / of.key_heads, queries = segment(of), parts = segments(of);
  const Scratch s(of, std::min(queries + of.left, of.length), ROWS);
  for (int64_t unit = from; unit < to; ++unit) {
    const int64_t b = unit / (of.key_heads * parts), g = unit / parts % of.key_heads, begin = unit % parts * queries;
    const int64_t end = std::min(begin + queries, of.length), base = std::max<int64_t>(begin - of.left, 0);
    pack(of, s, b, g, base, end);
    for (int64_t h = g * group; h < (g + 1) * group; ++h) {
      std::fill(s.bias, s.bias + of.left + 1 + 2 * MARGIN, -std::numeric_limits<float>::infinity());
      const int64_t left = of.reach ? of.reach[b * of.heads + h] : of.left;
      for (int64_t back = 0; back <= left; ++back)
        s.bias[MARGIN + of.left - back] = of.bias ? of.bias[h * of.bias_stride + back] : 0.0f;
      for (int64_t first = begin; first < end; first += ROWS) block<ROWS, WIDE>(of, s, b, h, left, first, end, base);
    }
  }
}

#if defined(__x86_64__)
FUSED OF_512_BITS("avx512f,avx512dq,avx512vl,avx512bw,fma") void with_512_bits(const Banded& of, int64_t from, int64_t to) {
  some<6, 4>(of, from, to);
}
FUSED __attribute__((target("avx2,fma"))) void with_256_bits(const Banded& of, int64_t from, int64_t to) {
  some<3, 2>(of, from, to);
}
#endif
FUSED void with_any(const Banded& of, int64_t from, int64_t to) { some<6, 1>(of, from, to); }

}  // namespace
}  // namespace posenc

EXPORTED void posenc_banded(const posenc::Banded* given) {
  using namespace posenc;
  const Banded& of = *given;
  in_parallel(of.batch * of.key_heads * segments(of), 1, static_cast<int>(of.threads), [&](int64_t from, int64_t to) {
#if defined(__x86_64__)
    if (instructions() >= AVX512) return with_512_bits(of, from, to);
    if (instructions() >= AVX2) return with_256_bits(of, from, to);
#endif
    with_any(of, from, to);
  });
}
