// The numbers of the k smallest values of every row, smallest first, of equal ones the first.
void smallest(const double* D, std::int64_t q, std::int64_t n, std::int64_t k, std::int64_t* index,
              int threads) {
  in_pieces(q, std::max<std::int64_t>(1, (1 << 16) / n), threads,
            [=](std::int64_t begin, std::int64_t end) {
    const std::size_t most = static_cast<std::size_t>(4 * k + 64);
    std::vector<Measured> kept;
    std::vector<double> least;
    kept.reserve(most);
    for (std::int64_t i = begin; i < end; ++i) {
      const double* row = D + i * n;
      kept.clear();
      const double infinity = std::numeric_limits<double>::infinity();
      // a value at the bound is kept
      double limit = std::nextafter(bound_of_smallest(row, n, k, least), infinity);
      const bool is_bounded = limit < infinity;
      const auto cut = [&] {
        std::nth_element(kept.begin(), kept.begin() + (k - 1), kept.end());
        kept.resize(static_cast<std::size_t>(k));
        limit = kept.back().square;
      };
      for (std::int64_t j = 0; j < n; ++j) {
        if (is_bounded) j = skip<double>(AsIs{row}, [limit](std::int64_t) { return limit; }, j, n);
        if (j == n) break;
        // a later one that is equal to the last of those kept comes after it
        if (!(row[j] < limit) && (is_bounded || kept.size() >= static_cast<std::size_t>(k)))
          continue;
        kept.push_back({row[j] <= infinity ? row[j] : infinity, j});
        if (kept.size() == most) cut();
      }
      cut();
      std::sort(kept.begin(), kept.end());
      for (std::int64_t j = 0; j < k; ++j) index[i * k + j] = kept[static_cast<std::size_t>(j)].row;
    }
  });
}
