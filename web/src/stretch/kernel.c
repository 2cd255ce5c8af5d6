// The two loops of model.ts that take the time, in fp64 with two lanes, for WebAssembly:
//
//   linear   y[p] = W x[p]                                    W is [out][in], in a multiple of 2, out of 2
//   attend   y[p] = Σ_j softmax_j(q[p]·k[j]/√32 - slope·(p - j)) v[j]    of one head, j = 0 … before + p
//
// python web/kernel.py builds kernel.wasm; tests/explorer/test_kernel.py builds it again and compares.
#include <wasm_simd128.h>

enum { D = 128, WIDTH = 32, LANES = WIDTH / 2 };
#define EXPORT(name) __attribute__((export_name(name)))
#define ADD_PRODUCT(sum, a, b) sum = wasm_f64x2_add(sum, wasm_f64x2_mul(a, b))

static inline double both(v128_t x) { return wasm_f64x2_extract_lane(x, 0) + wasm_f64x2_extract_lane(x, 1); }

// Four tokens by two outputs at a time; a token alone by itself.
EXPORT("linear")
void linear(const double *x, const double *w, int tokens, int in, int out, double *y) {
  int p = 0;
  for (; p + 4 <= tokens; p += 4) {
    const double *a = x + p * in, *b = a + in, *c = b + in, *d = c + in;
    for (int o = 0; o < out; o += 2) {
      const double *r = w + o * in, *s = r + in;
      v128_t zero = wasm_f64x2_const_splat(0), ar = zero, as = zero, br = zero, bs = zero, cr = zero, cs = zero, dr = zero, ds = zero;
      for (int n = 0; n < in; n += 2) {
        v128_t u = wasm_v128_load(r + n), v = wasm_v128_load(s + n), one;
        one = wasm_v128_load(a + n); ADD_PRODUCT(ar, one, u); ADD_PRODUCT(as, one, v);
        one = wasm_v128_load(b + n); ADD_PRODUCT(br, one, u); ADD_PRODUCT(bs, one, v);
        one = wasm_v128_load(c + n); ADD_PRODUCT(cr, one, u); ADD_PRODUCT(cs, one, v);
        one = wasm_v128_load(d + n); ADD_PRODUCT(dr, one, u); ADD_PRODUCT(ds, one, v);
      }
      double *at = y + p * out + o;
      at[0] = both(ar); at[1] = both(as); at[out] = both(br); at[out + 1] = both(bs);
      at[2 * out] = both(cr); at[2 * out + 1] = both(cs); at[3 * out] = both(dr); at[3 * out + 1] = both(ds);
    }
  }
  for (; p < tokens; p++) {
    for (int o = 0; o < out; o++) {
      v128_t sum = wasm_f64x2_const_splat(0);
      for (int n = 0; n < in; n += 2) ADD_PRODUCT(sum, wasm_v128_load(x + p * in + n), wasm_v128_load(w + o * in + n));
      y[p * out + o] = both(sum);
    }
  }
}

// e^x of two x <= 0: 2^k times the Taylor polynomial of degree 13 of f, x = k ln 2 + f, |f| <= ln 2 / 2; the two parts of
// ln 2 keep f exact. Below -700 it is e^-700, nothing beside the 1 of the largest score.
static inline v128_t power(v128_t x) {
  static const double over[] = {1.0 / 13, 1.0 / 12, 1.0 / 11, 1.0 / 10, 1.0 / 9, 1.0 / 8, 1.0 / 7, 1.0 / 6, 1.0 / 5, 1.0 / 4, 1.0 / 3, 1.0 / 2, 1};
  x = wasm_f64x2_max(x, wasm_f64x2_const_splat(-700));
  v128_t k = wasm_f64x2_nearest(wasm_f64x2_mul(x, wasm_f64x2_const_splat(1.4426950408889634)));
  v128_t f = wasm_f64x2_sub(x, wasm_f64x2_mul(k, wasm_f64x2_const_splat(0.6931471803691238)));
  f = wasm_f64x2_sub(f, wasm_f64x2_mul(k, wasm_f64x2_const_splat(1.9082149292705877e-10)));
  v128_t one = wasm_f64x2_const_splat(1), y = one;
  for (int n = 0; n < 13; n++) y = wasm_f64x2_add(one, wasm_f64x2_mul(wasm_f64x2_mul(y, f), wasm_f64x2_splat(over[n])));
  v128_t whole = wasm_i64x2_extend_low_i32x4(wasm_i32x4_trunc_sat_f64x2_zero(k));
  return wasm_f64x2_mul(y, wasm_i64x2_shl(wasm_i64x2_add(whole, wasm_i64x2_const_splat(1023)), 52));
}

// q has `stride` numbers a token, k, v and y have D. `score` has room for the keys and one more.
EXPORT("attend")
void attend(const double *q, const double *k, const double *v, int tokens, int before, int stride, double slope, double *score, double *y) {
  for (int p = 0; p < tokens; p++) {
    int keys = before + p + 1;
    double most = -1e300, total = 0;
    v128_t row[LANES];
    for (int n = 0; n < LANES; n++) row[n] = wasm_v128_load(q + p * stride + 2 * n);
    for (int j = 0; j < keys; j++) {
      v128_t sum = wasm_f64x2_const_splat(0);
      for (int n = 0; n < LANES; n++) ADD_PRODUCT(sum, row[n], wasm_v128_load(k + j * D + 2 * n));
      score[j] = both(sum) * 0.17677669529663687 - slope * (keys - 1 - j);
      if (score[j] > most) most = score[j];
    }
    score[keys] = most;
    for (int j = 0; j < keys; j += 2) wasm_v128_store(score + j, power(wasm_f64x2_sub(wasm_v128_load(score + j), wasm_f64x2_splat(most))));
    for (int n = 0; n < LANES; n++) row[n] = wasm_f64x2_const_splat(0);
    for (int j = 0; j < keys; j++) {
      total += score[j];
      v128_t weight = wasm_f64x2_splat(score[j]);
      for (int n = 0; n < LANES; n++) ADD_PRODUCT(row[n], weight, wasm_v128_load(v + j * D + 2 * n));
    }
    for (int n = 0; n < LANES; n++) wasm_v128_store(y + p * D + 2 * n, wasm_f64x2_div(row[n], wasm_f64x2_splat(total)));
  }
}
