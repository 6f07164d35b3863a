"""Lifted primal-dual interior point for lp-constrained hinge fusion.

The ball is lifted to ``|w_j| <= t_j^(1/p)``, ``sum_j t_j <= 1``, which has no
singular Hessian at w_j = 0 when p < 2 and no flat-then-steep wall when p is
large; p = 1 and p = inf are ordinary members of the family. With margins
``a_i.w = m_i`` and hinge values ``xi_i`` the central path of parameter mu is::

    a tau = mu,  (1 - a) xi = mu          tau = xi - (1 - m) > 0,  alpha = c a
    z+ s+ = mu om,  z- s- = mu om         s+- = t^(1/p) -+ w > 0
    y t = mu om/10,  lam sg = mu om       sg = 1 - sum(t) > 0
    A'(c a) = z+ - z-                     stationary in w
    lam = (z+ + z-) G + y                 stationary in t,  G = d t^(1/p) / dt

With ``w >= 0`` the slack s- is w itself and z- leaves the last line. Eliminating
everything but w leaves one d x d positive definite system per iteration. Arrays
carry the problems on their first axis: A is (m, k, d), the rest (m, k), (m, d)
or (m, 1).

The systems are factorised by a Cholesky of many small matrices at once. NumPy offers one that
raises if one matrix of the batch is indefinite to rounding, and no batched substitution. Here a
pivot that rounding made tiny is replaced by a huge one, which sets that component of the
solution to zero and leaves the other problems alone.
"""

from dataclasses import dataclass, fields
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ocfuse.arrays import FloatArray
from ocfuse.solvers.ball import LpBall
from ocfuse.solvers.solution import PRIMAL_FLOOR, BestPairs, Pair, Status


@dataclass
class Lifted:
    """The data of the lifted problems that no iteration changes."""

    A: FloatArray  # (m, k, d)
    c: FloatArray  # (m, k), sums to one
    ball: LpBall
    inverse_p: FloatArray  # (m, 1)
    signed: float  # 1.0, or 0.0 with w >= 0
    om: float  # barrier weight of the slacks of the ball

    @classmethod
    def of(cls, A: FloatArray, c: FloatArray, ball: LpBall) -> "Lifted":
        """Lift the problems."""
        inverse_p = 1.0 / np.asarray(ball.p, dtype=np.float64).reshape(-1, 1)
        return cls(A, c, ball, inverse_p, 0.0 if ball.nonneg else 1.0, 0.3 / A.shape[2])

    def take(self, rows: NDArray[np.intp]) -> "Lifted":
        """Return the chosen problems."""
        return Lifted.of(self.A[rows], self.c[rows], self.ball.take(rows))

    @property
    def weight(self) -> float:
        """Sum of all barrier weights: complementarity on the path is mu times this."""
        d = int(self.A.shape[2])
        return 2.0 + (2.0 * d + 0.1 * d + 1.0) * self.om

    def radius(self, t: FloatArray) -> FloatArray:
        """Return t^(1/p), the largest |w_j|."""
        return np.asarray(t**self.inverse_p)

    def margins(self, w: FloatArray) -> FloatArray:
        """Return A w."""
        return np.asarray((self.A @ w[:, :, np.newaxis])[:, :, 0])

    def total(self, x: FloatArray) -> FloatArray:
        """Return A' (c x)."""
        return np.asarray(((self.c * x)[:, np.newaxis, :] @ self.A)[:, 0, :])


