// Causal self-attention of consecutive tokens over a band of keys: every query sees its own key and at most `left` before it, or
// fewer: as many as `reach` says for its row and head.
//
//   out_i = Σ_j softmax_j(q_i·k_j·scale + bias[i - j])·v_j,   0 ≤ i - j ≤ left
//
// A few queries at a time meet exactly the keys that they may see, so that work is that of the pairs. Keys are transposed in panels
// of 16. Many keys are taken a chunk at a time, from the first to the query's own, so that what is transposed stays in the
// second-level cache; a query then keeps the largest logit so far and multiplies its earlier sums when a larger one comes. What a
// query may not see has a bias of -inf. Sums have an order that depends on neither the batch nor the threads nor the processor.
// Multiply-adds are fused.
// Legend: b batch, h query heads, g key heads, t tokens, d channels. Strides count elements; channels are adjacent.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>

#include "exported.h"
#include "lanes.h"
#include "processor.h"
#include "threads.h"

namespace posenc {

// The layout that __init__.py packs.
struct Banded {
  const float *q, *k, *v;
  const float* bias;     // [h or 1, left + 1] by distance, or null
  const int64_t* reach;  // [b, h], at most left each, or null
  float* out;
  int64_t batch, heads, key_heads, length, width, left;  // width: a multiple of 16
  int64_t stride[4][3];                                  // of q, k, v, out along b, h, t
  int64_t bias_stride, threads;
  double scale;
};
static_assert(sizeof(Banded) == 27 * 8, "__init__.py packs 26 integers and a real");

namespace {

constexpr int64_t MARGIN = 32;     // more than a block of queries and a panel reach beyond the band
constexpr int64_t SEGMENT = 1024;  // queries that share transposed keys
constexpr int64_t CHUNK = 1 << 17;  // numbers of transposed keys: half a mebibyte, and as much of values
constexpr float WEIGHTLESS = -80.0f;  // less than the largest logit: e^-80 times a value is still no subnormal number, which are slow
constexpr float LOWEST = std::numeric_limits<float>::lowest();

// What a query has seen so far: its largest logit, and the sum of exponentials less that.
struct Seen {
  float most, total;
};

struct Scratch {
  int64_t keys, pitch;  // of a chunk; of rows of logits
  std::unique_ptr<float[]> memory;
  std::unique_ptr<Seen[]> seen;  // of the queries of a segment, for every query head of a key head
  float *k, *v, *q, *logits, *bias;

