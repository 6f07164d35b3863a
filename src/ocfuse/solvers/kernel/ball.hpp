// The lp ball of every slot; see ball.py. Powers are taken of entries divided by
// the largest, so that q = 10,000 neither overflows nor loses the answer.

template <class Own>
OCFUSE_CALLED Own norm(const Own* x, std::int64_t d, Own p, Own inverse_p, bool positive_part = false) {
  Own most{};
  for (std::int64_t j = 0; j < d; ++j)
    most = larger(most, positive_part ? x[j] : magnitude(x[j]));
  const Own unit = pick(most > 0.0, most, Own{} + 1.0);
  Own sum{};
  for (std::int64_t j = 0; j < d; ++j)
    sum += power((positive_part ? larger(Own{}, x[j]) : magnitude(x[j])) / unit, p);
  return pick(sum == sum, pick(most > 0.0, most * power(sum, inverse_p), Own{}), sum);
}

template <class Own>
struct Ball {
  Own p, inverse_p, q, inverse_q;
  bool nonneg = false;

  Own length(const Own* w, std::int64_t d) const { return norm(w, d, p, inverse_p); }
  Own dual_norm(const Own* v, std::int64_t d) const {
    return norm(v, d, q, inverse_q, nonneg);
  }
  // w in the ball with v.w largest, sign(v) |v|^(q-1) scaled to unit length;
  // returns that largest value, the dual norm of v.
  OCFUSE_CALLED Own maximiser(const Own* v, std::int64_t d, Own* w) const {
    Own most{}, sum{};
    for (std::int64_t j = 0; j < d; ++j) most = larger(most, nonneg ? v[j] : magnitude(v[j]));
    const Own unit = pick(most > 0.0, most, Own{} + 1.0);
    for (std::int64_t j = 0; j < d; ++j) {
      const Own share = (nonneg ? larger(Own{}, v[j]) : magnitude(v[j])) / unit;
      const Own grown = power(share, q - 1.0);
      sum += grown * share;
      w[j] = pick(v[j] > 0.0, grown, -grown);
    }
    const Own length = power(sum, inverse_p);  // p (q - 1) = q
    const Own scale = pick(sum > 0.0, 1.0 / length, Own{});
    for (std::int64_t j = 0; j < d; ++j) w[j] *= scale;
    return pick(sum == sum, pick(sum > 0.0, most * power(sum, inverse_q), Own{}), sum);
  }
};
