// Share rows among threads.

// Rows that a thread takes at a time.
constexpr std::int64_t kPiece = 64;

// Call work(begin, end) on pieces of 0..n.
template <class Work>
void in_pieces(std::int64_t n, std::int64_t piece, int threads, Work work) {
  std::atomic<std::int64_t> next{0};
  auto worker = [&] {
    const Work own = work;  // nobody else's: what it holds can stay in registers
    for (;;) {
      const std::int64_t begin = next.fetch_add(piece);
      if (begin >= n) return;
      own(begin, std::min(n, begin + piece));
    }
  };
  typedef decltype(worker) Worker;
  in_threads(threads, [](void* what) { (*static_cast<Worker*>(what))(); }, &worker);
}
