"""Times of several tasks, measured in turn so that a busy machine hits all alike."""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median

Task = Callable[[], object]

#: A single measurement repeats a task until it lasts about this long.
SHORTEST_SECONDS = 2e-3
#: After this many rounds a task that has taken `ENOUGH_SECONDS` in all may rest.
FEWEST_ROUNDS = 3
ENOUGH_SECONDS = 1.0


@dataclass
class Stopwatch:
    """Seconds per call of one task, round by round."""

    task: Task
    clock: Callable[[], float]
    loops: int = 1
    seconds: list[float] = field(default_factory=list)

    def warm_up(self) -> None:
        """Run once for the caches, once to see how often a measurement must repeat."""
        self.task()
        took = self.measure()
        self.loops = max(1, math.ceil(SHORTEST_SECONDS / max(took, 1e-9)))

    def measure(self) -> float:
        begin = self.clock()
        for _ in range(self.loops):
            self.task()
        return (self.clock() - begin) / self.loops

    @property
    def has_enough(self) -> bool:
        spent = self.loops * sum(self.seconds)
        return len(self.seconds) >= FEWEST_ROUNDS and spent >= ENOUGH_SECONDS


def samples(
    tasks: Mapping[str, Task],
    rounds: int,
    clock: Callable[[], float] = time.process_time,
) -> dict[str, list[float]]:
    """Return the seconds of every call, task by task, interleaved."""
    watches = {name: Stopwatch(task, clock) for name, task in tasks.items()}
    for watch in watches.values():
        watch.warm_up()
    for _ in range(rounds):
        for watch in watches.values():
            if not watch.has_enough:
                watch.seconds.append(watch.measure())
    return {name: watch.seconds for name, watch in watches.items()}


def medians(
    tasks: Mapping[str, Task],
    rounds: int,
    clock: Callable[[], float] = time.process_time,
) -> dict[str, float]:
    """Return the median seconds of one call of every task."""
    return {name: median(taken) for name, taken in samples(tasks, rounds, clock).items()}


def geometric_mean(values: Sequence[float]) -> float:
    return math.exp(sum(math.log(value) for value in values) / len(values))
