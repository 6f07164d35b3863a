// The lifted primal-dual interior point of interior_point.py, same symbols.
//
// Two things differ from its NumPy twin, for speed only: m = A w and v = A'(c a)
// are carried along (and computed afresh before anything is called solved), and
// the complementarity of the trial point is summed up from its bilinear parts.

template <class L>
class InteriorPoint {
  typedef typename L::Each Each;
  typedef typename L::Own Own;

 public:
  explicit InteriorPoint(const Batch& batch)
      : slots(batch), d(slots.d), rows(slots.rows), om(0.3 / static_cast<double>(d)),
        weight(2.0 + (2.1 * static_cast<double>(d) + 1.0) * om), nu(batch.nonneg ? 0.0 : 1.0),
        m(rows), xi(rows), tau(rows), a(rows), rate(rows), per_box(rows), per_slack(rows),
        pull(rows), x(rows), goal(rows), dm(rows), da(rows), dxi(rows), alpha(rows),
        products(d * d), w(d), t(d), radius(d), s_plus(d), s_minus(d), per_t(d), per_plus(d),
        per_minus(d), z_plus(d), z_minus(d), y(d), G(d), f_plus(d), f_minus(d), b(d),
        inverse_e(d), r_w(d), r_t(d), v(d), u(d), dw(d), dt(d), trial(d), up(d), down(d),
        lift(d), dz_plus(d), dz_minus(d), K(d * d),
        best_w(d) {}

  Slots<L> slots;
  int n_iter[L::problems] = {};

  // The cold start of slot s: the middle of the ball, mu = 1/2 or in scale with A'c.
  OCFUSE_CALLED void load(int s, std::int64_t problem) {
    slots.load(s, problem);
    n_iter[s] = 0;
    double pulled = 0;
    for (std::int64_t j = 0; j < d; ++j)
      pulled = larger(pulled, std::fabs(lane(slots.reach[j], s)));
    const double scale = larger(1.0, pulled / kOrdinary), mu = 0.5 * scale;
    const double t0 = 0.9 / static_cast<double>(d);
    const double r0 = std::pow(t0, lane(slots.ball.inverse_p, s));
    const double w0 = nu > 0 ? 0.0 : 0.5 * r0;
    const double plus = r0 - w0, minus = nu * r0 + w0;
    for (std::int64_t j = 0; j < d; ++j) {
      set(w[j], s, w0);
      set(t[j], s, t0);
      set(radius[j], s, r0);
      set(s_plus[j], s, plus);
      set(s_minus[j], s, minus);
      set(z_plus[j], s, mu * om / plus);
      set(z_minus[j], s, mu * om / minus);
      set(y[j], s, 0.1 * mu * om / t0);
      set(v[j], s, 0.5 * lane(slots.reach[j], s));
    }
    set(sg, s, 0.1);
    set(lam, s, mu * om / 0.1);
    double value = 0, product = 0;
    for (std::int64_t i = 0; i < rows * (L::problems > 1 ? 1 : W); ++i) {
      const std::int64_t row = slots.row(i);
      const int at = slots.lane_of(i, s);
      double margin = 0;
      if (w0 != 0)
        for (std::int64_t j = 0; j < d; ++j) margin += lane(slots.A[row * d + j], at) * w0;
      const double loss = margin < 1 ? 1 - margin : 0.0, share = lane(slots.c[row], at);
      set(m[row], at, margin);
      set(xi[row], at, loss + scale);
      set(tau[row], at, loss + scale - (1 - margin));
      set(a[row], at, 0.5);
      value += share * loss;
      product += share * 0.5 * (2 * (loss + scale) - (1 - margin));
    }
    set(primal, s, value);
    set(hinge_gap, s, product);
    set(gap, s, product + mu * om * (2.1 * static_cast<double>(d) + 1.0));
    set(longest, s, 1.0);
  }

  // One predictor-corrector step of every slot.
  void step() {
    refresh();
    linearise();
    for (std::int64_t j = 0; j < d; ++j) {
      up[j] = -z_plus[j];
      down[j] = -z_minus[j];
      lift[j] = -y[j];
    }
    transposed<L>(slots.A, pull, rows, d, u);
    direction(-lam);
    predict();
    transposed<L>(slots.A, pull, rows, d, u);
    direction(push);
    advance();
    for (int s = 0; s < L::problems; ++s) ++n_iter[s];
  }

