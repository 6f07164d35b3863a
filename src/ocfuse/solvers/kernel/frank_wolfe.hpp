// The two Frank-Wolfe methods of frank_wolfe.py, same symbols.

template <class L>
class FrankWolfe {
  typedef typename L::Each Each;
  typedef typename L::Own Own;

 public:
  FrankWolfe(const Batch& batch, Method method)
      : slots(batch), method_(method), d(slots.d), rows(slots.rows), m(rows), step_m(rows),
        newest(rows), average(rows), alpha(rows), w(d), v(d), average_v(d), vertex(d),
        best_w(d), proof_w(d) {}

  Slots<L> slots;
  int n_iter[L::problems] = {};

  // Start in the middle: w = 0, every hinge active.
  OCFUSE_CALLED void load(int s, std::int64_t problem) {
    slots.load(s, problem);
    n_iter[s] = 0;
    for (std::int64_t j = 0; j < d; ++j) {
      set(w[j], s, 0.0);
      set(best_w[j], s, 0.0);
      set(average_v[j], s, 0.0);
    }
    for (std::int64_t i = 0; i < slots.k; ++i) {
      const int at = slots.lane_of(i, s);
      set(m[slots.row(i)], at, 0.0);
      set(alpha[slots.row(i)], at, 0.0);
      set(average[slots.row(i)], at, 0.0);
    }
    set(age, s, 0.0);
    set(steps, s, 0.0);
    set(total, s, 0.0);
    set(primal, s, slots.total[s] > 0 ? 1.0 : 0.0);
    set(dual, s, 0.0);
    set(excess, s, 2.0);  // smooths by one at first: all of alpha = c
  }

  void step() {
    const Own sharpness = 1.0 / larger(Own{} + kSharpest, 0.5 * excess);
    gradient(sharpness);
    transposed<L>(slots.A, newest, rows, d, v);
    if (method_ == Method::paper)
      remember(sum_of<L>(newest, rows) - slots.ball.maximiser(v, d, vertex), newest);
    else
      steer();
    margins<L>(slots.A, vertex, rows, d, step_m);
    for (std::int64_t i = 0; i < rows; ++i) step_m[i] -= m[i];
    move(method_ == Method::paper ? 2.0 / (steps + 2.0) : line_search(sharpness));
    steps += 1.0;
    for (int s = 0; s < L::problems; ++s) ++n_iter[s];
  }

  // Finish every slot that is proved, lost, out of iterations or, when another
  // method stands by, not going to get there soon enough.
  template <class Finish>
  void harvest(Finish finish) {
    const Batch& batch = slots.batch;
    const Own allowed = allowed_gap(primal, batch.tol);
    const auto close = excess <= allowed;
    bool over[L::problems], any_over = false;
    for (int s = 0; s < L::problems; ++s) {
      over[s] = slots.problem[s] >= 0 &&
                (lane(close, s) || !std::isfinite(lane(excess, s)) ||
                 n_iter[s] >= batch.frank_wolfe_limit ||
                 (batch.method == Method::automatic &&
                  is_hopeless(s, lane(excess, s), lane(allowed, s))));
      any_over |= over[s];
    }
    if (!any_over) return;
    confirm();
    for (int s = 0; s < L::problems; ++s) {
      if (!over[s]) continue;
      if (lane(proof.holds, s)) finish(s, Status::solved);
      else if (!std::isfinite(lane(excess, s))) finish(s, Status::lost);
      else if (batch.method == Method::automatic) finish(s, Status::max_iterations);
      else if (lane(excess, s) <= kDrowned * lane(allowed, s)) finish(s, Status::numerical_trouble);
      else if (n_iter[s] >= batch.frank_wolfe_limit) finish(s, Status::max_iterations);
    }
  }

  // The first iteration of the automatic choice is the closed form.
  Method method(int s) const {
    const bool closed = slots.batch.method == Method::automatic && n_iter[s] == 1;
    return closed ? Method::automatic : method_;
  }
  double gap_of(int s) const { return relative_gap(lane(proof.primal, s), lane(proof.dual, s)); }
  void write(const Answer& answer, int s) const {
    slots.write(answer, s, proof_w, alpha, proof.primal, proof.dual);
  }

 private:
  // The gradient of the hinge smoothed over half of the gap, or a subgradient.
  void gradient(Own sharpness) {
    const Each zero{}, one = zero + 1.0;
    for (std::int64_t i = 0; i < rows; ++i) {
      const Each active = method_ == Method::paper
                              ? pick(m[i] < 1.0, one, zero)
                              : smaller(larger((1.0 - m[i]) * sharpness, zero), one);
      newest[i] = slots.c[i] * active;
    }
  }

  // Keep the best bound and the dual variables that prove it.
  OCFUSE_CALLED void remember(Own bound, const Each* proving) {
    const auto better = bound > dual;
    if (!any(better)) return;
    dual = pick(better, bound, dual);
    for (std::int64_t i = 0; i < rows; ++i) alpha[i] = pick(better, proving[i], alpha[i]);
  }

