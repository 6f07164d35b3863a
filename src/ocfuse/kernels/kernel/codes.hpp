// Candidates by products of codes: whole numbers, so that no order of summation matters.

constexpr std::int64_t kPanel = 16;  // rows y that are multiplied at once
constexpr int kTile = 4;             // by so many rows x
constexpr std::int64_t kPanels = 32; // panels that stay in the cache

// Values |y|^2 - 2 x.y of some rows x and the rows y of a panel; bit l of the result tells
// whether that of row l is within the limit of x.
template <int some>
inline void multiply(const Coded& coded, std::int64_t first, std::int64_t panel,
                     const float* limits, float (*values)[kPanel], unsigned* within) {
  const std::int64_t steps = coded.width / 2;
  const std::int16_t* y = coded.y.codes + panel * kPanel * coded.width;
  const std::int16_t* x[some];
  for (int s = 0; s < some; ++s) x[s] = coded.x.codes + (first + s) * coded.width;
#ifdef OCFUSE_AVX2
  // Vectors and functions of the compiler: the header of intrinsics takes longer to read
  // than all of this file.
  typedef Pack<std::int16_t>::type Shorts;
  typedef Pack<std::int32_t>::type Longs;
  typedef Pack<float>::type Floats;
  Longs low[some], high[some];
  for (int s = 0; s < some; ++s) low[s] = high[s] = Longs{};
  for (std::int64_t t = 0; t < steps; ++t) {
    const Shorts a = load(y + 32 * t), b = load(y + 32 * t + 16);
    for (int s = 0; s < some; ++s) {
      std::int32_t pair;
      std::memcpy(&pair, x[s] + 2 * t, sizeof pair);
      const Shorts both = (Shorts)(Longs{} + pair);
      low[s] += (Longs)__builtin_ia32_pmaddwd256(both, a);
      high[s] += (Longs)__builtin_ia32_pmaddwd256(both, b);
    }
  }
  const float *squares = coded.squares + panel * kPanel, *scales = coded.y.scales + panel * kPanel;
  for (int s = 0; s < some; ++s) {
    const float twice = 2.0f * coded.x.scales[first + s];
    within[s] = 0;
    for (int half = 0; half < 2; ++half) {
      const Floats product = __builtin_convertvector(half ? high[s] : low[s], Floats) *
                             load(scales + 8 * half);
      const Floats value = load(squares + 8 * half) - product * twice;
      std::memcpy(values[s] + 8 * half, &value, sizeof value);
      const Floats is_within = (Floats)(value <= limits[s]);
      within[s] |= static_cast<unsigned>(__builtin_ia32_movmskps256(is_within)) << (8 * half);
    }
  }
#else
  for (int s = 0; s < some; ++s) {
    std::int32_t sums[kPanel] = {};
    for (std::int64_t t = 0; t < steps; ++t)
      for (std::int64_t l = 0; l < kPanel; ++l)
        sums[l] += std::int32_t{x[s][2 * t]} * y[32 * t + 2 * l] +
                   std::int32_t{x[s][2 * t + 1]} * y[32 * t + 2 * l + 1];
    within[s] = 0;
    for (std::int64_t l = 0; l < kPanel; ++l) {
      const float product = static_cast<float>(sums[l]) * coded.y.scales[panel * kPanel + l];
      values[s][l] = coded.squares[panel * kPanel + l] - product * (2.0f * coded.x.scales[first + s]);
      within[s] |= static_cast<unsigned>(values[s][l] <= limits[s]) << l;
    }
  }
#endif
}

// The number of the lowest bit that is set.
inline int lowest(unsigned bits) {
#if defined(__GNUC__) || defined(__clang__)
  return __builtin_ctz(bits);
#else
  int l = 0;
  while ((bits >> l & 1u) == 0) ++l;
  return l;
#endif
}

// Rows x that follow each other, and the rows y of a panel that are in a range.
template <int some>
inline void add_panel(Candidates<float>& found, const Coded& coded, std::int64_t begin,
                      std::int64_t first, std::int64_t panel, unsigned asked) {
  float values[some][kPanel];
  unsigned within[some];
  const std::size_t row = static_cast<std::size_t>(first - begin);
  multiply<some>(coded, first, panel, found.limit.data() + row, values, within);
  for (int s = 0; s < some; ++s) {
    const std::size_t i = row + static_cast<std::size_t>(s);
    for (unsigned hits = within[s] & asked; hits != 0; hits &= hits - 1) {
      const int l = lowest(hits);
      // The limit may have fallen since.
      if (values[s][l] <= found.limit[i])
        keep(found, i, values[s][l], static_cast<std::int32_t>(panel * kPanel + l));
    }
  }
}

// Which rows of a panel are in [begin, end).
inline unsigned rows_of_panel(std::int64_t panel, std::int64_t begin, std::int64_t end) {
  const std::int64_t from = std::max<std::int64_t>(0, begin - panel * kPanel);
  const std::int64_t to = std::min(kPanel, end - panel * kPanel);
  return ((1u << to) - 1u) & ~((1u << from) - 1u);
}

// The candidates of rows x in [begin, end).
inline void add_codes(Candidates<float>& found, const Coded& coded, std::int64_t begin,
                      std::int64_t end) {
  for (std::int64_t r = 0; r < coded.n_ranges; ++r) {
    const std::int64_t from = coded.ranges[2 * r], to = coded.ranges[2 * r + 1];
    const std::int64_t last = (to + kPanel - 1) / kPanel;
    for (std::int64_t block = from / kPanel; block < last; block += kPanels) {
      const std::int64_t stop = std::min(last, block + kPanels);
      std::int64_t i = begin;
      for (; i + kTile <= end; i += kTile)
        for (std::int64_t panel = block; panel < stop; ++panel)
          add_panel<kTile>(found, coded, begin, i, panel, rows_of_panel(panel, from, to));
      for (; i < end; ++i)
        for (std::int64_t panel = block; panel < stop; ++panel)
          add_panel<1>(found, coded, begin, i, panel, rows_of_panel(panel, from, to));
    }
  }
}

// The nearest of the rows that products of codes say are near.
void nearest_by_codes(const Coded& coded, const Tables<float>& tables, const Nearest& answer,
                      bool* crowded, int threads) {
  in_pieces(tables.q, kPiece, threads, [&](std::int64_t begin, std::int64_t end) {
    const std::size_t rows = static_cast<std::size_t>(end - begin);
    Candidates<float> found(rows, coded.size, coded.most, 0.0, 0.0);
    std::copy(coded.norms + begin, coded.norms + end, found.shift.begin());
    add_codes(found, coded, begin, end);
    std::vector<Measured> measured;
    for (std::size_t row = 0; row < rows; ++row) {
      sift(found, row);
      const std::int64_t i = begin + static_cast<std::int64_t>(row);
      crowded[i] = found.crowded[row] != 0;
      if (!crowded[i]) order_row(found, row, tables.X + i * tables.m, tables, answer, i, measured);
    }
  });
}
