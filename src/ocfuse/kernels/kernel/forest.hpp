// Follow rows through complete trees.

constexpr std::int64_t kTrees = 8;

// Trees compare in single precision; values beyond its largest are taken as this.
inline float single(double x) {
  constexpr double most = std::numeric_limits<float>::max();
  return static_cast<float>(std::max(-most, std::min(most, x)));
}

// Some trees at once: their steps do not wait for each other.
template <int some>
inline void descend(const Forest& forest, std::int64_t tree, const float* x, double* lengths) {
  const std::int32_t* features = forest.features + tree * forest.width;
  const float* thresholds = forest.thresholds + tree * forest.width;
  std::int64_t node[some];
  for (int t = 0; t < some; ++t) node[t] = 1;
  for (std::int64_t level = 1; level < forest.width; level *= 2)
    for (int t = 0; t < some; ++t) {
      const std::int64_t at = t * forest.width + node[t];
      node[t] = 2 * node[t] + (x[features[at]] > thresholds[at]);
    }
  for (int t = 0; t < some; ++t)
    lengths[tree + t] = forest.lengths[(tree + t) * forest.width + node[t] - forest.width];
}

// Lengths (q, trees). Blocks of rows stay in the cache while the trees pass by.
void follow(const Forest& forest, const double* X, std::int64_t q, std::int64_t m,
            double* lengths, int threads) {
  in_pieces(q, kPiece, threads, [&](std::int64_t begin, std::int64_t end) {
    std::vector<float> rows(static_cast<std::size_t>((end - begin) * m));
    for (std::size_t j = 0; j < rows.size(); ++j)
      rows[j] = single(X[begin * m + static_cast<std::int64_t>(j)]);
    std::int64_t tree = 0;
    for (; tree + kTrees <= forest.trees; tree += kTrees)
      for (std::int64_t i = begin; i < end; ++i)
        descend<kTrees>(forest, tree, rows.data() + (i - begin) * m, lengths + i * forest.trees);
    for (; tree < forest.trees; ++tree)
      for (std::int64_t i = begin; i < end; ++i)
        descend<1>(forest, tree, rows.data() + (i - begin) * m, lengths + i * forest.trees);
  });
}
