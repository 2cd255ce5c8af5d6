// Runs every kernel of a library on inputs of its own and prints a hash of the results: the same lines on every machine.
//
//     run_kernels LIBRARY        one line for each kernel and dtype: name, FNV-1a hash of all bytes of the results
//
// tests/test_wheels.py compiles it for each platform, runs it (arm64 under qemu, Windows under wine) and compares.
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <vector>

#if defined(_WIN32)
#include <windows.h>
static void* loaded(const char* path) { return reinterpret_cast<void*>(LoadLibraryA(path)); }
static void* found(void* library, const char* name) {
  return reinterpret_cast<void*>(GetProcAddress(reinterpret_cast<HMODULE>(library), name));
}
#else
#include <dlfcn.h>
static void* loaded(const char* path) { return dlopen(path, RTLD_NOW); }
static void* found(void* library, const char* name) { return dlsym(library, name); }
#endif

// Numbers between -2 and 2 with 16 bits after the point, so that every dtype and every processor has the same.
static uint64_t state;
static double drawn() {
  state = state * 6364136223846793005u + 1442695040888963407u;
  return static_cast<double>(static_cast<int64_t>(state >> 46)) / 65536 - 2;
}

static std::vector<double> doubles(size_t count) {
  std::vector<double> made(count);
  for (auto& one : made) one = drawn();
  return made;
}

static std::vector<float> floats(size_t count) {
  const auto made = doubles(count);
  return {made.begin(), made.end()};
}

