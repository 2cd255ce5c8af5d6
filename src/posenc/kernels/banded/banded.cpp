// Causal self-attention of consecutive tokens over a band of keys: every query sees its own key and at most `left` before it, or
// fewer: as many as `cutoff` says for its row and head.
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
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>

#include "banded/panels.h"
#include "exported.h"
#include "lanes.h"
#include "processor.h"
#include "threads.h"

namespace posenc {

// The layout that __init__.py packs.
struct Banded {
  const void *q, *k, *v;  // float, or bfloat16
  const float* bias;     // [h or 1, left + 1] by distance, or null
  const int64_t* cutoff;  // [b, h], at most left each, or null
  float *out, *sums;     // sums [b, t, h]: logarithms of sums of exponentials; or null
  int64_t batch, heads, key_heads, length, width, left;  // width: a multiple of 16
  int64_t stride[4][3];                                  // of q, k, v, out along b, h, t
  int64_t bias_stride, threads, bfloat16;
  double scale;
};
static_assert(sizeof(Banded) == 29 * 8, "__init__.py packs 28 integers and a real");

namespace {

constexpr int64_t MARGIN = 32;      // more than a block of queries and a panel reach beyond the band
constexpr int64_t SEGMENT = 1024;  // queries that share transposed keys
constexpr int64_t CHUNK = 1 << 17;  // numbers of transposed keys: half a mebibyte, and as much of values

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
template <int COUNT, int ROWS, int WIDE, class T>
ALWAYS_INLINE void block(const Banded& of, const Scratch& s, int64_t b, int64_t h, int64_t first, int64_t last, const Chunk& chunk,
                         Seen* seen) {
  const int64_t width = of.width, real = std::min<int64_t>(ROWS, last - first), base = chunk.low;
  const int64_t nearest = std::max<int64_t>(first - chunk.left, 0);  // the first key that one of these queries sees
  const bool starts = nearest >= chunk.low, ends = first + real <= chunk.high;
  const int64_t begin = std::max(nearest, chunk.low) - base, end = std::min(first + real, chunk.high) - base;
  const int64_t from = begin / LANES * LANES, to = whole(end);
  const float scale = static_cast<float>(of.scale);
  using V = typename Of<COUNT>::Numbers;
  for (int64_t r = 0; r < ROWS; ++r) {  // rows past the last one are the last one again
    const T* const q =
        (const T*)of.q + b * of.stride[0][0] + h * of.stride[0][1] + (first + std::min(r, real - 1)) * of.stride[0][2];
    for (int64_t c = 0; c < width; c += COUNT) {
      V& own = *(V*)(s.q + r * width + c);
      read<COUNT>(q + c, own);
      own *= scale;
    }
  }
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
    share[r] = !ends ? 1.0f : own.total == 0.0f ? 0.0f : 1.0f / own.total;  // a bias of -inf may hide every key
    if (of.sums && ends && r < real) of.sums[(b * of.length + i) * of.heads + h] = own.most + std::log(own.total);
  }
  const auto write = [&](int64_t r, int64_t c, const V& sum) {
    if (r >= real) return;
    V* const out = (V*)(of.out + b * of.stride[3][0] + h * of.stride[3][1] + (first + r) * of.stride[3][2] + c);
    *out = (starts ? sum : *out * before[r] + sum) * share[r];
  };
  int64_t c = 0;
  for (; c + WIDE * COUNT <= width; c += WIDE * COUNT) {
    V sum[ROWS][WIDE];
    sums<COUNT, ROWS, WIDE>(s.logits, s.pitch, 1, s.v + c, width, begin, end, sum);
    for (int r = 0; r < ROWS; ++r)
      for (int w = 0; w < WIDE; ++w) write(r, c + w * COUNT, sum[r][w]);
  }
  for (; c < width; c += LANES) {
    V sum[ROWS][PER];
    sums<COUNT, ROWS, PER>(s.logits, s.pitch, 1, s.v + c, width, begin, end, sum);
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

template <int COUNT, int ROWS, int WIDE, class T>
ALWAYS_INLINE void some_of(const Banded& of, int64_t from, int64_t to) {
  const int64_t group = of.heads / of.key_heads, parts = segments(of);
  const Scratch s(of, ROWS);
  for (int64_t unit = from; unit < to; ++unit) {
    const int64_t b = unit / (of.key_heads * parts), g = unit / parts % of.key_heads, begin = unit % parts * SEGMENT;
    const int64_t end = std::min(begin + SEGMENT, of.length);
    const int64_t* const cutoff = of.cutoff ? of.cutoff + (b * of.key_heads + g) * group : nullptr;
    const int64_t farthest = cutoff ? *std::max_element(cutoff, cutoff + group) : of.left;
    for (int64_t low = std::max<int64_t>(begin - farthest, 0); low < end; low += s.keys) {
      const int64_t high = std::min(low + s.keys, end), earliest = begin + std::max<int64_t>(low - begin, 0) / ROWS * ROWS;
      const int64_t *const of_k = of.stride[1], *const of_v = of.stride[2];
      transpose<COUNT>((const T*)of.k + b * of_k[0] + g * of_k[1] + low * of_k[2], of_k[2], high - low, of.width, s.k);
      copy<COUNT>((const T*)of.v + b * of_v[0] + g * of_v[1] + low * of_v[2], of_v[2], high - low, of.width, s.v);
      for (int64_t h = g * group; h < (g + 1) * group; ++h) {
        const int64_t left = cutoff ? cutoff[h - g * group] : of.left;
        const int64_t latest = std::min(end, high + left);  // later queries see none of these keys
        const Chunk chunk = {low, high, left};
        biases(of, s, h, left);
        Seen* const seen = s.seen.get() + (h - g * group) * SEGMENT - begin;
        for (int64_t first = earliest; first < latest; first += ROWS)
          block<COUNT, ROWS, WIDE, T>(of, s, b, h, first, end, chunk, seen + first);
      }
    }
  }
}

template <int COUNT, int ROWS, int WIDE>
ALWAYS_INLINE void some(const Banded& of, int64_t from, int64_t to) {
  if (of.bfloat16) return some_of<COUNT, ROWS, WIDE, uint16_t>(of, from, to);
  some_of<COUNT, ROWS, WIDE, float>(of, from, to);
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
