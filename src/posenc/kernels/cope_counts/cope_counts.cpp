// CoPE's term of every logit: the score of the query at a position that is counted from gates, between two whole positions.
//
//   count_j = Σ_{t ≥ j} gate_t (0 where not seen),  p = min(count, n - 1),  out_j = (logit_j + s[⌊p⌋]) + (s[⌈p⌉] - s[⌊p⌋])·(p - ⌊p⌋)
//
// Sums and products are rounded in the order of the formula in plain torch, and running sums are kept in fp64 as torch's are, so
// that results and gradients are equal to the formula's bit for bit.
// Legend: a row is one query of one head, j keys, n whole positions.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "exported.h"
#include "processor.h"
#include "threads.h"

#define ALWAYS_INLINE inline __attribute__((always_inline))
#if defined(__clang__)
#define LANES_ARE_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define LANES_ARE_INDEPENDENT _Pragma("GCC ivdep")
#endif

namespace posenc {

// The layout that __init__.py packs. Tensors [b, h, i, j] and scores [b, h, i, n] lie without gaps; `seen` is [b, 1, i, j] of bytes.
struct CopeCounts {
  const float *logits, *gates, *scores;
  const uint8_t* seen;
  float *out, *counts;                                // counts: written for the gradient, or null
  const float* gradient;                              // backward: of out; then counts are read
  float *d_logits, *d_scores;
  int64_t batch, heads, queries, keys, n, seen_batch, seen_query, threads;
};
static_assert(sizeof(CopeCounts) == 17 * 8, "__init__.py packs 17 integers");

namespace {

constexpr int64_t ROWS = 4;  // at a time: each running sum waits for itself, and four of them wait together

struct Scratch {
  std::vector<float> memory;
  std::vector<int32_t> places;
  float *counts[ROWS], *share[ROWS], *step[ROWS], *above[ROWS], *below[ROWS];
  int32_t *low[ROWS], *high[ROWS];