@dataclass
class Iterate:
    """A point strictly inside; also a direction, with the same fields."""

    w: FloatArray
    t: FloatArray
    m: FloatArray
    xi: FloatArray
    tau: FloatArray
    s_plus: FloatArray
    s_minus: FloatArray
    sg: FloatArray
    a: FloatArray
    z_plus: FloatArray
    z_minus: FloatArray
    y: FloatArray
    lam: FloatArray

    @classmethod
    def start(cls, lifted: Lifted) -> "Iterate":
        """Return the cold start: the middle of the ball, mu = 1/2 or in scale with A'c."""
        m, _, d = lifted.A.shape
        # A total margin |A'c| beyond 10 starts further out, so that the residual in w and the
        # complementarity begin in proportion.
        pull = np.abs(lifted.total(np.ones(lifted.c.shape))).max(axis=1, keepdims=True)
        scale = np.maximum(1.0, pull / 10.0)
        om, mu = lifted.om, 0.5 * scale
        t = np.full((m, d), 0.9 / d)
        radius = lifted.radius(t)
        w = np.zeros((m, d)) if lifted.signed else 0.5 * radius
        s_plus, s_minus = radius - w, lifted.signed * radius + w
        sg = np.full((m, 1), 0.1)
        margins = lifted.margins(w)
        xi = np.maximum(1.0 - margins, 0.0) + scale
        return cls(
            w=w, t=t, m=margins, xi=xi, tau=xi - (1.0 - margins),
            s_plus=s_plus, s_minus=s_minus, sg=sg,
            a=np.full(lifted.c.shape, 0.5),
            z_plus=mu * om / s_plus, z_minus=mu * om / s_minus,
            y=0.1 * mu * om / t, lam=mu * om / sg,
        )  # fmt: skip

    def take(self, rows: NDArray[np.intp]) -> "Iterate":
        """Return the iterates of the chosen problems."""
        return Iterate(*(getattr(self, f.name)[rows] for f in fields(self)))

    def complementarity(self, c: FloatArray) -> FloatArray:
        """Return the sum of all products that the central path makes equal."""
        hinge = np.sum(c * (self.a * self.tau + (1.0 - self.a) * self.xi), axis=1)
        slack = self.z_plus * self.s_plus + self.z_minus * self.s_minus + self.y * self.t
        return np.asarray(hinge + slack.sum(axis=1) + (self.lam * self.sg)[:, 0])[:, np.newaxis]


class ComplementarityTargets(NamedTuple):
    """Targets of the linearised complementarity equations."""

    tau: FloatArray
    xi: FloatArray
    s_plus: FloatArray
    s_minus: FloatArray
    t: FloatArray
    sg: FloatArray


class NewtonSystem:
    """One linearisation of the path equations, factorised once, solved twice."""

    def __init__(self, lifted: Lifted, it: Iterate) -> None:
        self.lifted, self.it = lifted, it
        nu, q = lifted.signed, 1.0 - lifted.inverse_p
        self.G = lifted.inverse_p * lifted.radius(it.t) / it.t
        self.f_plus, self.f_minus = it.z_plus / it.s_plus, it.z_minus / it.s_minus
        self.b = self.G * (nu * self.f_minus - self.f_plus)
        bend = (it.z_plus + nu * it.z_minus) * q * self.G / it.t + it.y / it.t
        self.e = (self.f_plus + nu * self.f_minus) * self.G**2 + bend
        kappa = it.lam / it.sg
        self.kp = kappa / (1.0 + kappa * np.sum(1.0 / self.e, axis=1, keepdims=True))
        self.hinge = it.a * (1.0 - it.a) / (it.tau * (1.0 - it.a) + it.xi * it.a)
        self.L = factorise(self._matrix(bend))
        self.r_w = lifted.total(it.a) - it.z_plus + it.z_minus
        self.r_t = it.lam - (it.z_plus + nu * it.z_minus) * self.G - it.y

    def _matrix(self, bend: FloatArray) -> FloatArray:
        """Return K; its diagonal f+ + f- - b^2/e is written without cancellation."""
        A, f_plus, f_minus = self.lifted.A, self.f_plus, self.f_minus
        K = A.transpose(0, 2, 1) @ ((self.lifted.c * self.hinge)[:, :, np.newaxis] * A)
        both = (1.0 + 3.0 * self.lifted.signed) * f_plus * f_minus * self.G**2
        j = np.arange(K.shape[1])
        K[:, j, j] += (both + (f_plus + f_minus) * bend) / self.e
        u = self.b / self.e
        K += self.kp[:, :, np.newaxis] * u[:, :, np.newaxis] * u[:, np.newaxis, :]
        return np.asarray(K)

    def _lift(self, x: FloatArray) -> FloatArray:
        """Apply the inverse of diag(e) + kappa 1 1'."""
        x = x / self.e
        return np.asarray(x - self.kp * x.sum(axis=1, keepdims=True) / self.e)

    def direction(self, r: ComplementarityTargets) -> Iterate:
        """Return the Newton direction for the given complementarity targets."""
        it, nu, lifted = self.it, self.lifted.signed, self.lifted
        pull = self.hinge * (r.tau / it.a - r.xi / (1.0 - it.a))
        up, down = r.s_plus / it.s_plus, r.s_minus / it.s_minus
        R_w = self.r_w + lifted.total(pull) - up + down
        R_t = self.G * (up + nu * down) + r.t / it.t - r.sg / it.sg - self.r_t
        dw = substitute(self.L, R_w - self.b * self._lift(R_t))
        dt = self._lift(R_t - self.b * dw)
        dm = lifted.margins(dw)
        da = pull - self.hinge * dm
        dxi = (r.xi + it.xi * da) / (1.0 - it.a)
        ds_plus, ds_minus = self.G * dt - dw, nu * self.G * dt + dw
        dsg = -dt.sum(axis=1, keepdims=True)
        return Iterate(
            w=dw, t=dt, m=dm, xi=dxi, tau=dxi + dm, s_plus=ds_plus, s_minus=ds_minus, sg=dsg,
            a=da, z_plus=up - self.f_plus * ds_plus, z_minus=down - self.f_minus * ds_minus,
            y=(r.t - it.y * dt) / it.t, lam=(r.sg - it.lam * dsg) / it.sg,
        )  # fmt: skip


