// Look values up in sorted columns.

constexpr int kLookups = 8;                   // that do not wait for each other
constexpr std::int64_t kRowsTogether = 2048;  // a column is read once for all of them
constexpr std::int64_t kColumns = 8;          // whose values lie in one line of the cache

// The first of the n sorted numbers of each column that is not below x, or their end.
inline void find(const double* const* columns, std::int64_t n, const double* x,
                 const double** found) {
  for (int l = 0; l < kLookups; ++l) found[l] = columns[l];
  for (std::int64_t left = n; left > 1; left -= left / 2)
    for (int l = 0; l < kLookups; ++l) {
      const double* further = found[l] + left / 2;
      found[l] = further[-1] < x[l] ? further : found[l];
    }
  for (int l = 0; l < kLookups; ++l) found[l] += *found[l] < x[l] ? 1 : 0;
}

// The smaller of the numbers of values not above and not below x.
inline std::int64_t tail(const double* column, std::int64_t n, double x, const double* found) {
  const double *end = column + n, *above = found;
  if (found < end && *found == x) above = std::upper_bound(found, end, x);
  return std::min(above - column, end - found);
}

// Tails of some values, one column after the other: that of row i in column j is at
// j * rows + i. Those of fewer rows than are looked up at once go on in the next column.
inline void find_tails(const double* columns, std::int64_t n, std::int64_t n_columns,
                       std::int64_t rows, const double* values, std::int64_t* counts) {
  const std::int64_t size = n_columns * rows;
  for (std::int64_t at = 0; at < size; at += kLookups) {
    const double *column[kLookups], *found[kLookups];
    double x[kLookups];
    for (int l = 0; l < kLookups; ++l) {
      const std::int64_t one = std::min(at + l, size - 1);
      column[l] = columns + one / rows * n;
      x[l] = values[one];
    }
    find(column, n, x, found);
    for (int l = 0; l < kLookups && at + l < size; ++l)
      counts[at + l] = tail(column[l], n, x[l], found[l]);
  }
}

void tails(const double* columns, std::int64_t m, std::int64_t n, const double* X, std::int64_t q,
           std::int64_t* counts, int threads) {
  in_pieces(q, kRowsTogether, threads, [=](std::int64_t begin, std::int64_t end) {
    const std::int64_t rows = end - begin;
    std::vector<double> values(static_cast<std::size_t>(kColumns * rows));
    std::vector<std::int64_t> found(values.size());
    for (std::int64_t from = 0; from < m; from += kColumns) {
      const std::int64_t some = std::min(m - from, kColumns);
      for (std::int64_t i = 0; i < rows; ++i)
        for (std::int64_t j = 0; j < some; ++j)
          values[static_cast<std::size_t>(j * rows + i)] = X[(begin + i) * m + from + j];
      find_tails(columns + from * n, n, some, rows, values.data(), found.data());
      for (std::int64_t i = 0; i < rows; ++i)
        for (std::int64_t j = 0; j < some; ++j)
          counts[(begin + i) * m + from + j] = found[static_cast<std::size_t>(j * rows + i)];
    }
  });
}
