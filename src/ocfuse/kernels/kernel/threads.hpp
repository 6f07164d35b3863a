// Share rows among threads.

// Rows that a thread takes at a time.
constexpr std::int64_t kPiece = 64;

// Call work(begin, end) on pieces of 0..n; the first exception, such as no memory,
// comes back.
template <class Work>
void in_pieces(std::int64_t n, std::int64_t piece, int threads, Work work) {
  std::atomic<std::int64_t> next{0};
  const std::size_t count = static_cast<std::size_t>(std::max(1, threads));
  std::vector<std::exception_ptr> errors(count);
  const auto worker = [&](std::size_t id) {
    try {
      for (;;) {
        const std::int64_t begin = next.fetch_add(piece);
        if (begin >= n) return;
        work(begin, std::min(n, begin + piece));
      }
    } catch (...) {
      errors[id] = std::current_exception();
    }
  };
  std::vector<std::thread> pool;
  pool.reserve(count);
  try {
    for (std::size_t id = 1; id < count; ++id) pool.emplace_back(worker, id);
  } catch (const std::system_error&) {
    // No more threads to be had: those that run share the work.
  }
  worker(0);
  for (std::thread& thread : pool) thread.join();
  for (const std::exception_ptr& error : errors)
    if (error) std::rethrow_exception(error);
}