def predictor_targets(it: Iterate) -> ComplementarityTargets:
    """Aim at mu = 0."""
    return ComplementarityTargets(
        -it.a * it.tau, -(1.0 - it.a) * it.xi,
        -it.z_plus * it.s_plus, -it.z_minus * it.s_minus, -it.y * it.t, -it.lam * it.sg,
    )  # fmt: skip


def corrector_targets(
    lifted: Lifted, it: Iterate, aff: Iterate, mu: FloatArray, bend: FloatArray
) -> ComplementarityTargets:
    """Aim at mu, less the second-order terms of the predictor and of the radius."""
    r, om = predictor_targets(it), lifted.om
    return ComplementarityTargets(
        r.tau + mu - aff.a * aff.tau,
        r.xi + mu + aff.a * aff.xi,
        r.s_plus + mu * om - aff.z_plus * aff.s_plus - it.z_plus * bend,
        r.s_minus + mu * om - aff.z_minus * aff.s_minus - lifted.signed * it.z_minus * bend,
        r.t + 0.1 * mu * om - aff.y * aff.t,
        r.sg + mu * om - aff.lam * aff.sg,
    )


def longest_step(pairs: list[tuple[FloatArray, FloatArray]]) -> FloatArray:
    """Return the longest step in [0, 1] that keeps every x + step dx positive."""
    step = np.ones((pairs[0][0].shape[0], 1))
    for x, dx in pairs:
        ratio = np.divide(x, -dx, out=np.full(x.shape, np.inf), where=dx < 0)
        step = np.minimum(step, ratio.min(axis=1, keepdims=True))
    return step


def primal_pairs(it: Iterate, d: Iterate) -> list[tuple[FloatArray, FloatArray]]:
    """Return what a primal step must keep positive."""
    return [
        (it.tau, d.tau), (it.xi, d.xi), (it.s_plus, d.s_plus), (it.s_minus, d.s_minus),
        (it.t, d.t), (it.sg, d.sg),
    ]  # fmt: skip


def dual_pairs(it: Iterate, d: Iterate) -> list[tuple[FloatArray, FloatArray]]:
    """Return what a dual step must keep positive."""
    return [
        (it.a, d.a), (1.0 - it.a, -d.a), (it.z_plus, d.z_plus), (it.z_minus, d.z_minus),
        (it.y, d.y), (it.lam, d.lam),
    ]  # fmt: skip


def advance(
    lifted: Lifted, it: Iterate, d: Iterate, primal: FloatArray, dual: FloatArray
) -> Iterate:
    """Move; the slacks of the ball are exact at the new point, not linearised."""
    w, t = it.w + primal * d.w, it.t + primal * d.t
    radius = lifted.radius(t)
    return Iterate(
        w=w, t=t, m=lifted.margins(w), xi=it.xi + primal * d.xi, tau=it.tau + primal * d.tau,
        s_plus=radius - w, s_minus=lifted.signed * radius + w,
        sg=1.0 - t.sum(axis=1, keepdims=True),
        a=it.a + dual * d.a, z_plus=it.z_plus + dual * d.z_plus,
        z_minus=it.z_minus + dual * d.z_minus, y=it.y + dual * d.y, lam=it.lam + dual * d.lam,
    )  # fmt: skip


def keep_slack(lifted: Lifted, it: Iterate, d: Iterate, step: FloatArray) -> FloatArray:
    """Shorten a primal step until it leaves at least 0.001 of every curved slack."""
    for _ in range(40):
        w, radius = it.w + step * d.w, lifted.radius(it.t + step * d.t)
        left = np.minimum(
            (radius - w - 1e-3 * it.s_plus).min(axis=1, keepdims=True),
            (lifted.signed * radius + w - 1e-3 * it.s_minus).min(axis=1, keepdims=True),
        )
        if np.all(left > 0):
            break
        step = np.where(left > 0, step, 0.8 * step)
    return step


