// Several doubles at a time, and the elementary functions on them.
//
// Included once per instruction set, inside that set's namespace. Everything is
// written for two layouts. In `Lanes` every lane of a vector is another problem.
// In `Rows` the lanes are rows of one problem, and what belongs to a column of
// the scores is a plain double. `Each` is the type of what belongs to a sample,
// `Own` of what belongs to a problem or a column.

#if defined(__GNUC__) || defined(__clang__)
constexpr int W = 4;
typedef double Vec __attribute__((vector_size(W * sizeof(double))));
typedef decltype(Vec{} < Vec{}) Mask;  // long long for one compiler, long for another
typedef std::uint64_t Bits __attribute__((vector_size(W * sizeof(double))));
#else  // no vector types: the layouts become one problem, one row at a time
constexpr int W = 1;
typedef double Vec;
typedef bool Mask;
#endif

inline double pick(bool mask, double a, double b) { return mask ? a : b; }
inline bool any(bool mask) { return mask; }
inline double lane(double x, int) { return x; }
inline bool lane(bool x, int) { return x; }
inline double total(double x) { return x; }
inline double largest(double x) { return x; }
inline double root(double x) { return std::sqrt(x); }
inline double magnitude(double x) { return std::fabs(x); }
inline double power(double x, double y) { return x <= 0 ? 0.0 : std::pow(x, y); }

#if defined(__GNUC__) || defined(__clang__)
inline Vec pick(Mask mask, Vec a, Vec b) { return mask ? a : b; }
inline Vec pick(bool mask, Vec a, Vec b) { return mask ? a : b; }
inline double lane(Vec x, int l) { return x[l]; }
inline bool lane(Mask x, int l) { return x[l] != 0; }
inline bool any(Mask mask) {
  std::int64_t found = 0;
  for (int l = 0; l < W; ++l) found |= mask[l];
  return found != 0;
}
inline double total(Vec x) {
  double sum = 0;
  for (int l = 0; l < W; ++l) sum += x[l];
  return sum;
}
inline double largest(Vec x) {
  double most = x[0];
  for (int l = 1; l < W; ++l) most = x[l] > most ? x[l] : most;
  return most;
}
inline Vec root(Vec x) {
  for (int l = 0; l < W; ++l) x[l] = std::sqrt(x[l]);
  return x;
}
inline Vec magnitude(Vec x) { return (Vec)((Mask)x & INT64_C(0x7fffffffffffffff)); }

// Adding this constant rounds a small double to an integer, found in its low bits.
constexpr double kRounder = 0x1.8p52;
constexpr std::uint64_t kRounderBits = UINT64_C(0x4338000000000000);

// log of a positive normal number: 2 atanh((m - 1) / (m + 1)) on the mantissa.
inline Vec logarithm(Vec x) {
  // The exponent for which the mantissa lies in [1/sqrt2, sqrt2).
  const Mask shifted = (Mask)((Bits)x - UINT64_C(0x3fe6a09e667f3bcd));
  const Mask exponent = shifted >> 52;
  const Vec m = (Vec)((Bits)x - ((Bits)exponent << 52));
  const Vec e = (Vec)((Bits)exponent + kRounderBits) - kRounder;
  const Vec s = (m - 1.0) / (m + 1.0), z = s * s;
  Vec series = z * (2.0 / 21) + 2.0 / 19;
  series = series * z + 2.0 / 17;
  series = series * z + 2.0 / 15;
  series = series * z + 2.0 / 13;
  series = series * z + 2.0 / 11;
  series = series * z + 2.0 / 9;
  series = series * z + 2.0 / 7;
  series = series * z + 2.0 / 5;
  series = series * z + 2.0 / 3;
  return e * 0.693147180369123816490e+00 +
         (s * 2.0 + (s * z * series + e * 1.90821492927058770002e-10));
}

// exp; 0 below the normal range, NaN stays NaN.
inline Vec exponential(Vec x) {
  const Vec bounded = pick(x < -708.0, Vec{} - 708.0, pick(x > 709.0, Vec{} + 709.0, x));
  const Vec rounded = bounded * 1.4426950408889634 + kRounder;
  const Vec n = rounded - kRounder;
  const Vec r = (bounded - n * 0.693147180369123816490e+00) - n * 1.90821492927058770002e-10;
  Vec series = r * (1.0 / 6227020800) + 1.0 / 479001600;
  series = series * r + 1.0 / 39916800;
  series = series * r + 1.0 / 3628800;
  series = series * r + 1.0 / 362880;
  series = series * r + 1.0 / 40320;
  series = series * r + 1.0 / 5040;
  series = series * r + 1.0 / 720;
  series = series * r + 1.0 / 120;
  series = series * r + 1.0 / 24;
  series = series * r + 1.0 / 6;
  series = series * r + 0.5;
  series = series * r + 1.0;
  series = series * r + 1.0;
  const Bits scale = (((Bits)rounded - kRounderBits) + 1023) << 52;
  return pick(x < -708.0, Vec{}, series * (Vec)scale);
}

// x^y for x >= 0 and y from 0 to infinity, with 0^y = 0; NaN stays NaN.
inline Vec power(Vec x, Vec y) {
  const Vec safe = pick(x > 1e-300, x, Vec{} + 1e-300);
  const Vec grown = exponential(pick(safe == 1.0, Vec{}, y * logarithm(safe)));
  return pick(x > 1e-300, grown, pick(x == x, Vec{}, x));
}
#endif

// Where one of the two is NaN, the second is returned.
template <class T>
inline T smaller(T a, T b) { return pick(a < b, a, b); }
template <class T>
inline T larger(T a, T b) { return pick(a > b, a, b); }

// Every lane another problem.
struct Lanes {
  typedef Vec Each;
  typedef Vec Own;
  typedef Mask Flag;
  static constexpr int problems = W;
  static std::int64_t rows(std::int64_t k) { return k; }
  static Own sum(Each x) { return x; }
  static Own most(Each x) { return x; }
};

// One problem, its rows in the lanes.
struct Rows {
  typedef Vec Each;
  typedef double Own;
  typedef bool Flag;
  static constexpr int problems = 1;
  static std::int64_t rows(std::int64_t k) { return (k + W - 1) / W; }
  static Own sum(Each x) { return total(x); }
  static Own most(Each x) { return largest(x); }
};