  // Finish every slot that is proved, lost, stuck or out of iterations.
  template <class Finish>
  void harvest(Finish finish) {
    const auto ready = gap <= allowed_gap(primal, slots.batch.tol) * kCertifyBelow;
    bool over[L::problems], any_over = false;
    for (int s = 0; s < L::problems; ++s) {
      over[s] = slots.problem[s] >= 0 && (lane(ready, s) || must_end(s));
      any_over |= over[s];
    }
    if (!any_over || !estimate(over)) return;
    confirm(over);
    for (int s = 0; s < L::problems; ++s) {
      if (!over[s]) continue;
      if (lost(s)) finish(s, Status::lost);
      else if (lane(proof.holds, s)) finish(s, Status::solved);
      else if (stuck(s)) finish(s, Status::numerical_trouble);
      else if (late(s)) finish(s, Status::max_iterations);
    }
  }

  Method method(int) const { return Method::interior_point; }
  double gap_of(int s) const { return relative_gap(lane(proof.primal, s), lane(proof.dual, s)); }
  void write(const Answer& answer, int s) const {
    slots.write(answer, s, best_w, alpha, proof.primal, proof.dual);
  }

 private:
  bool lost(int s) const {
    return !std::isfinite(lane(gap, s)) || !std::isfinite(lane(primal, s));
  }
  bool stuck(int s) const { return lane(longest, s) < kShortestStep; }
  bool late(int s) const { return n_iter[s] >= slots.batch.interior_point_limit; }
  bool must_end(int s) const { return lost(s) || stuck(s) || late(s); }

  // Slots that take long are hard: their m and v are computed, not carried.
  void refresh() {
    bool old[L::problems], any_old = false;
    for (int s = 0; s < L::problems; ++s) {
      old[s] = slots.problem[s] >= 0 && n_iter[s] >= kCarried;
      any_old |= old[s];
    }
    if (!any_old) return;
    for (std::int64_t i = 0; i < rows; ++i) alpha[i] = slots.c[i] * a[i];
    transposed<L>(slots.A, alpha, rows, d, u);
    renew(old);
  }

  // Take v from u, and m from w, for the chosen slots.
  OCFUSE_CALLED void renew(const bool* chosen) {
    const auto mask = slots.flags(chosen);
    margins<L>(slots.A, w, rows, d, dm);
    for (std::int64_t j = 0; j < d; ++j) v[j] = pick(mask, u[j], v[j]);
    for (std::int64_t i = 0; i < rows; ++i) m[i] = pick(mask, dm[i], m[i]);
  }

  // Everything that both directions share: the matrix K and its factor.
  void linearise() {
    for (std::int64_t i = 0; i < rows; ++i) {
      const Each rest = 1.0 - a[i], box = a[i] * rest, slack = tau[i] * xi[i];
      const Each inverse = 1.0 / (box * slack);
      per_box[i] = inverse * slack;
      per_slack[i] = inverse * box;
      rate[i] = box / (tau[i] * rest + xi[i] * a[i]);
      x[i] = slots.c[i] * rate[i];
      pull[i] = x[i] * (1.0 - m[i]);
    }
    gram<L>(slots.A, x, rows, d, products, K);
    const Own inverse_p = slots.ball.inverse_p;
    Own sum{};
    for (std::int64_t j = 0; j < d; ++j) {
      const Own z = z_plus[j] + nu * z_minus[j], both = 1.0 / (s_plus[j] * s_minus[j]);
      per_t[j] = 1.0 / t[j];
      per_plus[j] = s_minus[j] * both;
      per_minus[j] = s_plus[j] * both;
      G[j] = inverse_p * radius[j] * per_t[j];
      f_plus[j] = z_plus[j] * per_plus[j];
      f_minus[j] = z_minus[j] * per_minus[j];
      b[j] = G[j] * (nu * f_minus[j] - f_plus[j]);
      const Own bend = (z * (1.0 - inverse_p) * G[j] + y[j]) * per_t[j];
      inverse_e[j] = 1.0 / ((f_plus[j] + nu * f_minus[j]) * G[j] * G[j] + bend);
      K[j * d + j] += inverse_e[j] * ((1.0 + 3.0 * nu) * f_plus[j] * f_minus[j] * G[j] * G[j] +
                                      (f_plus[j] + f_minus[j]) * bend);
      r_w[j] = v[j] - z_plus[j] + z_minus[j];
      r_t[j] = lam - z * G[j] - y[j];
      sum += inverse_e[j];
    }
    const Own kappa = lam / sg;
    kp = kappa / (1.0 + kappa * sum);
    for (std::int64_t j = 0; j < d; ++j) trial[j] = b[j] * inverse_e[j];
    for (std::int64_t j = 0; j < d; ++j)
      for (std::int64_t l = 0; l <= j; ++l) K[j * d + l] += kp * trial[j] * trial[l];
    factorise(static_cast<Own*>(K), d);
  }

