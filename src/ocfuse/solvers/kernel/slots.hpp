// The problems under way: a slot per problem, its margins gathered and its
// sample weights scaled to sum to one.

inline void set(double& x, int, double value) { x = value; }
#if defined(__GNUC__) || defined(__clang__)
inline void set(Vec& x, int slot, double value) { x[slot] = value; }
#endif

OCFUSE_CALLED inline void* zeros(std::int64_t size, std::size_t each) {
  const std::size_t bytes = static_cast<std::size_t>(size > 0 ? size : 1) * each;
  return std::memset(::operator new(bytes, std::align_val_t(64)), 0, bytes);
}
OCFUSE_CALLED inline void give_back(void* data) { ::operator delete(data, std::align_val_t(64)); }

// Memory for vectors, zero at first, released with the owner.
template <class T>
class Array {
 public:
  explicit Array(std::int64_t size) : data_(static_cast<T*>(zeros(size, sizeof(T)))) {}
  ~Array() { give_back(data_); }
  Array(const Array&) = delete;
  Array& operator=(const Array&) = delete;
  operator T*() { return data_; }
  operator const T*() const { return data_; }

 private:
  T* data_;
};

// A sample that cannot change the value by this share is left out; see batched.py.
constexpr double kNegligible = 1e-30;

template <class L>
struct Slots {
  typedef typename L::Each Each;
  typedef typename L::Own Own;

  const Batch& batch;
  const std::int64_t k, d, rows;
  Array<Each> A, c;
  Array<Own> reach;  // A' c
  Ball<Own> ball;
  std::int64_t problem[L::problems];  // -1: idle
  double total[L::problems];

  explicit Slots(const Batch& b)
      : batch(b), k(b.k), d(b.d), rows(L::rows(b.k)), A(rows * d), c(rows), reach(d) {
    ball.nonneg = b.nonneg;
    ball.p = ball.q = Own{} + 2.0;
    ball.inverse_p = ball.inverse_q = Own{} + 0.5;
    for (int s = 0; s < L::problems; ++s) {
      problem[s] = -1;
      total[s] = 1.0;
    }
  }

  // The row and the lane that hold sample i of slot s.
  std::int64_t row(std::int64_t i) const { return L::problems > 1 ? i : i / W; }
  int lane_of(std::int64_t i, int s) const {
    return L::problems > 1 ? s : static_cast<int>(i % W);
  }

  OCFUSE_CALLED void load(int s, std::int64_t l) {
    const std::int64_t* index = batch.index + l * k;
    const double* weight = batch.c + l * k;
    double sum = 0;
    for (std::int64_t i = 0; i < k; ++i) sum += weight[i];
    problem[s] = l;
    total[s] = sum;
    for (std::int64_t j = 0; j < d; ++j) set(reach[j], s, 0.0);
    for (std::int64_t i = 0; i < k; ++i) {
      const std::int64_t at_row = index[i];  // read once: another thread may write it
      if (at_row < 0 || at_row >= batch.n) throw std::out_of_range("index points outside A");
      const double* a = batch.A + at_row * d;
      const double weighed = sum > 0 ? weight[i] / sum : 0.0;
      double size = 1.0;
      for (std::int64_t j = 0; j < d; ++j) size += std::fabs(a[j]);
      const bool counts = !(weighed * size < kNegligible);
      const double share = counts ? weighed : 0.0;
      Each* target = A + row(i) * d;
      const int at = lane_of(i, s);
      set(c[row(i)], at, share);
      for (std::int64_t j = 0; j < d; ++j) {
        const double value = counts ? a[j] : 0.0;
        set(target[j], at, value);
        set(reach[j], s, lane(reach[j], s) + share * value);
      }
    }
    const double p = batch.p[l], inverse_p = 1.0 / p;
    set(ball.p, s, p);
    set(ball.inverse_p, s, inverse_p);
    set(ball.q, s, 1.0 / (1.0 - inverse_p));
    set(ball.inverse_q, s, 1.0 - inverse_p);
  }

