// Share work among threads. Compiled once, whatever the work is: to inline the work here would
// double it for the calling thread and the others.
#pragma once

#include <cstddef>
#include <exception>
#include <system_error>
#include <thread>
#include <vector>

namespace ocfuse {

// Call work(what) in so many threads, this one among them; the first exception, such as no
// memory, comes back.
inline void in_threads(int threads, void (*work)(void*), void* what) {
  if (threads <= 1) return work(what);
  std::vector<std::thread> pool;
  std::vector<std::exception_ptr> errors(static_cast<std::size_t>(threads));
  const auto guarded = [&](int i) {
    try {
      work(what);
    } catch (...) {
      errors[static_cast<std::size_t>(i)] = std::current_exception();
    }
  };
  pool.reserve(static_cast<std::size_t>(threads - 1));
  try {
    for (int i = 1; i < threads; ++i) pool.emplace_back(guarded, i);
  } catch (const std::system_error&) {
    // No more threads to be had: those that run share the work.
  }
  guarded(0);
  for (std::thread& thread : pool) thread.join();
  for (const std::exception_ptr& error : errors)
    if (error) std::rethrow_exception(error);
}

}  // namespace ocfuse
