// Gradients of self-attention with a bias of the distance, including the bias, for sequences that fit the second-level cache.
//
//   P  = exp(q·kᵀ·scale + bias - sums)     dS = P∘(dO·vᵀ - rowsum(dO∘O))
//   dq = dS·k·scale     dk = dSᵀ·q·scale     dv = Pᵀ·dO     dbias = dS summed along its diagonals
//
// Four queries and 16 keys at a time. Data of keys is transposed, so that sums over channels are sums of vectors of keys. Sums have
// a fixed order and multiply-adds are not fused: all processors and thread counts give the same bits.
// Legend: b batch, h query heads, g key heads, t tokens, d channels. Strides count elements; channels are adjacent.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "exported.h"
#include "lanes.h"
#include "processor.h"
#include "threads.h"

namespace posenc {

// The layout that attention.py packs.
struct BiasGradients {
  const float *q, *k, *v, *grad, *out, *sums;         // sums [b, h, t]
  const float* bias;                                  // [h, 2t - 1] or, causal, [h, t]; the largest distance first
  float *d_q, *d_k, *d_v, *d_bias;                    // [b, t, h or g, d], and as bias; the latter two without gaps
  int64_t batch, heads, key_heads, length, width, distances;
  int64_t stride[6][3];  // of q, k, v, grad, out, sums along b, h, t
  int64_t bias_stride[2], threads;
  double scale;
};
static_assert(sizeof(BiasGradients) == 39 * 8, "attention.py packs 38 integers and a real");

namespace {

constexpr int64_t ROWS = 4;

struct Scratch {
  int64_t keys, channels;  // padded to whole vectors
  std::vector<float> memory;
  float *k, *k_t, *v_t, *d_k_t, *d_v_t, *bias, *d_bias, *q, *grad, *d_q, *past;  // past: -inf where no key is

