// Rows as whole numbers times a power of two each.

void whole(const double* X, std::int64_t q, std::int64_t m, int bits, double* out, int* exponents,
           int threads) {
  in_pieces(q, kPiece, threads, [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const double* row = X + i * m;
      double largest = 0.0;
      for (std::int64_t j = 0; j < m; ++j) largest = std::max(largest, std::abs(row[j]));
      int power;
      std::frexp(largest, &power);
      exponents[i] = power - bits;
      const double unit = std::ldexp(1.0, bits - power);
      for (std::int64_t j = 0; j < m; ++j) out[i * m + j] = std::rint(row[j] * unit);
    }
  });
}
