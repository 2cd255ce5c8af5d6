// Work shared by torch's own threads.
//
// torch brings an OpenMP runtime (libgomp, or libomp, which answers to the same name). A second pool of threads beside it would
// fight for the cores, so its GOMP_parallel is looked up in the process; without one, plain threads do.
#pragma once

#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

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

// body(begin, end) over 0 … total - 1 in chunks, by up to `threads` threads.
template <class Body>
void in_parallel(int64_t total, int64_t chunk, int threads, const Body& body) {
  if (threads <= 1 || total <= chunk) return body(0, total);
  using Parallel = void (*)(void (*)(void*), void*, unsigned, unsigned);
  static const Parallel gomp = reinterpret_cast<Parallel>(dlsym(RTLD_DEFAULT, "GOMP_parallel"));
  Work<Body> work{&body, {0}, total, std::max<int64_t>(chunk, 1)};
  if (gomp) return gomp(&Work<Body>::enter, &work, static_cast<unsigned>(threads), 0);
  std::vector<std::thread> others;
  for (int n = 1; n < threads; ++n) others.emplace_back([&work] { work.run(); });
  work.run();
  for (auto& one : others) one.join();
}

}  // namespace posenc
