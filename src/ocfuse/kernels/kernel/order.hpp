// Measure candidates by direct differences and put them in order.

// |x - y|^2 of `some` rows y at once, each summed in the order of numpy.einsum: two
// sums, of the even and of the odd columns; of eight columns the last pair first.
template <int some>
inline void gaps(const double* x, const double* const* y, std::int64_t m, double* squares) {
  double even[some] = {}, odd[some] = {};
  const auto add = [&](std::int64_t j) {
    for (int s = 0; s < some; ++s) {
      const double a = y[s][j] - x[j], b = y[s][j + 1] - x[j + 1];
      even[s] += a * a;
      odd[s] += b * b;
    }
  };
  std::int64_t j = 0;
  for (; m - j >= 8; j += 8) {
    add(j + 6);
    add(j + 4);
    add(j + 2);
    add(j);
  }
  for (; m - j >= 2; j += 2) add(j);
  for (int s = 0; s < some; ++s) {
    if (j < m) even[s] += (y[s][j] - x[j]) * (y[s][j] - x[j]);
    squares[s] = even[s] + odd[s];
  }
}

// The same in single precision, each in 32 sums that are added up by halves.
template <int some>
inline void gaps(const float* x, const float* const* y, std::int64_t m, double* squares) {
  constexpr std::int64_t lanes = 32;
  for (int s = 0; s < some; ++s) {
    float sums[lanes] = {};
    const auto add = [&](std::int64_t j, std::int64_t l) {
      const float gap = y[s][j + l] - x[j + l];
      sums[l] += gap * gap;
    };
    std::int64_t j = 0;
    for (; m - j >= lanes; j += lanes)
      for (std::int64_t l = 0; l < lanes; ++l) add(j, l);
    for (std::int64_t l = 0; j + l < m; ++l) add(j, l);
    for (std::int64_t half = lanes / 2; half > 0; half /= 2)
      for (std::int64_t l = 0; l < half; ++l) sums[l] += sums[l + half];
    squares[s] = double{sums[0]};
  }
}

constexpr int kTogether = 4;

// Have a row brought near while others are measured.
template <class T>
inline void fetch(const T* row, std::int64_t m) {
#if defined(__GNUC__) || defined(__clang__)
  constexpr std::int64_t line = 64 / sizeof(T);
  for (std::int64_t j = 0; j < m; j += line) __builtin_prefetch(row + j);
#endif
}

template <class T, class U>
void measure(const std::vector<Entry<T>>& kept, T limit, const U* x, const Tables<U>& tables,
             std::vector<Measured>& out) {
  out.clear();
  for (const Entry<T>& entry : kept)
    if (entry.value <= limit) out.push_back({0.0, entry.row});
  const U* y[kTogether];
  double squares[kTogether];
  std::size_t i = 0;
  for (; i + kTogether <= out.size(); i += kTogether) {
    for (std::size_t next = i + kTogether; next < std::min(out.size(), i + 2 * kTogether); ++next)
      fetch(tables.Y + out[next].row * tables.m, tables.m);
    for (int s = 0; s < kTogether; ++s) y[s] = tables.Y + out[i + s].row * tables.m;
    gaps<kTogether>(x, y, tables.m, squares);
    for (int s = 0; s < kTogether; ++s) out[i + s].square = squares[s];
  }
  for (; i < out.size(); ++i) {
    y[0] = tables.Y + out[i].row * tables.m;
    gaps<1>(x, y, tables.m, &out[i].square);
  }
}

// Put the rows it stands for in the place of every row, at most k of each.
template <class U>
inline void expand(std::vector<Measured>& measured, const Tables<U>& tables, std::int64_t k) {
  if (tables.starts == nullptr) return;
  const std::size_t size = measured.size();
  for (std::size_t i = 0; i < size; ++i) {
    const double square = measured[i].square;
    const std::int64_t begin = tables.starts[measured[i].row];
    const std::int64_t end = std::min(tables.starts[measured[i].row + 1], begin + k);
    measured[i].row = tables.numbers[begin];
    for (std::int64_t l = begin + 1; l < end; ++l) measured.push_back({square, tables.numbers[l]});
  }
}

// The first k of row x. Distances that are no numbers are no candidates.
template <class T, class U>
inline void order_row(Candidates<T>& found, std::size_t row, const U* x,
                      const Tables<U>& tables, const Nearest& answer, std::int64_t i,
                      std::vector<Measured>& measured) {
  measure(found.kept[row], found.limit[row], x, tables, measured);
  expand(measured, tables, answer.k);
  if (static_cast<std::int64_t>(measured.size()) < answer.k)
    throw std::invalid_argument("there are fewer candidates than neighbours");
  const auto last = measured.begin() + answer.k;
  if (last != measured.end()) std::nth_element(measured.begin(), last, measured.end());
  std::sort(measured.begin(), last);
  for (std::int64_t j = 0; j < answer.k; ++j) {
    answer.squares[i * answer.k + j] = measured[static_cast<std::size_t>(j)].square;
    answer.index[i * answer.k + j] = measured[static_cast<std::size_t>(j)].row;
  }
}

void order(Candidates<float>& found, const Tables<double>& tables, const Nearest& answer, int threads) {
  in_pieces(tables.q, kPiece, threads, [&](std::int64_t begin, std::int64_t end) {
    std::vector<Measured> measured;
    for (std::int64_t i = begin; i < end; ++i) {
      const std::size_t row = static_cast<std::size_t>(i);
      sift(found, row);
      if (found.crowded[row]) continue;
      order_row(found, row, tables.X + i * tables.m, tables, answer, i, measured);
    }
  });
}

// The nearest, given rounded squared distances D (q, n).
void nearest_by_matrix(const double* D, const double* norms, double c, const Tables<double>& tables,
                       const Nearest& answer, int threads) {
  std::vector<std::int32_t> columns(static_cast<std::size_t>(tables.n));
  for (std::size_t j = 0; j < columns.size(); ++j) columns[j] = static_cast<std::int32_t>(j);
  in_pieces(tables.q, kPiece, threads, [&](std::int64_t begin, std::int64_t end) {
    std::vector<Measured> measured;
    std::vector<double> least;
    Candidates<double> found(1, static_cast<std::size_t>(answer.k), columns.size(), c, 0.0);
    for (std::int64_t i = begin; i < end; ++i) {
      const double* const line = D + i * tables.n;
      found.norms[0] = norms[i];
      found.limit[0] = reach(found, 0, bound_of_smallest(line, tables.n, answer.k, least));
      found.kept[0].clear();
      add_row(found, 0, tables.n, columns.data(), AsIs{line});
      sift(found, 0);
      order_row(found, 0, tables.X + i * tables.m, tables, answer, i, measured);
    }
  });
}
