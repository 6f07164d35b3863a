// Keep the rows that may be among the k nearest, block after block of values.

constexpr std::int64_t kAtOnce = 16;

// The least capacity after which the candidates are sifted.
inline std::size_t patience(std::size_t k) { return 2 * k + 32; }

// The largest value of a row that may be among the k nearest, if k rows have values
// up to `value`. Those k are at most at (w + 3 c |x|^2 + tiny) / (1 - 2 c), where
// w = value + shift, and so is every row that is nearer; its value is at most
// (1 + 2 c) times that plus 3 c |x|^2 + tiny. Here c <= 0.01.
template <class T>
T reach(const Candidates<T>& found, std::size_t i, T value) {
  const double c = found.c, shift = found.shift[i];
  const double w = std::max(0.0, static_cast<double>(value) + shift);
  const double most = w * (1 + 5 * c) + 8 * c * found.norms[i] + 4 * found.tiny - shift;
  // A difference of large numbers, and the conversion, may have rounded it down.
  const double up = most + 4e-16 * (std::fabs(shift) + w);
  const T limit = static_cast<T>(up);
  return std::nextafter(limit, std::numeric_limits<T>::infinity());
}

// A bound on the k-th smallest of n values, from the smallest of groups of them: k groups whose
// smallest is at most the bound hold k such values. Most values are beyond it. NaN counts as beyond
// every bound; there is none (infinity) where so few values are numbers, or in all.
inline double bound_of_smallest(const double* values, std::int64_t n, std::int64_t k,
                                std::vector<double>& least) {
  const std::int64_t groups = 4 * k + 28;
  if (n < 2 * groups) return std::numeric_limits<double>::infinity();
  least.assign(values, values + groups);
  double* const found = least.data();
  for (std::int64_t g = 0; g < groups; ++g)
    if (!(found[g] <= std::numeric_limits<double>::max()))
      found[g] = std::numeric_limits<double>::infinity();
  for (std::int64_t begin = groups; begin < n; begin += groups) {
    const double* const next = values + begin;
    const std::int64_t size = std::min(groups, n - begin);
    for (std::int64_t g = 0; g < size; ++g) found[g] = next[g] < found[g] ? next[g] : found[g];
  }
  std::nth_element(least.begin(), least.begin() + (k - 1), least.end());
  return least[static_cast<std::size_t>(k - 1)];
}

// Drop what is no longer a candidate.
template <class T>
void sift(Candidates<T>& found, std::size_t i) {
  std::vector<Entry<T>>& kept = found.kept[i];
  if (kept.size() <= found.k) return;
  const auto kth = kept.begin() + static_cast<std::ptrdiff_t>(found.k - 1);
  std::nth_element(kept.begin(), kth, kept.end());
  const T limit = reach(found, i, kth->value);
  found.limit[i] = limit;
  kept.erase(std::partition(kth + 1, kept.end(), Within<T>{limit}), kept.end());
  if (kept.size() > found.most) {
    found.crowded[i] = 1;
    found.limit[i] = -std::numeric_limits<T>::infinity();
    std::vector<Entry<T>>().swap(kept);
    return;
  }
  // Many ties: sift again only when there are twice as many.
  if (kept.size() > kept.capacity() / 2) kept.reserve(2 * kept.size());
}

template <class T>
inline void keep(Candidates<T>& found, std::size_t i, T value, std::int32_t row) {
  std::vector<Entry<T>>& kept = found.kept[i];
  if (kept.capacity() == 0) kept.reserve(patience(found.k));
  kept.push_back({value, row});
  if (kept.size() == kept.capacity()) sift(found, i);
}

#if defined(__GNUC__) || defined(__clang__)
// Several numbers at a time, as the compiler knows them.
template <class T>
struct Pack {
  typedef T type __attribute__((vector_size(32)));
  static constexpr std::int64_t size = 32 / sizeof(T);
};
typedef std::uint64_t Bits __attribute__((vector_size(32)));