def iterate_once(lifted: Lifted, it: Iterate) -> tuple[Iterate, FloatArray]:
    """Take one predictor-corrector step; return the new point and its length."""
    newton = NewtonSystem(lifted, it)
    gap = it.complementarity(lifted.c)
    aff = newton.direction(predictor_targets(it))
    look = keep_slack(lifted, it, aff, 0.99 * longest_step(primal_pairs(it, aff)))
    trial = advance(lifted, it, aff, look, longest_step(dual_pairs(it, aff)))
    sigma = np.clip((trial.complementarity(lifted.c) / gap) ** 3, 1e-3, 1.0)
    # By how much a full predictor step bends the radius t^(1/p); a shorter look would measure
    # rounding errors.
    bent = lifted.radius(trial.t) - lifted.radius(it.t) - look * newton.G * aff.t
    bend = bent / np.maximum(look, 1e-3) ** 2
    targets = corrector_targets(lifted, it, aff, sigma * gap / lifted.weight, bend)
    d = newton.direction(targets)
    # One step may go 0.995 of the way to the boundary.
    primal = np.minimum(1.0, 0.995 * longest_step(primal_pairs(it, d)))
    dual = np.minimum(1.0, 0.995 * longest_step(dual_pairs(it, d)))
    primal = keep_slack(lifted, it, d, primal)
    return advance(lifted, it, d, primal, dual), np.maximum(primal, dual)[:, 0]


def best_pair(lifted: Lifted, it: Iterate) -> Pair:
    """Return the better of w and w on the sphere, with alpha, proved from scratch."""
    alpha = lifted.c * it.a
    length = lifted.ball.norm(it.w)[:, np.newaxis]
    sphere = it.w / np.where(length > 0, length, 1.0)
    inner = Pair.of(lifted.A, lifted.c, lifted.ball, it.w, alpha)
    outer = Pair.of(lifted.A, lifted.c, lifted.ball, sphere, alpha)
    return inner.improved_by(outer)


def interior_point(
    A: FloatArray, c: FloatArray, ball: LpBall, tol: float, max_iter: int
) -> BestPairs:
    """Solve a block of problems whose sample weights sum to one, or are zero."""
    lifted = Lifted.of(A, c, ball)
    it = Iterate.start(lifted)
    outcome = BestPairs.nothing(A, c, ball)
    active = np.arange(A.shape[0])
    for n_iter in range(1, max_iter + 1):
        with np.errstate(all="ignore"):  # a lost problem shows as NaN and is dropped
            it, length = iterate_once(lifted, it)
            gap = it.complementarity(lifted.c)[:, 0]
            primal = np.sum(lifted.c * np.maximum(0.0, 1.0 - it.m), axis=1)
        lost = ~np.isfinite(gap + primal)
        stuck = lost | (length < 1e-12)
        # A certificate is tried a little before the complementarity reaches the tolerance.
        close = gap <= 4.0 * tol * np.maximum(primal, PRIMAL_FLOOR)
        look = np.flatnonzero((close | stuck | (n_iter == max_iter)) & ~lost)
        if look.size:
            outcome.update(active[look], best_pair(lifted.take(look), it.take(look)), tol)
        over = stuck | (outcome.status[active] == Status.SOLVED)
        outcome.n_iter[active] = n_iter
        outcome.status[active[stuck & (outcome.status[active] != Status.SOLVED)]] = (
            Status.NUMERICAL_TROUBLE
        )
        if over.any():
            going = np.flatnonzero(~over)
            active, lifted, it = active[going], lifted.take(going), it.take(going)
        if not active.size:
            break
    return outcome


def factorise(K: FloatArray) -> FloatArray:
    """Return L with L L' = K, shape (m, d, d); the upper triangle is undefined."""
    L = K.copy()
    # Pivots below this share of the matrix's largest diagonal entry are noise.
    floor = 1e-30 * np.einsum("mii->mi", K).max(axis=1)
    for j in range(K.shape[1]):
        pivot = np.where(L[:, j, j] > floor, L[:, j, j], 1e128)
        L[:, j:, j] /= np.sqrt(pivot)[:, np.newaxis]
        L[:, j, j] = np.sqrt(pivot)
        below = L[:, j + 1 :, j]
        L[:, j + 1 :, j + 1 :] -= below[:, :, np.newaxis] * below[:, np.newaxis, :]
    return L


def substitute(L: FloatArray, r: FloatArray) -> FloatArray:
    """Return x with L L' x = r, shape (m, d)."""
    x = r.copy()
    d = r.shape[1]
    for j in range(d):
        x[:, j] /= L[:, j, j]
        x[:, j + 1 :] -= L[:, j + 1 :, j] * x[:, j : j + 1]
    for j in range(d - 1, -1, -1):
        x[:, j] /= L[:, j, j]
        x[:, :j] -= L[:, j, :j] * x[:, j : j + 1]
    return x
