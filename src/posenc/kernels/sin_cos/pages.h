// Fresh memory in few pages.
//
// What malloc takes from the system arrives page by page, at the first write to each: 8192 interruptions for 32 MiB, which cost
// ten times what writing does. Linux gives 2 MiB at once where it is asked to.
#pragma once

#include <cstddef>
#include <cstdint>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace posenc {

// Advice, to be given before the first write; changes no value and nothing where the memory is there already.
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