  // The slots named in `chosen`, as a mask.
  typename L::Flag flags(const bool* chosen) const {
    Own mark{};
    for (int s = 0; s < L::problems; ++s) set(mark, s, chosen[s] ? 1.0 : 0.0);
    return mark > 0.5;
  }

  bool busy() const {
    for (int s = 0; s < L::problems; ++s)
      if (problem[s] >= 0) return true;
    return false;
  }

  // Write the answer of slot s, in the units of the user's weights.
  OCFUSE_CALLED void write(const Answer& answer, int s, const Own* w, const Each* alpha, Own primal,
             Own dual) const {
    const std::int64_t l = problem[s];
    const double scale = total[s];
    for (std::int64_t j = 0; j < d; ++j) answer.w[l * d + j] = lane(w[j], s);
    for (std::int64_t i = 0; i < k; ++i) {
      const double value = lane(alpha[row(i)], lane_of(i, s)) * scale;
      const double c = batch.c[l * k + i];
      answer.alpha[l * k + i] = value < c ? value : c;
    }
    answer.primal[l] = lane(primal, s) * scale;
    answer.dual[l] = lane(dual, s) * scale;
  }
};

// The gap relative to P or its floor, in units of sum(c) = 1.
constexpr double kPrimalFloor = 1e-3;
inline double relative_gap(double primal, double dual) {
  return (primal - dual) / (primal > kPrimalFloor ? primal : kPrimalFloor);
}

template <class Own>
inline Own allowed_gap(Own primal, double tol) {
  return larger(primal, Own{} + kPrimalFloor) * tol;
}

// Weighted hinge at the margins m times `scale`; NaN stays NaN.
template <class L>
OCFUSE_CALLED typename L::Own hinge(const Slots<L>& slots, const typename L::Each* m, typename L::Own scale) {
  typename L::Each sum{};
  const typename L::Each zero{};
  for (std::int64_t i = 0; i < slots.rows; ++i)
    sum += slots.c[i] * larger(zero, 1.0 - m[i] * scale);
  return L::sum(sum);
}

template <class L>
typename L::Own sum_of(const typename L::Each* x, std::int64_t rows) {
  typename L::Each sum{};
  for (std::int64_t i = 0; i < rows; ++i) sum += x[i];
  return L::sum(sum);
}

// P and D of a pair, from the data alone, and whether they prove it. What
// rounding may have done to P - D (solution.py says how much) counts as gap.
template <class L>
struct Proof {
  typename L::Own primal{}, dual{};
  typename L::Flag holds{};

  OCFUSE_CALLED void check(const Slots<L>& slots, const typename L::Own* w, const typename L::Each* alpha,
             typename L::Each* m, typename L::Own* v) {
    typedef typename L::Each Each;
    typedef typename L::Own Own;
    margins<L>(slots.A, w, slots.rows, slots.d, m);
    transposed<L>(slots.A, alpha, slots.rows, slots.d, v);
    primal = hinge<L>(slots, m, Own{} + 1.0);
    dual = sum_of<L>(alpha, slots.rows) - slots.ball.dual_norm(v, slots.d);
    Each mass{};
    const Each zero{};
    for (std::int64_t i = 0; i < slots.rows; ++i) {
      const Each size = 1.0 + absolute_margin<L>(slots.A + i * slots.d, w, slots.d);
      mass += pick(1.0 - m[i] > size * -kRounding, slots.c[i] * size, zero);
    }
    const Own rounding =
        kRounding * (L::sum(mass) + absolute_reach<L>(slots.A, alpha, slots.rows, slots.d));
    const Own excess = primal - dual;
    holds = (excess + rounding <= allowed_gap(primal, slots.batch.tol)) & (excess >= -rounding);
  }

  // Twice what was ever measured.
  static constexpr double kRounding = 4.0 * std::numeric_limits<double>::epsilon();
};
