// Work shared by torch's own threads.
//
// torch loads an OpenMP runtime (libgomp, or libomp with the same symbol). A second pool of threads would compete with it for the
// cores, so its GOMP_parallel is looked up in the process. Without a runtime (torch for Windows has none), plain threads are
// started.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#if !defined(_WIN32)
#include <dlfcn.h>
#endif

namespace posenc {

template <class Body>
struct Work {
  const Body* body;
  std::atomic<int64_t> next{0};
  int64_t total, chunk;

  void run() {
    for (int64_t begin; (begin = next.fetch_add(chunk)) < total;) (*body)(begin, std::min(begin + chunk, total));
  }
  static void enter(void* self) { static_cast<Work*>(self)->run(); }
};

using Parallel = void (*)(void (*)(void*), void*, unsigned, unsigned);

// GOMP_parallel of the OpenMP runtime in this process, or null.
inline Parallel of_openmp() {
#if defined(_WIN32)
  return nullptr;
#else
  return reinterpret_cast<Parallel>(dlsym(RTLD_DEFAULT, "GOMP_parallel"));
#endif
}

// Calls body(begin, end) over 0 … total - 1 in chunks, with up to `threads` threads.
template <class Body>
void in_parallel(int64_t total, int64_t chunk, int threads, const Body& body) {
  if (threads <= 1 || total <= chunk) return body(0, total);
  static const Parallel gomp = of_openmp();
  Work<Body> work{&body, {0}, total, std::max<int64_t>(chunk, 1)};
  if (gomp) return gomp(&Work<Body>::enter, &work, static_cast<unsigned>(threads), 0);
  std::vector<std::thread> others;
  for (int n = 1; n < threads; ++n) others.emplace_back([&work] { work.run(); });
  work.run();
  for (auto& one : others) one.join();
}

}  // namespace posenc