  // Solve for (dw, dt) and the dual part of the ball. The targets come divided
  // by their slack: up, down, lift by s+, s-, t, and `edge` by sg.
  OCFUSE_CALLED void direction(Own edge) {
    Own sum{};
    for (std::int64_t j = 0; j < d; ++j) {
      dt[j] = (G[j] * (up[j] + nu * down[j]) + lift[j] - edge - r_t[j]) * inverse_e[j];
      sum += dt[j];
    }
    for (std::int64_t j = 0; j < d; ++j)
      dw[j] = r_w[j] + u[j] - up[j] + down[j] - b[j] * (dt[j] - kp * sum * inverse_e[j]);
    substitute(static_cast<const Own*>(K), d, static_cast<Own*>(dw));
    sum = Own{};
    for (std::int64_t j = 0; j < d; ++j) {
      dt[j] -= b[j] * dw[j] * inverse_e[j];
      sum += dt[j];
    }
    dsg = Own{};
    for (std::int64_t j = 0; j < d; ++j) {
      dt[j] -= kp * sum * inverse_e[j];
      dsg -= dt[j];
      dz_plus[j] = up[j] - f_plus[j] * (G[j] * dt[j] - dw[j]);
      dz_minus[j] = down[j] - f_minus[j] * (nu * G[j] * dt[j] + dw[j]);
    }
    dlam = edge - lam * dsg / sg;
    margins<L>(slots.A, dw, rows, d, dm);
  }

  // Keep the fastest relative decrease of tau and xi, and of a and 1 - a.
  void watch(std::int64_t i, Each dtau, Each& fall, Each& rise) const {
    fall = larger(fall, larger(-dtau * xi[i], -dxi[i] * tau[i]) * per_slack[i]);
    rise = larger(rise, larger(-da[i] * (1.0 - a[i]), da[i] * a[i]) * per_box[i]);
  }

  // Fastest relative decrease of the ball's variables: primal, then dual.
  OCFUSE_CALLED void ball_speed(Own& primal_speed, Own& dual_speed) const {
    primal_speed = larger(primal_speed, -dsg / sg);
    dual_speed = larger(dual_speed, -dlam / lam);
    for (std::int64_t j = 0; j < d; ++j) {
      const Own ds_plus = G[j] * dt[j] - dw[j], ds_minus = nu * G[j] * dt[j] + dw[j];
      primal_speed = larger(primal_speed, -dt[j] * per_t[j]);
      primal_speed = larger(primal_speed, larger(-ds_plus * per_plus[j],
      -ds_minus * per_minus[j]));
      const Own dy = lift[j] - y[j] * dt[j] * per_t[j];
      dual_speed = larger(dual_speed, -dy / y[j]);
      dual_speed = larger(dual_speed, larger(-dz_plus[j] / z_plus[j], -dz_minus[j] / z_minus[j]));
    }
  }

  // Shorten a primal step until the curved slacks stay positive; leaves the
  // new radii in `trial`.
  OCFUSE_CALLED Own keep_slack(Own step) {
    for (int attempt = 0; attempt <= 40; ++attempt) {
      Own least = Own{} + 1.0;
      for (std::int64_t j = 0; j < d; ++j) {
        trial[j] = power(t[j] + step * dt[j], slots.ball.inverse_p);
        const Own at = w[j] + step * dw[j];
        const Own left = smaller(trial[j] - at - kSlackKept * s_plus[j],
                                 nu * trial[j] + at - kSlackKept * s_minus[j]);
        least = smaller(least, left);
      }
      if (attempt == 40 || !any(least <= 0.0)) break;
      step = pick(least <= 0.0, step * 0.8, step);
    }
    return step;
  }