template <class T>
inline typename Pack<T>::type load(const T* from) {
  typename Pack<T>::type pack;
  __builtin_memcpy(&pack, from, sizeof pack);
  return pack;
}
template <class Mask>
inline Bits bits(Mask mask) { return (Bits)mask; }
inline bool any(Bits b) { return ((b[0] | b[1]) | (b[2] | b[3])) != 0; }
#else
template <class T>
inline T load(const T* from) { return *from; }
#endif

// What a column's number says of row x: less its product, or as it is.
struct FromProducts {
  const float* line;
  const float* squares;
  float operator()(std::int64_t j) const { return squares[j] - 2.0f * line[j]; }
#if defined(__GNUC__) || defined(__clang__)
  Pack<float>::type pack(std::int64_t j) const { return load(squares + j) - 2.0f * load(line + j); }
#endif
};
// The same product, seen from the column.
struct FromColumn {
  const float* line;
  float square;
  float operator()(std::int64_t j) const { return square - 2.0f * line[j]; }
#if defined(__GNUC__) || defined(__clang__)
  Pack<float>::type pack(std::int64_t j) const { return square - 2.0f * load(line + j); }
#endif
};
struct AsIs {
  const double* line;
  double operator()(std::int64_t j) const { return line[j]; }
#if defined(__GNUC__) || defined(__clang__)
  Pack<double>::type pack(std::int64_t j) const { return load(line + j); }
#endif
};

// Pass over values beyond their limits, several at a time; return where to look closer.
template <class T, class Values, class Limits>
inline std::int64_t skip(const Values& values, const Limits& limits, std::int64_t begin,
                         std::int64_t end) {
#if defined(__GNUC__) || defined(__clang__)
  constexpr std::int64_t size = Pack<T>::size;
  for (; begin + 2 * size <= end; begin += 2 * size) {
    const Bits low = bits(values.pack(begin) <= limits(begin));
    const Bits high = bits(values.pack(begin + size) <= limits(begin + size));
    if (any(low | high)) break;
  }
#else
  static_cast<void>(values), static_cast<void>(limits), static_cast<void>(end);
#endif
  return begin;
}

// Values of one row x.
template <class T, class Values>
inline void add_row(Candidates<T>& found, std::size_t i, std::int64_t n_columns,
                    const std::int32_t* columns, const Values& values) {
  std::int64_t j = 0;
  while (j < n_columns) {
    const T limit = found.limit[i];
    j = skip<T>(values, [limit](std::int64_t) { return limit; }, j, n_columns);
    for (const std::int64_t end = std::min(n_columns, j + kAtOnce); j < end; ++j)
      if (const T value = values(j); value <= found.limit[i]) keep(found, i, value, columns[j]);
  }
}

// Values of one row y for rows x whose numbers follow each other.
template <class T, class Values>
inline void add_column(Candidates<T>& found, std::int32_t row, std::int64_t n_columns,
                       std::size_t first, const Values& values) {
  const T* limits = found.limit.data() + first;
  std::int64_t j = 0;
  while (j < n_columns) {
    j = skip<T>(values, [limits](std::int64_t l) { return load(limits + l); }, j, n_columns);
    for (const std::int64_t end = std::min(n_columns, j + kAtOnce); j < end; ++j)
      if (const T value = values(j); value <= limits[j])
        keep(found, first + static_cast<std::size_t>(j), value, row);
  }
}

// Values |y|^2 - 2 x.y, from products x.y; if `both`, those of the columns as rows too.
void add_products(Candidates<float>& found, const Block<float>& products,
                  const float* row_squares, const float* column_squares, bool both) {
  for (std::int64_t r = 0; r < products.n_rows; ++r) {
    const float* line = products.values + r * products.stride;
    const std::int32_t i = products.rows[r];
    add_row(found, static_cast<std::size_t>(i), products.n_columns, products.columns,
            FromProducts{line, column_squares});
    if (both)
      add_column(found, i, products.n_columns, static_cast<std::size_t>(products.columns[0]),
                 FromColumn{line, row_squares[r]});
  }
}