template <class T>
static uint64_t hashed(const std::vector<T>& values, uint64_t hash = 14695981039346656037u) {
  std::vector<unsigned char> bytes(values.size() * sizeof(T));
  if (!bytes.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  for (const unsigned char byte : bytes) hash = (hash ^ byte) * 1099511628211u;
  return hash;
}

static void say(const char* name, uint64_t hash) { std::printf("%s %016llx\n", name, static_cast<unsigned long long>(hash)); }

template <class T>
static int64_t address(const T* of) {
  return static_cast<int64_t>(reinterpret_cast<uintptr_t>(of));
}

using Rotate = void (*)(const int64_t*, int64_t);

// 2 rows, 3 heads, 37 tokens; all layouts, both directions, one thread and three; the channels around the pairs are copied.
template <class Stored, class Wide>
static uint64_t rotations(Rotate rotate, int64_t type, const std::vector<Stored>& pool) {
  uint64_t hash = 14695981039346656037u;
  for (const int64_t pairs : {1, 5, 16, 48})
    for (int64_t options = 0; options < 16; ++options) {
      const int64_t b = 2, h = 3, t = 37, start = 2, d = start + 2 * pairs + 3, threads = options & 8 ? 3 : 1;
      std::vector<Stored> x(static_cast<size_t>(b * h * t * d)), out(x.size());
      for (size_t n = 0; n < x.size(); ++n) x[n] = pool[(n * 7919 + static_cast<size_t>(pairs)) % pool.size()];
      std::vector<Wide> cos(static_cast<size_t>(t * pairs)), sin(cos.size());
      for (auto& one : cos) one = static_cast<Wide>(drawn());
      for (auto& one : sin) one = static_cast<Wide>(drawn());
      const int64_t given[] = {address(x.data()), address(out.data()), address(cos.data()), address(sin.data()),
                               b, h, t, d, 1, 1, t, pairs, start,
                               h * t * d, t * d, d, 1, h * t * d, t * d, d, 1,
                               0, 0, pairs, 1, 0, 0, pairs, 1,
                               type, options & 1, options >> 1 & 1, options >> 2 & 1, threads};
      static_assert(sizeof(given) == 34 * sizeof(int64_t), "as rotation.cpp reads it");
      rotate(given, 1);
      hash = hashed(out, hash);
    }
  return hash;
}

// The bit patterns of a 16-bit dtype that are finite.
static std::vector<uint16_t> finite_bits(uint16_t exponent) {
  std::vector<uint16_t> made;
  for (uint32_t bits = 0; bits < 65536; ++bits)
    if ((bits & exponent) != exponent) made.push_back(static_cast<uint16_t>(bits));
  return made;
}

using Consecutive = void (*)(const int64_t*, int64_t, int64_t, const double*, int64_t, void*, void*, const int64_t*, int, int);
using Anywhere = void (*)(const void*, int, const int64_t*, int64_t, int64_t, const double*, const int64_t*, int64_t, void*,
                          void*, const int64_t*, int, int);

template <class Out>
static uint64_t tables_in_a_row(Consecutive fill) {
  uint64_t hash = 14695981039346656037u;
  for (const int64_t n : {1, 3, 16, 64})
    for (const int threads : {1, 3}) {
      std::vector<double> frequencies(static_cast<size_t>(n), 1.0);
      for (size_t i = 1; i < frequencies.size(); ++i) frequencies[i] = frequencies[i - 1] * 0.8125;
      const int64_t starts[] = {0, 999937}, length = 700, strides[] = {length * n, n, 1};
      std::vector<Out> sin(static_cast<size_t>(2 * length * n)), cos(sin.size());
      fill(starts, 2, length, frequencies.data(), n, sin.data(), cos.data(), strides, sizeof(Out) == 8, threads);
      hash = hashed(cos, hashed(sin, hash));
    }
  return hash;
}

template <class Out>
static uint64_t tables_anywhere(Anywhere fill) {
  const int64_t n = 6, length = 500, axes[] = {0, 0, 1, 1, 0, 1}, of_coords[] = {2 * length, 2, 1}, strides[] = {length * n, n, 1};
  const double frequencies[] = {1, 0.5, 0.3125, 0.01, 0.001, 6.25};
  std::vector<double> reals(static_cast<size_t>(2 * length * 2));
  for (auto& one : reals) one = drawn() * 50000;
  const std::vector<int64_t> whole(reals.begin(), reals.end());
  std::vector<Out> sin(static_cast<size_t>(2 * length * n)), cos(sin.size());
  fill(whole.data(), 0, of_coords, 2, length, frequencies, axes, n, sin.data(), cos.data(), strides, sizeof(Out) == 8, 3);
  const uint64_t hash = hashed(cos, hashed(sin));
  fill(reals.data(), 1, of_coords, 2, length, frequencies, axes, n, sin.data(), cos.data(), strides, sizeof(Out) == 8, 1);
  return hashed(cos, hashed(sin, hash));
}

// As bias_gradients.cpp reads it.
struct BiasGradients {
  const float *q, *k, *v, *grad, *out, *sums, *bias;
  float *d_q, *d_k, *d_v, *d_bias;
  int64_t batch, heads, key_heads, length, width, distances, stride[6][3], bias_stride[2], threads;
  double scale;
};

static uint64_t bias_gradients(void (*gradients)(const BiasGradients*)) {
  uint64_t hash = 14695981039346656037u;
  for (const bool causal : {true, false}) {
    const int64_t b = 2, h = 4, g = 2, t = 35, d = 24, n = causal ? t : 2 * t - 1;
    const auto q = floats(b * h * t * d), k = floats(b * g * t * d), v = floats(b * g * t * d), bias = floats(h * n);
    const auto grad = floats(b * h * t * d), out = floats(b * h * t * d);
    std::vector<float> sums(static_cast<size_t>(b * h * t), 6.0f), d_q(q.size()), d_k(k.size()), d_v(v.size()), d_bias(bias.size());
    BiasGradients of{q.data(), k.data(), v.data(), grad.data(), out.data(), sums.data(), bias.data(),
                     d_q.data(), d_k.data(), d_v.data(), d_bias.data(), b, h, g, t, d, n, {}, {n, 1}, 2, 0.25};
    for (const int tensor : {0, 1, 2, 3, 4}) {
      const int64_t heads = tensor == 1 || tensor == 2 ? g : h, strides[] = {heads * t * d, t * d, d};
      std::memcpy(of.stride[tensor], strides, sizeof(strides));
    }
    const int64_t strides[] = {h * t, t, 1};
    std::memcpy(of.stride[5], strides, sizeof(strides));
    gradients(&of);
    hash = hashed(d_bias, hashed(d_v, hashed(d_k, hashed(d_q, hash))));
  }
  return hash;
}

int main(int count, char** arguments) {
  void* const library = count == 2 ? loaded(arguments[1]) : nullptr;
  if (!library) return std::fprintf(stderr, "run_kernels LIBRARY: the library does not load\n"), 1;
  const auto function = [&](const char* name) {
    void* const at = found(library, name);
    if (!at) std::fprintf(stderr, "%s is missing\n", name);
    return at;
  };
  const auto told = reinterpret_cast<const char* (*)()>(function("posenc_sources"));
  const auto instructions = reinterpret_cast<const char* (*)()>(function("posenc_instructions"));
  const auto rotate = reinterpret_cast<Rotate>(function("posenc_rotate"));
  const auto in_a_row = reinterpret_cast<Consecutive>(function("posenc_sin_cos_consecutive"));
  const auto anywhere = reinterpret_cast<Anywhere>(function("posenc_sin_cos_at"));
  const auto gradients = reinterpret_cast<void (*)(const BiasGradients*)>(function("posenc_bias_gradients"));
  if (!told || !instructions || !rotate || !in_a_row || !anywhere || !gradients) return 1;
  std::printf("sources %s\ninstructions %s\n", told(), instructions());
  say("rotate fp32", rotations<float, float>(rotate, 0, floats(4096)));
  say("rotate fp64", rotations<double, double>(rotate, 1, doubles(4096)));
  say("rotate bf16", rotations<uint16_t, float>(rotate, 2, finite_bits(0x7f80)));
  say("rotate fp16", rotations<uint16_t, float>(rotate, 3, finite_bits(0x7c00)));
  say("sin_cos_consecutive fp32", tables_in_a_row<float>(in_a_row));
  say("sin_cos_consecutive fp64", tables_in_a_row<double>(in_a_row));
  say("sin_cos_at fp32", tables_anywhere<float>(anywhere));
  say("sin_cos_at fp64", tables_anywhere<double>(anywhere));
  say("bias_gradients", bias_gradients(gradients));
}