  // From the predictor to the targets of the corrector.
  void predict() {
    Each fall{}, rise{}, by_dual{}, by_primal{}, by_both{};
    for (std::int64_t i = 0; i < rows; ++i) {
      const Each rest = 1.0 - a[i], c = slots.c[i];
      da[i] = rate[i] * (1.0 - m[i] - dm[i]);
      dxi[i] = xi[i] * (da[i] * a[i] * per_box[i] - 1.0);
      const Each dtau = dxi[i] + dm[i];
      watch(i, dtau, fall, rise);
      by_dual += c * da[i] * (tau[i] - xi[i]);
      by_primal += c * (a[i] * dtau + rest * dxi[i]);
      by_both += c * da[i] * (dtau - dxi[i]);
    }
    Own primal_speed = larger(L::most(fall), Own{} + 1.0), dual_speed = L::most(rise);
    dual_speed = larger(dual_speed, Own{} + 1.0);
    ball_speed(primal_speed, dual_speed);
    const Own primal_step = keep_slack(kLookAhead / primal_speed), dual_step = 1.0 / dual_speed;
    Own reached = (lam + dual_step * dlam) * (sg + primal_step * dsg);
    for (std::int64_t j = 0; j < d; ++j) {
      const Own at = w[j] + primal_step * dw[j], height = t[j] + primal_step * dt[j];
      const Own dy = lift[j] - y[j] * dt[j] * per_t[j];
      reached += (z_plus[j] + dual_step * dz_plus[j]) * (trial[j] - at) +
                 (z_minus[j] + dual_step * dz_minus[j]) * (nu * trial[j] + at) +
                 (y[j] + dual_step * dy) * height;
    }
    reached += hinge_gap + dual_step * L::sum(by_dual) + primal_step * L::sum(by_primal) +
               primal_step * dual_step * L::sum(by_both);
    const Own ratio = reached / gap;
    const Own sigma = larger(smaller(ratio * ratio * ratio, Own{} + 1.0), Own{} + 1e-3);
    const Own mu = sigma * gap / weight;
    correct(mu, primal_step);
  }

  // The targets of the corrector: mu, less the second-order terms of the
  // predictor and the curvature of the radius, measured at the trial point.
  void correct(Own mu, Own primal_step) {
    for (std::int64_t i = 0; i < rows; ++i) {
      const Each r_tau = mu - da[i] * (dxi[i] + dm[i]), r_xi = mu + da[i] * dxi[i];
      x[i] = rate[i] * (1.0 - m[i] + (r_tau * (1.0 - a[i]) - r_xi * a[i]) * per_box[i]);
      goal[i] = r_xi;
      pull[i] = slots.c[i] * x[i];
    }
    const Own reach = larger(primal_step, Own{} + kShortestLook), bent = 1.0 / (reach * reach);
    for (std::int64_t j = 0; j < d; ++j) {
      const Own curve = (trial[j] - radius[j] - primal_step * G[j] * dt[j]) * bent;
      const Own rise = G[j] * dt[j], dy = lift[j] - y[j] * dt[j] * per_t[j];
      const Own r_plus = mu * om - dz_plus[j] * (rise - dw[j]) - z_plus[j] * curve;
      const Own r_minus = mu * om - dz_minus[j] * (nu * rise + dw[j]) - nu * z_minus[j] * curve;
      up[j] = r_plus * per_plus[j] - z_plus[j];
      down[j] = r_minus * per_minus[j] - z_minus[j];
      lift[j] = (0.1 * mu * om - dy * dt[j]) * per_t[j] - y[j];
    }
    push = (mu * om - dlam * dsg) / sg - lam;
  }

