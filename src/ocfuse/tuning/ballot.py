"""How much each comparison of the members counts."""

from dataclasses import dataclass, field

#: A comparison that should not count still breaks ties.
LEAST_VOTE = 1e-3
#: Known anomalies that count as much as all other comparisons together.
KNOWN_PRIOR = 10
#: Kinds of pseudo-negatives that share mean, covariance or box with the normals. With few
#: rows for the columns, members that estimate just these cannot tell them from normals.
FADING = ("gauss", "pcshuffle", "uniform")


@dataclass(frozen=True)
class Ballot:
    """Votes of the kinds of pseudo-negatives, and of rows seen against rows unseen.

    Parameters
    ----------
    kinds : dict
        Vote of every kind, by name, in the order of their numbers.
    seen : float
        Vote of the generalisation gap: a member that tells the rows it has seen
        from others draws a close line around them.
    """

    kinds: dict[str, float] = field(default_factory=dict)
    seen: float = 0.0

    def known(self, k: int) -> float:
        """Return the vote of k known anomalies: with ten as much as all others together."""
        others = sum(self.kinds.values()) + self.seen
        return k / KNOWN_PRIOR * (others or 1.0)


def ballot_for(labels: list[str], n_rows: int, n_columns: int) -> Ballot:
    """Return the votes for kinds of pseudo-negatives, by rows and columns.

    With r = 2 m / n and ``h = r^2 / (1 + r^2)``, from 0 (many rows) to 1 (many
    columns), kinds that fade vote 1 - h, the gap h, and the others 1.
    """
    r = 2.0 * n_columns / n_rows
    h = r * r / (1.0 + r * r)
    kinds = {}
    for number, label in enumerate(labels):
        name = label if label not in kinds else f"{label} {number}"
        kinds[name] = max(1.0 - h, LEAST_VOTE) if label in FADING else 1.0
    return Ballot(kinds, max(h, LEAST_VOTE))
