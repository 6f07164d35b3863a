// Squared distances and what a Gaussian kernel makes of them, one pass each. The arithmetic
// is plain, so that every build of the kernel gives the same bits.

constexpr std::int64_t kValues = 8192;  // that a thread takes at a time

// |x|^2 + |y|^2 - 2 x.y, given the last, with what rounding put below 0 at 0.
void complete(double* D, std::int64_t q, std::int64_t n, const double* columns, const double* rows,
              int threads) {
  in_pieces(q, std::max<std::int64_t>(1, kValues / n), threads,
            [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      double* line = D + i * n;
      const double row = rows[i];
      for (std::int64_t j = 0; j < n; ++j) line[j] = std::max((line[j] + columns[j]) + row, 0.0);
    }
  });
}

// exp(-t) for t >= 0: with -t = k log 2 + r, |r| <= log(2) / 2, a power of two times a
// polynomial in r whose rest is below 1e-17. Its error is about two units in the last place.
inline double decayed(double t) {
  // The exponential of a normal number; further down is next to nothing.
  constexpr double last = -708.0;
  constexpr double per_log = 1.4426950408889634, log_high = 0x1.62e42fefa38p-1,
                   log_low = 0x1.ef35793c7673p-45;
  constexpr double rounder = 0x1.8p52;  // added and taken off again it leaves a whole number
  const double x = std::max(-t, last);
  const double shifted = x * per_log + rounder;
  const double k = shifted - rounder;
  const double r = (x - k * log_high) - k * log_low;
  double sum = 1.0 / 6227020800.0;
  sum = sum * r + 1.0 / 479001600.0;
  sum = sum * r + 1.0 / 39916800.0;
  sum = sum * r + 1.0 / 3628800.0;
  sum = sum * r + 1.0 / 362880.0;
  sum = sum * r + 1.0 / 40320.0;
  sum = sum * r + 1.0 / 5040.0;
  sum = sum * r + 1.0 / 720.0;
  sum = sum * r + 1.0 / 120.0;
  sum = sum * r + 1.0 / 24.0;
  sum = sum * r + 1.0 / 6.0;
  sum = sum * r + 0.5;
  sum = sum * r + 1.0;
  sum = sum * r + 1.0;
  // The last bits of `shifted` are k, which goes to the exponent.
  std::uint64_t bits, power;
  std::memcpy(&bits, &shifted, sizeof bits);
  std::memcpy(&power, &sum, sizeof power);
  power += bits << 52;
  std::memcpy(&sum, &power, sizeof sum);
  return -t < last ? 0.0 : sum;
}

// exp(-rate D).
void decay(const double* D, std::int64_t size, double rate, double* out, int threads) {
  in_pieces(size, kValues, threads, [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) out[i] = decayed(D[i] * rate);
  });
}