  // Move along the corrector; the slacks of the ball are exact at the new point.
  void advance() {
    Each fall{}, rise{};
    for (std::int64_t i = 0; i < rows; ++i) {
      da[i] = x[i] - rate[i] * dm[i];
      dxi[i] = (goal[i] + xi[i] * da[i]) * a[i] * per_box[i] - xi[i];
      watch(i, dxi[i] + dm[i], fall, rise);
    }
    Own primal_speed = L::most(fall), dual_speed = L::most(rise);
    primal_speed = larger(primal_speed, Own{} + kToBoundary);
    dual_speed = larger(dual_speed, Own{} + kToBoundary);
    ball_speed(primal_speed, dual_speed);
    const Own primal_step = keep_slack(kToBoundary / primal_speed);
    const Own dual_step = kToBoundary / dual_speed;
    Each value{}, product{};
    const Each zero{};
    for (std::int64_t i = 0; i < rows; ++i) {
      m[i] += primal_step * dm[i];
      tau[i] += primal_step * (dxi[i] + dm[i]);
      xi[i] += primal_step * dxi[i];
      a[i] += dual_step * da[i];
      value += slots.c[i] * larger(zero, 1.0 - m[i]);
      product += slots.c[i] * (a[i] * tau[i] + (1.0 - a[i]) * xi[i]);
    }
    primal = L::sum(value);
    hinge_gap = L::sum(product);
    gap = hinge_gap;
    sg = Own{} + 1.0;
    for (std::int64_t j = 0; j < d; ++j) {
      // A'(c da) = dz+ - dz- - r_w, by the Newton equations
      v[j] += dual_step * (dz_plus[j] - dz_minus[j] - r_w[j]);
      y[j] += dual_step * (lift[j] - y[j] * dt[j] * per_t[j]);
      w[j] += primal_step * dw[j];
      t[j] += primal_step * dt[j];
      z_plus[j] += dual_step * dz_plus[j];
      z_minus[j] += dual_step * dz_minus[j];
      radius[j] = trial[j];
      s_plus[j] = radius[j] - w[j];
      s_minus[j] = nu * radius[j] + w[j];
      sg -= t[j];
      gap += z_plus[j] * s_plus[j] + z_minus[j] * s_minus[j] + y[j] * t[j];
    }
    lam += dual_step * dlam;
    gap += lam * sg;
    longest = larger(primal_step, dual_step);
  }

  // The gap by the carried m and v, at w or at w on the sphere. Of the slots in
  // `over` keeps those that seem proved or must end anyway; true if any is left.
  bool estimate(bool* over) {
    const Own size = slots.ball.length(w, d);
    const Own scale = pick(size > 0.0, 1.0 / size, Own{} + 1.0);
    const Own outer = hinge<L>(slots, m, scale), best = smaller(outer, primal);
    on_sphere = pick(outer < primal, scale, Own{} + 1.0);
    for (std::int64_t i = 0; i < rows; ++i) alpha[i] = slots.c[i] * a[i];
    const Own dual = sum_of<L>(alpha, rows) - slots.ball.dual_norm(v, d);
    const auto seems = best - dual <= allowed_gap(best, slots.batch.tol);
    bool any_over = false;
    for (int s = 0; s < L::problems; ++s) {
      over[s] = over[s] && (lane(seems, s) || must_end(s));
      any_over |= over[s];
    }
    return any_over;
  }

  // The same from the data alone; the carried m and v of these slots, and of no
  // others, are replaced.
  void confirm(const bool* over) {
    for (std::int64_t j = 0; j < d; ++j) best_w[j] = w[j] * on_sphere;
    const Own size = slots.ball.length(best_w, d);
    const Own inside = pick(size > 1.0, 1.0 / size, Own{} + 1.0);
    for (std::int64_t j = 0; j < d; ++j) best_w[j] *= inside;
    proof.check(slots, best_w, alpha, dm, u);
    renew(over);
  }

  // As in interior_point.py.
  static constexpr double kToBoundary = 0.995, kLookAhead = 0.99, kShortestLook = 1e-3,
                          kSlackKept = 1e-3, kCertifyBelow = 4.0, kOrdinary = 10.0,
                          kShortestStep = 1e-12;
  // Iterations after which m and v are no longer carried along.
  static constexpr int kCarried = 12;

  const std::int64_t d, rows;
  const double om, weight, nu;
  Array<Each> m, xi, tau, a, rate, per_box, per_slack, pull, x, goal, dm, da, dxi, alpha,
      products;
  Array<Own> w, t, radius, s_plus, s_minus, per_t, per_plus, per_minus, z_plus, z_minus, y, G,
      f_plus, f_minus, b, inverse_e, r_w, r_t, v, u, dw, dt, trial, up, down, lift, dz_plus,
      dz_minus, K, best_w;
  Own sg{}, lam{}, dsg{}, dlam{}, kp{}, push{}, primal{}, gap{}, hinge_gap{}, longest{};
  Own on_sphere{};
  Proof<L> proof;
};
