// Which instructions the kernels use: the widest that the processor has, or no wider than POSENC_KERNELS says, so that
// every variant can be tested on a machine that has them all.
#pragma once

#include <cstdlib>
#include <cstring>

// A function compiled for processors with these features, in vectors of 512 bits.
#if defined(__clang__)
#define OF_512_BITS(features) __attribute__((target(features), min_vector_width(512)))
#else
#define OF_512_BITS(features) __attribute__((target(features ",prefer-vector-width=512")))
#endif

namespace posenc {

enum Instructions { PORTABLE, AVX2, AVX512, AVX512_BF16 };

inline Instructions instructions() {
  static const Instructions widest = [] {
    int found = PORTABLE;
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2")) found = AVX2;
    if (__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
      found = __builtin_cpu_supports("avx512bf16") ? AVX512_BF16 : AVX512;
#endif
    const char* const asked = std::getenv("POSENC_KERNELS");
    const char* const names[] = {"portable", "avx2", "avx512", "avx512_bf16"};
    for (int n = PORTABLE; asked && n < found; ++n)
      if (!std::strcmp(asked, names[n])) found = n;
    return static_cast<Instructions>(found);
  }();
  return widest;
}

}  // namespace posenc