  // Follow the average with the newest gradient or, where that alone proves more
  // than ever, the newest.
  void steer() {
    const Own blend = 2.0 / (age + 2.0), sum = sum_of<L>(newest, rows);
    total += blend * (sum - total);
    for (std::int64_t j = 0; j < d; ++j) average_v[j] += blend * (v[j] - average_v[j]);
    const Own alone = sum - slots.ball.dual_norm(v, d);
    const Own together = total - slots.ball.dual_norm(average_v, d);
    const Own wanted = dual + kProgress * (primal - dual);
    const auto anew = (alone >= together) & (alone > wanted);
    for (std::int64_t i = 0; i < rows; ++i) {
      average[i] += blend * (newest[i] - average[i]);
      average[i] = pick(anew, newest[i], average[i]);
    }
    for (std::int64_t j = 0; j < d; ++j) average_v[j] = pick(anew, v[j], average_v[j]);
    total = pick(anew, sum, total);
    age = pick(anew, Own{} + 1.0, age + 1.0);
    remember(pick(anew, alone, together), average);
    slots.ball.maximiser(average_v, d, vertex);
  }

  // Slope and curvature of the smoothed hinge at m + step * step_m.
  OCFUSE_CALLED void probe(Own step, Own sharpness, Own& slope, Own& curvature) const {
    Each change{}, bend{};
    const Each zero{}, one = zero + 1.0;
    for (std::int64_t i = 0; i < rows; ++i) {
      const Each level = (1.0 - m[i] - step * step_m[i]) * sharpness;
      const Each push = slots.c[i] * step_m[i];
      change -= push * smaller(larger(level, zero), one);
      bend += pick((level > zero) & (level < one), push * step_m[i], zero);
    }
    slope = L::sum(change);
    curvature = L::sum(bend) * sharpness;
  }

  // The exact minimum over [0, 1] of the smoothed hinge, a convex function whose
  // slope is piecewise linear: Newton steps inside a shrinking bracket.
  Own line_search(Own sharpness) const {
    const Own one = Own{} + 1.0;
    Own low{}, high = one, step = one, slope, curvature;
    probe(high, sharpness, slope, curvature);
    auto open = slope > 0.0;
    Each first{};
    for (std::int64_t i = 0; i < rows; ++i) first += newest[i] * step_m[i];
    const Own flat = magnitude(L::sum(first)) * kLinePrecision;
    for (int attempt = 0; attempt < 40 && any(open); ++attempt) {
      const Own newton = step - slope / curvature, middle = 0.5 * (low + high);
      step = pick(open, pick((newton > low) & (newton < high), newton, middle), step);
      probe(step, sharpness, slope, curvature);
      low = pick(slope < 0.0, step, low);
      high = pick(slope < 0.0, high, step);
      open = open & (magnitude(slope) > flat) & (low < high);
    }
    return step;
  }

  void move(Own step) {
    Each sum{};
    const Each zero{};
    for (std::int64_t i = 0; i < rows; ++i) {
      m[i] += step * step_m[i];
      sum += slots.c[i] * larger(zero, 1.0 - m[i]);
    }
    for (std::int64_t j = 0; j < d; ++j) w[j] += step * (vertex[j] - w[j]);
    const Own value = L::sum(sum);
    const auto lower = value <= primal;
    primal = pick(lower, value, primal);
    for (std::int64_t j = 0; j < d; ++j) best_w[j] = pick(lower, w[j], best_w[j]);
    excess = primal - dual;
  }

  // See Forecast in method.py.
  bool is_hopeless(int s, double gap, double allowed) {
    const int n = n_iter[s];
    const double t = n, past = 1.0 / (t * t);
    if (n == 1) {
      reference[s] = gap;
      begin[s] = 1;
    }
    double needed = t * std::sqrt(gap / allowed);
    if (slots.batch.is_smooth && n > 1) {
      const double rate = std::log(reference[s] / gap) / (n - begin[s]);
      needed = std::fmin(needed, t + std::log(gap / allowed) / rate);
    }
    const double prior = lane(slots.ball.p, s) - 1.0;
    needed *= 1.0 + (slots.batch.is_smooth ? std::fmin(prior, kSmoothPrior) : prior) * past;
    const bool stands = gap > kStandstill * reference[s];
    if (n == 2 * begin[s]) {
      reference[s] = gap;
      begin[s] = n;
    }
    if (slots.batch.is_smooth && n < 3) return n == 2 && stands;
    const double limit = slots.batch.patience * (1.0 + 4.0 * past);
    return needed - t > limit || needed > 1.5 * limit;
  }

  // The gap from the data alone; where every slot stands is left as it is.
  void confirm() {
    const Own size = slots.ball.length(best_w, d);
    const Own inside = pick(size > 1.0, 1.0 / size, Own{} + 1.0);
    for (std::int64_t j = 0; j < d; ++j) proof_w[j] = best_w[j] * inside;
    proof.check(slots, proof_w, alpha, step_m, v);
  }

  // As in frank_wolfe.py and method.py.
  static constexpr double kSharpest = 1e-12, kLinePrecision = 1e-2, kDrowned = 0.5, kProgress = 0.1,
                          kSmoothPrior = 16.0, kStandstill = 0.8;

  const Method method_;
  const std::int64_t d, rows;
  Array<Each> m, step_m, newest, average, alpha;
  Array<Own> w, v, average_v, vertex, best_w, proof_w;
  Own steps{}, age{}, total{}, primal{}, dual{}, excess{};
  double reference[L::problems] = {};
  int begin[L::problems] = {};
  Proof<L> proof;
};
