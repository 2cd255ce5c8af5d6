// Gradients of the attention of banded.cpp, of the bias too.
//
//   P  = exp(q·kᵀ·scale + bias - sums)     dS = P∘(dO·vᵀ - inner)     inner = rowsum(dO∘O), less the gradient of sums
//   dq = dS·k·scale     dk = dSᵀ·q·scale     dv = Pᵀ·dO     dbias[r] = Σ dS where the query is r tokens after the key
//
// A chunk of keys at a time meets the queries that see any of them, some at a time; what is made of both stays in the second-level
// cache. A key head with its query heads is one thread's. Sums have a fixed order. Multiply-adds are fused.
// Legend: b batch, h query heads, g key heads, t tokens, d channels. Strides count elements; channels are adjacent.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>

#include "banded/panels.h"
#include "exported.h"
#include "lanes.h"
#include "processor.h"
#include "threads.h"

namespace posenc {

// The layout that gradients.py packs.
struct BandedGradients {
  const void *q, *k, *v, *grad;  // float, or bfloat16
  const float *sums, *inner;     // [b, h, t]
  const float* bias;             // [h, left + 1] by distance
  const int64_t* cutoff;         // [b, h], at most left each
  float *d_q, *d_k, *d_v;        // [b, t, h or g, d]
  float* d_bias;                 // [b, h, left + 1], or null
  int64_t batch, heads, key_heads, length, width, left;  // width: a multiple of 16
  int64_t stride[4][3];                                  // of q, k, v, grad along b, h, t
  int64_t bias_stride, threads, bfloat16;
  double scale;
};
static_assert(sizeof(BandedGradients) == 34 * 8, "gradients.py packs 33 integers and a real");

namespace {

constexpr int64_t QUERIES = 48;     // that meet a chunk at once: a multiple of 3, 4 and 6
constexpr int64_t MARGIN = 128;     // more than twice such queries and a panel reach beyond the band
constexpr int64_t CHUNK = 1 << 14;  // numbers of a chunk's keys

struct Scratch {
  int64_t keys, pitch;  // of a chunk; of rows of a tile: no power of two, whose rows would share a few lines of the cache
  std::unique_ptr<float[]> memory;
  float *k_t, *v_t, *k, *d_k, *d_v, *q, *grad, *probs, *d_logits, *bias, *d_bias;

