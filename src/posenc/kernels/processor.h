// The instructions that the kernels use. On x86-64: the widest that the processor supports, limited by POSENC_KERNELS, so that
// every variant can be tested on one machine. On other processors there is one variant; on arm64 it uses NEON, which all of
// them support.
#pragma once

#include <cstdlib>
#include <cstring>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

// A function compiled for processors with these features, in vectors of 512 bits.
#if defined(__clang__)
#define OF_512_BITS(features) __attribute__((target(features), min_vector_width(512)))
#else
#define OF_512_BITS(features) __attribute__((target(features ",prefer-vector-width=512")))
#endif

// A function compiled with fused multiply-adds, and a block of it: the other kernels are compiled without. Two compilers, two words
// for the exception.
#if defined(__clang__)
#define FUSED
#define FUSED_HERE _Pragma("clang fp contract(fast)")
#else
#define FUSED __attribute__((optimize("fp-contract=fast")))
#define FUSED_HERE
#endif

namespace posenc {

enum Instructions { PORTABLE, AVX2, AVX512, AVX512_BF16 };
#if defined(__ARM_NEON)
inline constexpr const char* NAMES[] = {"neon"};
#else
inline constexpr const char* NAMES[] = {"portable", "avx2", "avx512", "avx512_bf16"};
#endif

#if defined(__x86_64__)
// Uses cpuid directly, because zig's __builtin_cpu_supports always returns false.
inline int of_x86() {
  unsigned a, b, c, d;
  if (!__get_cpuid(1, &a, &b, &c, &d) || !(c >> 27 & 1)) return PORTABLE;  // the system does not save wide registers
  unsigned saved, high;
  __asm__("xgetbv" : "=a"(saved), "=d"(high) : "c"(0));
  if ((saved & 0x6) != 0x6 || !__get_cpuid_count(7, 0, &a, &b, &c, &d) || !(b >> 5 & 1)) return PORTABLE;
  const unsigned needed = 1u << 16 | 1u << 17 | 1u << 30 | 1u << 31;  // F, DQ, BW, VL
  if ((saved & 0xe6) != 0xe6 || (b & needed) != needed) return AVX2;
  return __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a >> 5 & 1) ? AVX512_BF16 : AVX512;
}
#endif

inline Instructions instructions() {
  static const Instructions widest = [] {
    int found = PORTABLE;
#if defined(__x86_64__)
    found = of_x86();
#endif
    const char* const asked = std::getenv("POSENC_KERNELS");
    for (int n = PORTABLE; asked && n < found; ++n)
      if (!std::strcmp(asked, NAMES[n])) found = n;
    return static_cast<Instructions>(found);
  }();
  return widest;
}

}  // namespace posenc