  Scratch(const Banded& of, int64_t rows)
      : keys(std::min(std::max(CHUNK / of.width / LANES, INT64_C(1)) * LANES, whole(std::min(SEGMENT + of.left, of.length)))),
        pitch(keys),
        memory(new float[2 * pitch * of.width + rows * (of.width + pitch) + of.left + 1 + 2 * MARGIN]),
        seen(new Seen[of.heads / of.key_heads * SEGMENT]) {
    k = memory.get(), v = k + pitch * of.width, q = v + pitch * of.width, logits = q + rows * of.width;
    bias = logits + rows * pitch;
  }
};

// Registers V hold COUNT numbers; a panel's 16 lanes are LANES / COUNT of them.

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

// Keys in panels: panel p holds channel c of key 16p + lane at (p·width + c)·16 + lane. Values one after the other.
template <int COUNT>
ALWAYS_INLINE void pack(const Banded& of, const Scratch& s, int64_t b, int64_t g, int64_t begin, int64_t end) {
  using V = typename Of<COUNT>::Numbers;
  const int64_t count = end - begin;
  const float* const keys = of.k + b * of.stride[1][0] + g * of.stride[1][1] + begin * of.stride[1][2];
  const float* const values = of.v + b * of.stride[2][0] + g * of.stride[2][1] + begin * of.stride[2][2];
  for (int64_t first = 0; first < whole(count); first += COUNT) {
    float* const panel = s.k + first / LANES * LANES * of.width + first % LANES;
    const int64_t real = std::min<int64_t>(COUNT, count - first);
    for (int64_t c = 0; c < of.width; c += COUNT) {
      V rows[COUNT];
      for (int64_t r = 0; r < COUNT; ++r) rows[r] = r < real ? *(const V*)(keys + (first + r) * of.stride[1][2] + c) : V{};
      swap_halves<COUNT, 1>(rows), swap_halves<COUNT, 2>(rows);
      if constexpr (COUNT > 4) swap_halves<COUNT, 4>(rows);
      if constexpr (COUNT > 8) swap_halves<COUNT, 8>(rows);
      for (int64_t lane = 0; lane < COUNT; ++lane) *(V*)(panel + (c + lane) * LANES) = rows[lane];
    }
  }
  for (int64_t j = 0; j < count; ++j) std::copy_n(values + j * of.stride[2][2], of.width, s.v + j * of.width);
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

// WIDE registers of channels of the sums of probabilities times values.
template <int COUNT, int ROWS, int WIDE>
ALWAYS_INLINE void sums(const float* probs, int64_t pitch, const float* v, int64_t width, int64_t begin, int64_t end,
                        typename Of<COUNT>::Numbers (&sum)[ROWS][WIDE]) {
  FUSED_HERE
  using V = typename Of<COUNT>::Numbers;
  for (int r = 0; r < ROWS; ++r)
    for (int w = 0; w < WIDE; ++w) sum[r][w] = V{};
  for (int64_t j = begin; j < end; ++j)
    for (int w = 0; w < WIDE; ++w) {
      const V value = *(const V*)(v + j * width + w * COUNT);
      for (int r = 0; r < ROWS; ++r) sum[r][w] += probs[r * pitch + j] * value;
    }
}

// Exponentials of a row less the largest so far; returns what earlier sums are multiplied by. Panels between the first two and the
// last two hold no key that may not be seen.
template <int COUNT>
ALWAYS_INLINE float softmax(float* row, const float* bias, int64_t begin, int64_t end, Seen& seen) {
  using V = typename Of<COUNT>::Numbers;
  constexpr int64_t PER = LANES / COUNT;
  const V hidden = V{} - std::numeric_limits<float>::infinity();
  V largest[PER], total[PER];
  for (int64_t p = 0; p < PER; ++p) largest[p] = hidden, total[p] = V{};
  for (int64_t j = begin; j < end; j += LANES) {
    if (j < begin + 2 * LANES || j >= end - 2 * LANES) {
      for (int64_t p = 0; p < PER; ++p) {
        const V more = *(const V*)(bias + j + p * COUNT);
        V& x = *(V*)(row + j + p * COUNT);
        x = more < LOWEST ? hidden : x;  // it may be NaN
      }
    }
    for (int64_t p = 0; p < PER; ++p) {
      const V x = *(const V*)(row + j + p * COUNT) + *(const V*)(bias + j + p * COUNT);
      *(V*)(row + j + p * COUNT) = x;
      largest[p] = x > largest[p] ? x : largest[p];
    }
  }
  float most = std::max(seen.most, LOWEST);  // of a row that sees none of these keys too: -inf less -inf is no number
  for (int64_t lane = 0; lane < LANES; ++lane) most = std::max(most, largest[lane / COUNT][lane % COUNT]);
  for (int64_t j = begin; j < end; j += LANES)
    for (int64_t p = 0; p < PER; ++p) {
      V x = *(const V*)(row + j + p * COUNT) - most;
      exponentiate<COUNT>(x, WEIGHTLESS);
      *(V*)(row + j + p * COUNT) = x;
      total[p] += x;
    }
  float sum = 0.0f;
  for (int64_t lane = 0; lane < LANES; ++lane) sum += total[lane / COUNT][lane % COUNT];
  V factor = V{} + (seen.most - most);
  exponentiate<COUNT>(factor, WEIGHTLESS);
  seen = {most, seen.total * factor[0] + sum};
  return factor[0];
}

// A chunk of tokens, low … high - 1, and how far back queries see: their keys and values are in scratch.
struct Chunk {
  int64_t low, high, left;
};

// ROWS queries from `first`, of which those before `last` are real, and the keys of a chunk that they see.
template <int COUNT, int ROWS, int WIDE>
ALWAYS_INLINE void block(const Banded& of, const Scratch& s, int64_t b, int64_t h, int64_t first, int64_t last, const Chunk& chunk,
                         Seen* seen) {
  const int64_t width = of.width, real = std::min<int64_t>(ROWS, last - first), base = chunk.low;
  const int64_t nearest = std::max<int64_t>(first - chunk.left, 0);  // the first key that one of these queries sees
  const bool starts = nearest >= chunk.low, ends = first + real <= chunk.high;
  const int64_t begin = std::max(nearest, chunk.low) - base, end = std::min(first + real, chunk.high) - base;
  const int64_t from = begin / LANES * LANES, to = whole(end);
  const float scale = static_cast<float>(of.scale);
  for (int64_t r = 0; r < ROWS; ++r) {  // rows past the last one are the last one again
    const float* const q =
        of.q + b * of.stride[0][0] + h * of.stride[0][1] + (first + std::min(r, real - 1)) * of.stride[0][2];
    for (int64_t c = 0; c < width; ++c) s.q[r * width + c] = q[c] * scale;
  }
  using V = typename Of<COUNT>::Numbers;
  constexpr int64_t PER = LANES / COUNT;
  int64_t j = from;
  for (; j + WIDE * COUNT <= to; j += WIDE * COUNT)
    products<COUNT, ROWS, WIDE>(s.q, s.k + j * width, width, s.logits + j, s.pitch);
  if constexpr (WIDE > 2 * PER)
    for (; j + 2 * LANES <= to; j += 2 * LANES) products<COUNT, ROWS, 2 * PER>(s.q, s.k + j * width, width, s.logits + j, s.pitch);
  for (; j < to; j += LANES) products<COUNT, ROWS, PER>(s.q, s.k + j * width, width, s.logits + j, s.pitch);
  float before[ROWS], share[ROWS];  // what earlier sums, and what all sums are multiplied by
  Seen spare[ROWS];  // of rows past the last one
  for (int64_t r = 0; r < ROWS; ++r) {
    const int64_t i = first + std::min(r, real - 1);
    Seen& own = r < real ? seen[r] : spare[r];
    if (starts || r >= real) own = {-std::numeric_limits<float>::infinity(), 0.0f};
    before[r] = softmax<COUNT>(s.logits + r * s.pitch, s.bias + base - i + chunk.left + MARGIN, from, to, own);
    share[r] = ends ? 1.0f / own.total : 1.0f;
  }
  const auto write = [&](int64_t r, int64_t c, const V& sum) {
    if (r >= real) return;
    V* const out = (V*)(of.out + b * of.stride[3][0] + h * of.stride[3][1] + (first + r) * of.stride[3][2] + c);
    *out = (starts ? sum : *out * before[r] + sum) * share[r];
  };
  int64_t c = 0;
  for (; c + WIDE * COUNT <= width; c += WIDE * COUNT) {
    V sum[ROWS][WIDE];
    sums<COUNT, ROWS, WIDE>(s.logits, s.pitch, s.v + c, width, begin, end, sum);
    for (int r = 0; r < ROWS; ++r)
      for (int w = 0; w < WIDE; ++w) write(r, c + w * COUNT, sum[r][w]);
  }
  for (; c < width; c += LANES) {
    V sum[ROWS][PER];
    sums<COUNT, ROWS, PER>(s.logits, s.pitch, s.v + c, width, begin, end, sum);
    for (int r = 0; r < ROWS; ++r)
      for (int w = 0; w < PER; ++w) write(r, c + w * COUNT, sum[r][w]);
  }
}

// The biases of a head from far to near, between what may not be seen.
ALWAYS_INLINE void biases(const Banded& of, const Scratch& s, int64_t h, int64_t left) {
  std::fill_n(s.bias, MARGIN, -std::numeric_limits<float>::infinity());
  std::fill_n(s.bias + MARGIN + left + 1, MARGIN, -std::numeric_limits<float>::infinity());
  for (int64_t back = 0; back <= left; ++back) s.bias[MARGIN + left - back] = of.bias ? of.bias[h * of.bias_stride + back] : 0.0f;
}

// A unit of work is a segment of the queries of a key head, for all its query heads.
inline int64_t segments(const Banded& of) { return (of.length + SEGMENT - 1) / SEGMENT; }

template <int COUNT, int ROWS, int WIDE>
ALWAYS_INLINE void some(const Banded& of, int64_t from, int64_t to) {
  const int64_t group = of.heads / of.key_heads, parts = segments(of);
  const Scratch s(of, ROWS);
  for (int64_t unit = from; unit < to; ++unit) {
    const int64_t b = unit / (of.key_heads * parts), g = unit / parts % of.key_heads, begin = unit % parts * SEGMENT;
    const int64_t end = std::min(begin + SEGMENT, of.length);
    const int64_t* const reach = of.reach ? of.reach + (b * of.key_heads + g) * group : nullptr;
    const int64_t farthest = reach ? *std::max_element(reach, reach + group) : of.left;
    for (int64_t low = std::max<int64_t>(begin - farthest, 0); low < end; low += s.keys) {
      const int64_t high = std::min(low + s.keys, end), earliest = begin + std::max<int64_t>(low - begin, 0) / ROWS * ROWS;
      pack<COUNT>(of, s, b, g, low, high);
      for (int64_t h = g * group; h < (g + 1) * group; ++h) {
        const int64_t left = reach ? reach[h - g * group] : of.left;
        const int64_t latest = std::min(end, high + left);  // later queries see none of these keys
        const Chunk chunk = {low, high, left};
        biases(of, s, h, left);
        Seen* const seen = s.seen.get() + (h - g * group) * SEGMENT - begin;
        for (int64_t first = earliest; first < latest; first += ROWS)
          block<COUNT, ROWS, WIDE>(of, s, b, h, first, end, chunk, seen + first);
      }
    }
  }
}

#if defined(__x86_64__)
FUSED OF_512_BITS("avx512f,avx512dq,avx512vl,avx512bw,fma") void with_512_bits(const Banded& of, int64_t from, int64_t to) {
  some<16, 6, 4>(of, from, to);
}
FUSED __attribute__((target("avx2,fma"))) void with_256_bits(const Banded& of, int64_t from, int64_t to) {
  some<8, 3, 4>(of, from, to);
}
#endif
FUSED void with_any(const Banded& of, int64_t from, int64_t to) { some<4, 4, 4>(of, from, to); }

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
