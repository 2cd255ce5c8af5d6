// Large pages for newly allocated memory.
//
// Memory that malloc gets from the system is mapped page by page at the first write: 8192 page faults for 32 MiB, ten times the
// time of writing. Linux maps 2 MiB at once on request.
#pragma once

#include <cstddef>
#include <cstdint>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace posenc {

// A hint, given before the first write. It changes no value, and has no effect on memory that is already mapped.
inline void in_large_pages(void* at, int64_t bytes) {
#if defined(__linux__) && defined(MADV_HUGEPAGE)
  constexpr uintptr_t page = 4096, large = 2 << 20;
  const uintptr_t begin = (reinterpret_cast<uintptr_t>(at) + page - 1) / page * page;
  const uintptr_t end = (reinterpret_cast<uintptr_t>(at) + static_cast<uintptr_t>(bytes)) / page * page;
  if (end >= begin + 2 * large) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
#else
  (void)at, (void)bytes;
#endif
}

}  // namespace posenc
