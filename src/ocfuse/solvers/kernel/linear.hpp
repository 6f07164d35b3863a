// Products with the margins, and the small positive definite systems.
// Blocks of columns keep their sums in registers while the rows go by.

// Vectors of margins in one panel of rows: 32 KiB.
constexpr std::int64_t kPanel = 1024;

template <class L, int B>
inline void transposed_block(const typename L::Each* A, const typename L::Each* x,
                             std::int64_t rows, std::int64_t d, typename L::Own* out) {
  typename L::Each sum[B] = {};
  for (std::int64_t i = 0; i < rows; ++i)
    for (int j = 0; j < B; ++j) sum[j] += x[i] * A[i * d + j];
  for (int j = 0; j < B; ++j) out[j] = L::sum(sum[j]);
}

// out = A' x
template <class L>
OCFUSE_CALLED void transposed(const typename L::Each* A, const typename L::Each* x, std::int64_t rows,
                std::int64_t d, typename L::Own* out) {
  std::int64_t j = 0;
  for (; j + 8 <= d; j += 8) transposed_block<L, 8>(A + j, x, rows, d, out + j);
  for (; j + 4 <= d; j += 4) transposed_block<L, 4>(A + j, x, rows, d, out + j);
  for (; j < d; ++j) transposed_block<L, 1>(A + j, x, rows, d, out + j);
}

// sum_j |a_j| |w_j| of one row
template <class L>
inline typename L::Each absolute_margin(const typename L::Each* a, const typename L::Own* w,
                                        std::int64_t d) {
  typename L::Each sum{};
  for (std::int64_t j = 0; j < d; ++j) sum += magnitude(a[j]) * magnitude(w[j]);
  return sum;
}

// max_j (|A|' x)_j
template <class L>
typename L::Own absolute_reach(const typename L::Each* A, const typename L::Each* x,
                               std::int64_t rows, std::int64_t d) {
  typename L::Own most{};
  for (std::int64_t j = 0; j < d; ++j) {
    typename L::Each sum{};
    for (std::int64_t i = 0; i < rows; ++i) sum += magnitude(A[i * d + j]) * x[i];
    most = larger(most, L::sum(sum));
  }
  return most;
}

template <class L, int B>
inline void margin_rows(const typename L::Each* A, const typename L::Own* w, std::int64_t d,
                        typename L::Each* out) {
  typename L::Each sum[B] = {};
  for (std::int64_t j = 0; j < d; ++j)
    for (int i = 0; i < B; ++i) sum[i] += A[i * d + j] * w[j];
  for (int i = 0; i < B; ++i) out[i] = sum[i];
}

// out = A w
template <class L>
OCFUSE_CALLED void margins(const typename L::Each* A, const typename L::Own* w, std::int64_t rows,
             std::int64_t d, typename L::Each* out) {
  std::int64_t i = 0;
  for (; i + 4 <= rows; i += 4) margin_rows<L, 4>(A + i * d, w, d, out + i);
  for (; i < rows; ++i) margin_rows<L, 1>(A + i * d, w, d, out + i);
}

template <class Each, int J, int B>
inline void gram_block(const Each* A, const Each* x, std::int64_t rows, std::int64_t d,
                       std::int64_t j, std::int64_t l, Each* K) {
  Each sum[J][B];
  for (int u = 0; u < J; ++u)
    for (int v = 0; v < B; ++v) sum[u][v] = K[(j + u) * d + l + v];
  for (std::int64_t i = 0; i < rows; ++i) {
    const Each* a = A + i * d;
    Each left[J];
    for (int u = 0; u < J; ++u) left[u] = a[j + u] * x[i];
    for (int v = 0; v < B; ++v)
      for (int u = 0; u < J; ++u) sum[u][v] += left[u] * a[l + v];
  }
  for (int u = 0; u < J; ++u)
    for (int v = 0; v < B; ++v) K[(j + u) * d + l + v] = sum[u][v];
}

// The rows j .. j + J - 1 of K up to the diagonal; the last block may pass it.
template <class Each, int J>
inline void gram_rows(const Each* A, const Each* x, std::int64_t rows, std::int64_t d,
                      std::int64_t j, Each* K) {
  std::int64_t l = 0;
  for (; l + 4 <= j + J; l += 4) gram_block<Each, J, 4>(A, x, rows, d, j, l, K);
  switch (j + J - l) {
    case 3: gram_block<Each, J, 3>(A, x, rows, d, j, l, K); break;
    case 2: gram_block<Each, J, 2>(A, x, rows, d, j, l, K); break;
    case 1: gram_block<Each, J, 1>(A, x, rows, d, j, l, K); break;
    default: break;
  }
}

// The lower triangle of K = A' diag(x) A, in panels of rows that stay in the
// nearest cache while all pairs of columns go by.
template <class L>
OCFUSE_CALLED void gram(const typename L::Each* A, const typename L::Each* x, std::int64_t rows,
          std::int64_t d, typename L::Each* work, typename L::Own* K) {
  typedef typename L::Each Each;
  const std::int64_t panel = kPanel / d > 8 ? kPanel / d : 8;
  for (std::int64_t i = 0; i < d * d; ++i) work[i] = Each{};
  for (std::int64_t i = 0; i < rows; i += panel) {
    const std::int64_t height = rows - i < panel ? rows - i : panel;
    std::int64_t j = 0;
    for (; j + 2 <= d; j += 2) gram_rows<Each, 2>(A + i * d, x + i, height, d, j, work);
    if (j < d) gram_rows<Each, 1>(A + i * d, x + i, height, d, j, work);
  }
  for (std::int64_t j = 0; j < d; ++j)
    for (std::int64_t l = 0; l <= j; ++l) K[j * d + l] = L::sum(work[j * d + l]);
}

// Cholesky in place: L below the diagonal, L' above it, 1 / L_jj on it. A pivot
// that rounding made tiny becomes huge, which sets its component to zero.
template <class Own>
OCFUSE_CALLED void factorise(Own* K, std::int64_t d) {
  Own floor = K[0];
  for (std::int64_t j = 1; j < d; ++j) floor = larger(floor, K[j * d + j]);
  floor = floor * 1e-30;
  for (std::int64_t j = 0; j < d; ++j) {
    Own* upper = K + j * d;
    const Own pivot = pick(upper[j] > floor, upper[j], Own{} + 1e128);
    upper[j] = 1.0 / root(pivot);
    for (std::int64_t i = j + 1; i < d; ++i) upper[i] = K[i * d + j] *= upper[j];
    for (std::int64_t i = j + 1; i < d; ++i) {
      Own* row = K + i * d;
      const Own factor = row[j];
      for (std::int64_t l = j + 1; l <= i; ++l) row[l] -= factor * upper[l];
    }
  }
}

// x with L L' x = x.
template <class Own>
OCFUSE_CALLED void substitute(const Own* K, std::int64_t d, Own* x) {
  for (std::int64_t j = 0; j < d; ++j) {
    const Own value = x[j] *= K[j * d + j];
    for (std::int64_t i = j + 1; i < d; ++i) x[i] -= K[j * d + i] * value;
  }
  for (std::int64_t j = d - 1; j >= 0; --j) {
    const Own value = x[j] *= K[j * d + j];
    for (std::int64_t i = 0; i < j; ++i) x[i] -= K[j * d + i] * value;
  }
}