  Scratch(int64_t length, int64_t width) : keys(whole(length)), channels(whole(width)) {
    const int64_t side = keys * channels, few = ROWS * channels, distances = 2 * keys + LANES;
    memory.assign(5 * side + 3 * few + 2 * distances + keys, 0.0f);
    float* at = memory.data();
    for (float** each : {&k, &k_t, &v_t, &d_k_t, &d_v_t}) *each = at, at += side;
    for (float** each : {&q, &grad, &d_q}) *each = at, at += few;
    bias = at, d_bias = at + distances, past = at + 2 * distances;
    std::fill(past + length, past + keys, -std::numeric_limits<float>::infinity());
  }
};

// The queries first … first + 3 of one head with all keys that any of them sees.
ALWAYS_INLINE void four_queries(const BiasGradients& of, const Scratch& s, int64_t b, int64_t h, int64_t first) {
  const int64_t rows = std::min(ROWS, of.length - first), width = of.width, keys = s.keys, channels = s.channels;
  const int64_t seen = of.distances == of.length ? whole(first + rows) : keys;
  const float scale = static_cast<float>(of.scale);
  const auto row = [&](const float* x, int which, int64_t i) {
    return x + b * of.stride[which][0] + h * of.stride[which][1] + (first + i) * of.stride[which][2];
  };
  float inner[ROWS] = {}, sums[ROWS];
  const float* bias[ROWS];
  float* d_bias[ROWS];
  for (int64_t i = 0; i < ROWS; ++i) {  // a query past the last has no probability
    sums[i] = i < rows ? *row(of.sums, 5, i) : std::numeric_limits<float>::infinity();
    const int64_t begin = std::max<int64_t>(of.length - 1 - first - i, 0);
    bias[i] = s.bias + begin, d_bias[i] = s.d_bias + begin;
    if (i >= rows) continue;
    const float *const q = row(of.q, 0, i), *const grad = row(of.grad, 3, i), *const out = row(of.out, 4, i);
    for (int64_t c = 0; c < width; ++c) {
      s.q[i * channels + c] = q[c] * scale;
      s.grad[i * channels + c] = grad[c];
      inner[i] += grad[c] * out[c];
    }
  }
  std::fill(s.d_q, s.d_q + ROWS * channels, 0.0f);
  for (int64_t j = 0; j < seen; j += LANES) {
    Lanes logits[ROWS] = {}, d_probs[ROWS] = {}, probs[ROWS], d_logits[ROWS];
    for (int64_t c = 0; c < width; ++c) {
      const Lanes k = *(const Lanes*)(s.k_t + c * keys + j), v = *(const Lanes*)(s.v_t + c * keys + j);
      for (int64_t i = 0; i < ROWS; ++i) {
        logits[i] += s.q[i * channels + c] * k;
        d_probs[i] += s.grad[i * channels + c] * v;
      }
    }
    for (int64_t i = 0; i < ROWS; ++i) {
      probs[i] = logits[i] + *(const Lanes*)(bias[i] + j) + *(const Lanes*)(s.past + j) - sums[i];
      exponentiate(probs[i]);
      d_logits[i] = probs[i] * (d_probs[i] - inner[i]);
      *(Lanes*)(d_bias[i] + j) += d_logits[i];
    }
    for (int64_t c = 0; c < width; ++c) {
      Lanes d_k = *(const Lanes*)(s.d_k_t + c * keys + j), d_v = *(const Lanes*)(s.d_v_t + c * keys + j);
      for (int64_t i = 0; i < ROWS; ++i) {
        d_k += s.q[i * channels + c] * d_logits[i];
        d_v += s.grad[i * channels + c] * probs[i];
      }
      *(Lanes*)(s.d_k_t + c * keys + j) = d_k;
      *(Lanes*)(s.d_v_t + c * keys + j) = d_v;
    }
    for (int64_t c = 0; c < channels; c += LANES) {
      Lanes d_q[ROWS];
      for (int64_t i = 0; i < ROWS; ++i) d_q[i] = *(const Lanes*)(s.d_q + i * channels + c);
      for (int64_t key = 0; key < LANES; ++key) {
        const Lanes k = *(const Lanes*)(s.k + (j + key) * channels + c);
        for (int64_t i = 0; i < ROWS; ++i) d_q[i] += d_logits[i][key] * k;
      }
      for (int64_t i = 0; i < ROWS; ++i) *(Lanes*)(s.d_q + i * channels + c) = d_q[i];
    }
  }
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t c = 0; c < width; ++c)
      of.d_q[((b * of.length + first + i) * of.heads + h) * width + c] = s.d_q[i * channels + c] * scale;
}

// All gradients of some key heads and of the query heads that share them.
ALWAYS_INLINE void key_heads(const BiasGradients& of, int64_t begin, int64_t end) {
  const int64_t group = of.heads / of.key_heads, length = of.length, width = of.width, distances = of.distances;
  Scratch s(length, width);
  for (int64_t g = begin; g < end; ++g) {
    std::fill(of.d_bias + g * group * distances, of.d_bias + (g + 1) * group * distances, 0.0f);
    for (int64_t b = 0; b < of.batch; ++b) {
      std::fill(s.d_k_t, s.d_v_t + s.keys * s.channels, 0.0f);
      for (int64_t j = 0; j < length; ++j) {
        const float* const k = of.k + b * of.stride[1][0] + g * of.stride[1][1] + j * of.stride[1][2];
        const float* const v = of.v + b * of.stride[2][0] + g * of.stride[2][1] + j * of.stride[2][2];
        for (int64_t c = 0; c < width; ++c) {
          s.k[j * s.channels + c] = s.k_t[c * s.keys + j] = k[c];
          s.v_t[c * s.keys + j] = v[c];
        }
      }
      for (int64_t h = g * group; h < (g + 1) * group; ++h) {
        const int64_t all = 2 * s.keys + LANES;
        std::fill(s.bias, s.bias + all, -std::numeric_limits<float>::infinity());
        std::fill(s.d_bias, s.d_bias + all, 0.0f);
        for (int64_t n = 0; n < distances; ++n) s.bias[n] = of.bias[h * of.bias_stride[0] + n * of.bias_stride[1]];
        for (int64_t first = 0; first < length; first += ROWS) four_queries(of, s, b, h, first);
        for (int64_t n = 0; n < distances; ++n) of.d_bias[h * distances + n] += s.d_bias[n];
      }
      for (int64_t j = 0; j < length; ++j)
        for (int64_t c = 0; c < width; ++c) {
          const int64_t at = ((b * length + j) * of.key_heads + g) * width + c;
          of.d_k[at] = s.d_k_t[c * s.keys + j];
          of.d_v[at] = s.d_v_t[c * s.keys + j];
        }
    }
  }
}

#if defined(__x86_64__)
OF_512_BITS("avx512f,avx512dq,avx512vl,avx512bw") void with_512_bits(
    const BiasGradients& of, int64_t begin, int64_t end) {
  key_heads(of, begin, end);
}
__attribute__((target("avx2"))) void with_256_bits(const BiasGradients& of, int64_t begin, int64_t end) {
  key_heads(of, begin, end);
}
#endif

}  // namespace
}  // namespace posenc

EXPORTED void posenc_bias_gradients(const posenc::BiasGradients* given) {
  using namespace posenc;
  const BiasGradients& of = *given;
  in_parallel(of.key_heads, 1, static_cast<int>(of.threads), [&](int64_t begin, int64_t end) {
#if defined(__x86_64__)
    if (instructions() >= AVX512) return with_512_bits(of, begin, end);
    if (instructions() >= AVX2) return with_256_bits(of, begin, end);
#endif
    key_heads(of, begin, end);
  });
}