  Scratch(int64_t keys, int64_t n) : memory(ROWS * (3 * keys + 2 * n)), places(ROWS * 2 * keys) {
    float* at = memory.data();
    int32_t* place = places.data();
    for (int64_t r = 0; r < ROWS; ++r) {
      counts[r] = at, share[r] = at + keys, step[r] = at + 2 * keys, above[r] = at + 3 * keys, below[r] = above[r] + n;
      at += 3 * keys + 2 * n;
      low[r] = place, high[r] = place + keys, place += 2 * keys;
    }
  }
};

// Whole positions below and above, and the share of the latter. A count that is no number reads row 0 and has such a share.
// In these words compilers make vectors of it, and with std::floor and std::ceil they do not.
ALWAYS_INLINE void place(float count, float last, int32_t& low, int32_t& high, float& share) {
  const float p = count > last ? last : count;
  const int32_t whole = static_cast<int32_t>(p);
  low = whole > 0 ? whole : 0;
  share = p - static_cast<float>(low);
  high = low + (share > 0.0f ? 1 : 0);
}

ALWAYS_INLINE const uint8_t* seen_by(const CopeCounts& of, int64_t row) {
  return of.seen + row / (of.heads * of.queries) * of.seen_batch + row % of.queries * of.seen_query;
}

ALWAYS_INLINE void forward(const CopeCounts& of, const Scratch& s, int64_t begin, int64_t rows) {
  const int64_t keys = of.keys;
  const float last = static_cast<float>(of.n - 1);
  const uint8_t* seen[ROWS];
  const float* gates[ROWS];
  float* counts[ROWS];
  int64_t end = 0;  // keys after it are not seen
  for (int64_t r = 0; r < ROWS; ++r) {  // rows past the last one are the last one again
    const int64_t row = begin + std::min(r, rows - 1);
    seen[r] = seen_by(of, row), gates[r] = of.gates + row * keys, counts[r] = of.counts ? of.counts + row * keys : s.counts[r];
    for (int64_t j = keys; j > end; --j)
      if (seen[r][j - 1]) end = j;
  }
  double sum[ROWS] = {};
  int64_t first = end;  // of the keys that have a count; those before it lie beyond the last position
  for (bool within = true; first > 0 && within;) {
    --first, within = false;
    for (int64_t r = 0; r < ROWS; ++r) {
      sum[r] += gates[r][first] * static_cast<float>(seen[r][first]);
      counts[r][first] = static_cast<float>(sum[r]);
      within |= !(counts[r][first] > last);
    }
  }
  for (int64_t r = 0; r < rows; ++r) {
    const int64_t row = begin + r;
    const float *const logits = of.logits + row * keys, *const scores = of.scores + row * of.n;
    float* const out = of.out + row * keys;
    const float *const count = counts[r], beyond = scores[of.n - 1];
    for (int64_t j = 0; j < first; ++j) out[j] = logits[j] + beyond;
    LANES_ARE_INDEPENDENT
    for (int64_t j = first; j < end; ++j) {
      int32_t low, high;
      float share;
      place(count[j], last, low, high, share);
      const float below = scores[low], above = scores[high];
      out[j] = (logits[j] + below) + (above - below) * share;
    }
    for (int64_t j = end; j < keys; ++j) out[j] = logits[j] + scores[0];
    if (!of.counts) continue;
    std::fill(counts[r], counts[r] + first, std::numeric_limits<float>::infinity());
    std::fill(counts[r] + end, counts[r] + keys, 0.0f);
  }
}

ALWAYS_INLINE void backward(const CopeCounts& of, const Scratch& s, int64_t begin, int64_t rows) {
  const int64_t keys = of.keys;
  const float last = static_cast<float>(of.n - 1);
  const float *gradient[ROWS], *counts[ROWS];
  int64_t end = 0;  // keys after it are not seen, and nothing depends on them
  for (int64_t r = 0; r < ROWS; ++r) {
    const int64_t row = begin + std::min(r, rows - 1);
    gradient[r] = of.gradient + row * keys, counts[r] = of.counts + row * keys;
    const uint8_t* const seen = seen_by(of, row);
    for (int64_t j = keys; j > end; --j)
      if (seen[j - 1] || gradient[r][j - 1] != 0) end = j;
  }
  for (int64_t r = 0; r < ROWS; ++r) {
    const float* const scores = of.scores + (begin + std::min(r, rows - 1)) * of.n;
    const float* const count = counts[r];
    int32_t *const low = s.low[r], *const high = s.high[r];
    float *const share = s.share[r], *const step = s.step[r];
    LANES_ARE_INDEPENDENT
    for (int64_t j = 0; j < end; ++j) {
      int32_t below, above;
      place(count[j], last, below, above, share[j]);
      low[j] = below, high[j] = above;
      step[j] = scores[above] - scores[below];
    }
    std::fill(s.above[r], s.above[r] + 2 * of.n, 0.0f);
  }
  double sum[ROWS] = {};
  for (int64_t j = 0; j < end; ++j)
    for (int64_t r = 0; r < ROWS; ++r) {
      const float of_step = gradient[r][j] * s.share[r][j];
      s.above[r][s.high[r][j]] += of_step;
      s.below[r][s.low[r][j]] += gradient[r][j] - of_step;
      sum[r] += counts[r][j] <= last ? gradient[r][j] * s.step[r][j] : 0.0f;
      s.share[r][j] = static_cast<float>(sum[r]);
    }
  for (int64_t r = 0; r < rows; ++r) {
    const int64_t row = begin + r;
    const uint8_t* const seen = seen_by(of, row);
    const float* const gates = of.gates + row * keys;
    float *const d_logits = of.d_logits + row * keys, *const d_scores = of.d_scores + row * of.n;
    const float *const of_counts = s.share[r], *const of_out = gradient[r];
    LANES_ARE_INDEPENDENT
    for (int64_t j = 0; j < end; ++j) {
      const float of_gate = of_counts[j] * static_cast<float>(seen[j]);
      d_logits[j] = of_out[j] + of_gate * (1.0f - gates[j]) * gates[j];
    }
    std::fill(d_logits + end, d_logits + keys, 0.0f);
    for (int64_t k = 0; k < of.n; ++k) d_scores[k] = s.above[r][k] + s.below[r][k];
  }
}

ALWAYS_INLINE void groups(const CopeCounts& of, int64_t begin, int64_t end) {
  const Scratch s(of.keys, of.n);
  const int64_t total = of.batch * of.heads * of.queries;
  for (int64_t group = begin; group < end; ++group) {
    const int64_t row = group * ROWS, rows = std::min(ROWS, total - row);
    of.gradient ? backward(of, s, row, rows) : forward(of, s, row, rows);
  }
}

#if defined(__x86_64__)
OF_512_BITS("avx512f,avx512dq,avx512vl,avx512bw") void with_512_bits(const CopeCounts& of, int64_t begin, int64_t end) { groups(of, begin, end); }
__attribute__((target("avx2"))) void with_256_bits(const CopeCounts& of, int64_t begin, int64_t end) { groups(of, begin, end); }
#endif

constexpr int64_t CHUNK = 8192;  // the fewest entries for a thread

}  // namespace
}  // namespace posenc

EXPORTED void posenc_cope_counts(const posenc::CopeCounts* given) {
  using namespace posenc;
  const CopeCounts& of = *given;
  const int64_t total = of.batch * of.heads * of.queries, chunk = std::max<int64_t>(CHUNK / (ROWS * std::max<int64_t>(of.keys, 1)), 1);
  in_parallel((total + ROWS - 1) / ROWS, chunk, static_cast<int>(of.threads), [&](int64_t begin, int64_t end) {
#if defined(__x86_64__)
    if (instructions() >= AVX512) return with_512_bits(of, begin, end);
    if (instructions() >= AVX2) return with_256_bits(of, begin, end);
#endif
    groups(of, begin, end);
  });
}