  explicit Scratch(const BandedGradients& of)
      : keys(std::min(std::max(CHUNK / of.width / LANES, INT64_C(1)) * LANES, whole(of.length))), pitch(keys + 2 * QUERIES + LANES) {
    const int64_t side = keys * of.width, few = QUERIES * of.width, tile = QUERIES * pitch, band = of.left + 1 + 2 * MARGIN;
    memory.reset(new float[5 * side + 2 * few + 2 * tile + 2 * band]);
    float* at = memory.get();
    for (float** each : {&k_t, &v_t, &k, &d_k, &d_v}) *each = at, at += side;
    for (float** each : {&q, &grad}) *each = at, at += few;
    for (float** each : {&probs, &d_logits}) *each = at, at += tile;
    probs += QUERIES, d_logits += QUERIES;  // a row of a tile stands between zeros
    bias = at, d_bias = at + band;
  }
};

// All logits of ROWS rows and the keys from … to - 1.
template <int COUNT, int ROWS, int WIDE>
ALWAYS_INLINE void multiplied(const float* rows, const float* panels, int64_t width, int64_t from, int64_t to, float* logits,
                              int64_t pitch) {
  constexpr int64_t PER = LANES / COUNT;
  int64_t j = from;
  for (; j + WIDE * COUNT <= to; j += WIDE * COUNT)
    products<COUNT, ROWS, WIDE>(rows, panels + j * width, width, logits + j, pitch);
  for (; j < to; j += LANES) products<COUNT, ROWS, PER>(rows, panels + j * width, width, logits + j, pitch);
}

// Adds scale times the sums of ROWS rows to `to`, of which `real` are kept.
template <int COUNT, int ROWS, int WIDE>
ALWAYS_INLINE void added(const float* weights, int64_t across, int64_t along, const float* rows, int64_t width, int64_t begin,
                         int64_t end, float scale, float* to, int64_t stride, int64_t real) {
  FUSED_HERE
  using V = typename Of<COUNT>::Numbers;
  constexpr int64_t PER = LANES / COUNT;
  const auto add = [&](int64_t r, int64_t c, const V& sum) {
    if (r < real) *(V*)(to + r * stride + c) += sum * scale;
  };
  int64_t c = 0;
  for (; c + WIDE * COUNT <= width; c += WIDE * COUNT) {
    V sum[ROWS][WIDE];
    sums<COUNT, ROWS, WIDE>(weights, across, along, rows + c, width, begin, end, sum);
    for (int r = 0; r < ROWS; ++r)
      for (int w = 0; w < WIDE; ++w) add(r, c + w * COUNT, sum[r][w]);
  }
  for (; c < width; c += LANES) {
    V sum[ROWS][PER];
    sums<COUNT, ROWS, PER>(weights, across, along, rows + c, width, begin, end, sum);
    for (int r = 0; r < ROWS; ++r)
      for (int w = 0; w < PER; ++w) add(r, c + w * COUNT, sum[r][w]);
  }
}

// Logits become probabilities, and gradients of probabilities those of logits: zeros where a key is not seen.
template <int COUNT>
ALWAYS_INLINE void softmax_gradients(float* row, float* d_row, const float* bias, int64_t from, int64_t to, float sums,
                                     float inner) {
  using V = typename Of<COUNT>::Numbers;
  for (int64_t j = from; j < to; j += COUNT) {
    const V more = *(const V*)(bias + j);
    V probs = *(const V*)(row + j) + more - sums;
    exponentiate<COUNT>(probs, WEIGHTLESS);
    const V d_logits = probs * (*(const V*)(d_row + j) - inner);
    *(V*)(row + j) = more < LOWEST ? V{} : probs;  // a bias of NaN is seen
    *(V*)(d_row + j) = more < LOWEST ? V{} : d_logits;
  }
}

// Adds the diagonals of a tile: row r begins r entries further left in d_bias.
template <int COUNT>
ALWAYS_INLINE void add_diagonals(float* tile, int64_t pitch, int64_t rows, int64_t from, int64_t to, float* d_bias) {
  using V = typename Of<COUNT>::Numbers;
  for (int64_t r = 0; r < rows; ++r) {
    std::fill(tile + r * pitch + from - QUERIES, tile + r * pitch + from, 0.0f);
    std::fill(tile + r * pitch + to, tile + r * pitch + to + QUERIES, 0.0f);
  }
  for (int64_t n = from - QUERIES; n < to; n += COUNT) {
    V sum = {};
    for (int64_t r = 0; r < rows; ++r) sum += *(const V*)(tile + r * (pitch + 1) + n);
    *(V*)(d_bias + n) += sum;
  }
}

// The queries first … first + real - 1 of a head and the keys of a chunk from `low` on that they see.
template <int COUNT, int ROWS, int WIDE, class T>
ALWAYS_INLINE void queries(const BandedGradients& of, const Scratch& s, int64_t b, int64_t h, int64_t first, int64_t real, int64_t low,
                           int64_t high, int64_t left) {
  const int64_t width = of.width, *const of_q = of.stride[0], *const of_grad = of.stride[3];
  const int64_t begin = std::max<int64_t>(std::max<int64_t>(first - left, 0) - low, 0), end = std::min(first + real, high) - low;
  const int64_t from = begin / LANES * LANES, to = whole(end), rows = (real + ROWS - 1) / ROWS * ROWS;
  const float scale = static_cast<float>(of.scale);
  copy<COUNT>((const T*)of.q + b * of_q[0] + h * of_q[1] + first * of_q[2], of_q[2], real, width, s.q);
  copy<COUNT>((const T*)of.grad + b * of_grad[0] + h * of_grad[1] + first * of_grad[2], of_grad[2], real, width, s.grad);
  for (int64_t n = 0; n < real * width; ++n) s.q[n] *= scale;
  std::fill(s.q + real * width, s.q + rows * width, 0.0f);
  std::fill(s.grad + real * width, s.grad + rows * width, 0.0f);
  for (int64_t r = 0; r < rows; r += ROWS) {
    multiplied<COUNT, ROWS, WIDE>(s.q + r * width, s.k_t, width, from, to, s.probs + r * s.pitch, s.pitch);
    multiplied<COUNT, ROWS, WIDE>(s.grad + r * width, s.v_t, width, from, to, s.d_logits + r * s.pitch, s.pitch);
  }
  for (int64_t r = 0; r < real; ++r) {
    const int64_t i = first + r, at = (b * of.heads + h) * of.length + i, near = low - i + left + MARGIN;
    softmax_gradients<COUNT>(s.probs + r * s.pitch, s.d_logits + r * s.pitch, s.bias + near, from, to, of.sums[at], of.inner[at]);
  }
  if (of.d_bias) add_diagonals<COUNT>(s.d_logits, s.pitch, real, from, to, s.d_bias + low - first + left + MARGIN);
  for (int64_t r = 0; r < real; r += ROWS)
    added<COUNT, ROWS, WIDE>(s.d_logits + r * s.pitch, s.pitch, 1, s.k, width, begin, end, scale,
                             of.d_q + ((b * of.length + first + r) * of.heads + h) * width, of.heads * width, real - r);
  for (int64_t j = from; j < end; j += ROWS) {
    added<COUNT, ROWS, WIDE>(s.probs + j, 1, s.pitch, s.grad, width, 0, real, 1.0f, s.d_v + j * width, width, end - j);
    added<COUNT, ROWS, WIDE>(s.d_logits + j, 1, s.pitch, s.q, width, 0, real, 1.0f, s.d_k + j * width, width, end - j);
  }
}

template <int COUNT, int ROWS, int WIDE, class T>
ALWAYS_INLINE void some_of(const BandedGradients& of, int64_t from, int64_t to) {
  const int64_t group = of.heads / of.key_heads, width = of.width, band = of.left + 1;
  const int64_t *const of_k = of.stride[1], *const of_v = of.stride[2];
  const Scratch s(of);
  for (int64_t unit = from; unit < to; ++unit) {
    const int64_t b = unit / of.key_heads, g = unit % of.key_heads;
    for (int64_t low = 0; low < of.length; low += s.keys) {
      const int64_t high = std::min(low + s.keys, of.length), count = high - low;
      const T* const keys = (const T*)of.k + b * of_k[0] + g * of_k[1] + low * of_k[2];
      transpose<COUNT>(keys, of_k[2], count, width, s.k_t);
      copy<COUNT>(keys, of_k[2], count, width, s.k);
      transpose<COUNT>((const T*)of.v + b * of_v[0] + g * of_v[1] + low * of_v[2], of_v[2], count, width, s.v_t);
      std::fill(s.d_k, s.d_k + 2 * s.keys * width, 0.0f);
      for (int64_t h = g * group; h < (g + 1) * group; ++h) {
        const int64_t left = of.cutoff[b * of.heads + h], latest = std::min(of.length, high + left);
        std::fill(s.bias, s.bias + left + 1 + 2 * MARGIN, -std::numeric_limits<float>::infinity());
        std::fill(s.d_bias, s.d_bias + left + 1 + 2 * MARGIN, 0.0f);
        for (int64_t back = 0; back <= left; ++back) s.bias[MARGIN + left - back] = of.bias[h * of.bias_stride + back];
        for (int64_t first = low; first < latest; first += QUERIES)
          queries<COUNT, ROWS, WIDE, T>(of, s, b, h, first, std::min(QUERIES, latest - first), low, high, left);
        for (int64_t back = 0; of.d_bias && back <= left; ++back)
          of.d_bias[(b * of.heads + h) * band + back] += s.d_bias[MARGIN + left - back];
      }
      for (int64_t j = 0; j < count; ++j) {
        const int64_t at = ((b * of.length + low + j) * of.key_heads + g) * width;
        std::copy_n(s.d_k + j * width, width, of.d_k + at);
        std::copy_n(s.d_v + j * width, width, of.d_v + at);
      }
    }
  }
}

template <int COUNT, int ROWS, int WIDE>
ALWAYS_INLINE void some(const BandedGradients& of, int64_t from, int64_t to) {
  if (of.bfloat16) return some_of<COUNT, ROWS, WIDE, uint16_t>(of, from, to);
  some_of<COUNT, ROWS, WIDE, float>(of, from, to);
}

#if defined(__x86_64__)
FUSED OF_512_BITS("avx512f,avx512dq,avx512vl,avx512bw,fma") void with_512_bits(const BandedGradients& of, int64_t from, int64_t to) {
  some<16, 6, 4>(of, from, to);
}
FUSED __attribute__((target("avx2,fma"))) void with_256_bits(const BandedGradients& of, int64_t from, int64_t to) {
  some<8, 3, 4>(of, from, to);
}
#endif
FUSED void with_any(const BandedGradients& of, int64_t from, int64_t to) { some<4, 4, 4>(of, from, to); }

}  // namespace
}  // namespace posenc

// d_q and d_bias are added to.
EXPORTED void posenc_banded_gradients(const posenc::BandedGradients* given) {
  using namespace posenc;
  const BandedGradients& of = *given;
  in_parallel(of.batch * of.key_heads, 1, static_cast<int>(of.threads), [&](int64_t from, int64_t to) {
#if defined(__x86_64__)
    if (instructions() >= AVX512) return with_512_bits(of, from, to);
    if (instructions() >= AVX2) return with_256_bits(of, from, to);
#endif
    with_any(of, from, to);
  });
}
