// Causal self-attention of a few consecutive tokens whose keys and values have vectors of the distance.
//
//   logits_ij = (q_i·k_j + p_i·r_row)·scale,   out_i = Σ_j softmax_ij·(v_j + a_row),   row = clip(j - i - first, 0, R - 1),  j ≤ i
//
// A product is summed in 16 lanes, so that its order depends on neither the batch nor the threads nor the processor. Multiply-adds are
// fused.
// Legend: b batch, h query heads, g key heads, t tokens, R rows. Strides count elements; channels are adjacent.
#include <algorithm>
#include <cstdint>
#include <limits>

#include "exported.h"
#include "lanes.h"
#include "processor.h"
#include "threads.h"

namespace posenc {

// The layout that few.py packs.
struct FewVectors {
  const float *q, *k, *v, *p, *keys;
  const float* values;  // or null
  float* out;
  int64_t batch, heads, key_heads, length, width, position_width, value_width;  // widths are multiples of 16
  int64_t stride[7][3];  // of q, k, v, p, keys, values, out along b, h and t or R
  int64_t rows, first, threads;
  double scale;
};
static_assert(sizeof(FewVectors) == 39 * 8, "few.py packs 38 integers and a real");

namespace {

constexpr int64_t MOST = 64;  // tokens

template <int COUNT>
ALWAYS_INLINE void add_products(const float* x, const float* y, int64_t n, typename Of<COUNT>::Numbers* sum) {
  FUSED_HERE
  using V = typename Of<COUNT>::Numbers;
  for (int64_t c = 0; c < n; c += LANES)
    for (int64_t p = 0; p < LANES / COUNT; ++p) sum[p] += *(const V*)(x + c + p * COUNT) * *(const V*)(y + c + p * COUNT);
}

// The sum of 16 lanes, by halves.
template <int COUNT>
ALWAYS_INLINE float total_of(const typename Of<COUNT>::Numbers* lanes) {
  const float* const x = (const float*)lanes;
  const Of<4>::Numbers* const quarter = (const Of<4>::Numbers*)x;
  const Of<4>::Numbers four = (quarter[0] + quarter[2]) + (quarter[1] + quarter[3]);
  return (four[0] + four[2]) + (four[1] + four[3]);
}

// Exponentials of a row less the largest, and their sum; beyond the row up to whole lanes, zeros.
template <int COUNT>
ALWAYS_INLINE float softmax(float* row, int64_t n, float most) {
  using V = typename Of<COUNT>::Numbers;
  std::fill(row + n, row + whole(n), -std::numeric_limits<float>::infinity());
  V total[LANES / COUNT] = {};
  for (int64_t j = 0; j < n; j += LANES)
    for (int64_t p = 0; p < LANES / COUNT; ++p) {
      V x = *(const V*)(row + j + p * COUNT) - most;
      exponentiate<COUNT>(x);
      *(V*)(row + j + p * COUNT) = x;
      total[p] += x;
    }
  return total_of<COUNT>(total);
}

// `some` heads of rows of the batch: from … to - 1.
template <int COUNT>
ALWAYS_INLINE void some(const FewVectors& of, int64_t from, int64_t to) {
  FUSED_HERE
  using V = typename Of<COUNT>::Numbers;
  constexpr int64_t PER = LANES / COUNT;
  float weights[MOST];
  int64_t row[MOST];
  for (int64_t unit = from; unit < to; ++unit) {
    const int64_t b = unit / of.heads, h = unit % of.heads, g = h / (of.heads / of.key_heads);
    const auto at = [&](const float* x, int n, int64_t head) { return x + b * of.stride[n][0] + head * of.stride[n][1]; };
    const float *const q = at(of.q, 0, h), *const k = at(of.k, 1, g), *const v = at(of.v, 2, g), *const p = at(of.p, 3, h);
    const float *const keys = at(of.keys, 4, h), *const values = of.values ? at(of.values, 5, h) : nullptr;
    float* const out = of.out + b * of.stride[6][0] + h * of.stride[6][1];
    for (int64_t i = 0; i < of.length; ++i) {
      float most = std::numeric_limits<float>::lowest();
      for (int64_t j = 0; j <= i; ++j) {
        row[j] = std::min(std::max<int64_t>(j - i - of.first, 0), of.rows - 1);
        V sum[PER] = {};
        add_products<COUNT>(q + i * of.stride[0][2], k + j * of.stride[1][2], of.width, sum);
        add_products<COUNT>(p + i * of.stride[3][2], keys + row[j] * of.stride[4][2], of.position_width, sum);
        weights[j] = total_of<COUNT>(sum) * static_cast<float>(of.scale);
        most = std::max(most, weights[j]);
      }
      const float share = 1.0f / softmax<COUNT>(weights, i + 1, most);
      for (int64_t c = 0; c < of.value_width; c += LANES) {
        V sum[PER] = {};
        for (int64_t j = 0; j <= i; ++j)
          for (int64_t part = 0; part < PER; ++part) {
            V value = *(const V*)(v + j * of.stride[2][2] + c + part * COUNT);
            if (values) value += *(const V*)(values + row[j] * of.stride[5][2] + c + part * COUNT);
            sum[part] += weights[j] * value;
          }
        for (int64_t part = 0; part < PER; ++part) *(V*)(out + i * of.stride[6][2] + c + part * COUNT) = sum[part] * share;
      }
    }
  }
}

#if defined(__x86_64__)
FUSED OF_512_BITS("avx512f,avx512dq,avx512vl,avx512bw,fma") void with_512_bits(const FewVectors& of, int64_t from, int64_t to) {
  some<16>(of, from, to);
}
FUSED __attribute__((target("avx2,fma"))) void with_256_bits(const FewVectors& of, int64_t from, int64_t to) {
  some<8>(of, from, to);
}
#endif
FUSED void with_any(const FewVectors& of, int64_t from, int64_t to) { some<4>(of, from, to); }

}  // namespace
}  // namespace posenc

EXPORTED void posenc_few_vectors(const posenc::FewVectors* given) {
  using namespace posenc;
  const FewVectors& of = *given;
  in_parallel(of.batch * of.heads, 1, static_cast<int>(of.threads), [&](int64_t from, int64_t to) {
#if defined(__x86_64__)
    if (instructions() >= AVX512) return with_512_bits(of, from, to);
    if (instructions() >= AVX2) return with_256_bits(of, from, to);
#endif
    with_any(of, from, to);
  });
}
