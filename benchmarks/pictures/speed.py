"""Part "speed": frames per second from a video file to scores, one thread."""

import resource
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import av
import numpy as np
from numpy.typing import NDArray

from benchmarks.report import Report, Table, Target
from ocfuse.vision import Lite0, PictureDetector, open_frames

SIZE = 128
LEAST = 150.0
#: Frames of the video.
FRAMES = 512
#: Training frames: a folder of pictures, and a robot cell with the progress of the task.
RUNS, PER_RUN = {"pictures": 30, "robot": 40}, {"pictures": 20, "robot": 100}
ROUNDS = 3


def run(quick: bool) -> Report:
    rows, data, fastest = [], {}, {}
    with tempfile.TemporaryDirectory() as folder:
        video = write_video(Path(folder) / "run.mp4", 64 if quick else FRAMES)
        for task in ["pictures"] if quick else RUNS:
            seconds, fit = measure(task, video, 1 if quick else ROUNDS)
            n = seconds.pop("n")
            rates = {stage: n / taken for stage, taken in seconds.items()}
            fastest[task] = rates["all"]
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
            rows.append(
                [
                    f"{RUNS[task] * PER_RUN[task]:,}",
                    "yes" if task == "robot" else "no",
                    *(f"{rates[stage]:,.0f}" for stage in ("decode", "backbone", "score", "all")),
                    f"{fit:.0f} s",
                    f"{peak:.1f} GB",
                ]
            )
            data[task] = {"seconds": seconds, "frames": n, "fit": fit, "peak GB": peak}
            print(rows[-1], flush=True)
    header = [
        "training frames",
        "context",
        "decode",
        "backbone",
        "score",
        "all",
        "fit, CPU",
        "peak",
    ]
    return Report(
        "Frames per CPU second",
        f"A video (MPEG-4, {SIZE} x {SIZE}, {FRAMES} frames of a made-up scene) is decoded, goes "
        "through EfficientNet-Lite0 and is scored by the default PictureDetector; one thread, "
        f"CPU time, the best of {ROUNDS} rounds. 'all' is `score_samples(video)`. Peak memory is "
        "that of the process so far.",
        [
            Target(f">= {LEAST:g} frames per CPU second, {task}", f"{rate:.0f}", rate >= LEAST)
            for task, rate in fastest.items()
        ],
        [Table("Frames per CPU second by stage", header, rows)],
        data,
    )


def measure(task: str, video: Path, rounds: int) -> tuple[dict[str, float], float]:
    frames, groups, progress = training(RUNS[task], PER_RUN[task])
    context = progress if task == "robot" else None
    begin = time.process_time()
    detector = PictureDetector(random_state=0).fit(frames, groups=groups, context=context)
    fit = time.process_time() - begin
    pictures = [frame.image for frame in open_frames(video)]
    n = len(pictures)
    at = None if context is None else np.linspace(0, 1, n)
    features = Lite0().extract(pictures)
    stages: dict[str, Callable[[], object]] = {
        "decode": lambda: [None for _ in open_frames(video)],
        "backbone": lambda: Lite0().extract(pictures),
        "score": lambda: detector.score_samples(features, at),
        "all": lambda: detector.score_samples(video, at),
    }
    best = dict.fromkeys(stages, np.inf)
    for _ in range(rounds):
        for stage, work in stages.items():
            begin = time.process_time()
            work()
            best[stage] = min(best[stage], time.process_time() - begin)
    return best | {"n": n}, fit


def training(n_runs: int, n_frames: int) -> tuple[NDArray[np.uint8], NDArray, NDArray]:
    rng = np.random.default_rng(0)
    progress = np.tile(np.linspace(0, 1, n_frames), n_runs)
    light = np.repeat(rng.normal(0, 5, n_runs), n_frames)
    frames = np.stack([scene(p, b, rng) for p, b in zip(progress, light, strict=True)])
    return frames, np.repeat(np.arange(n_runs), n_frames), progress


def scene(progress: float, light: float, rng: np.random.Generator) -> NDArray[np.uint8]:
    """Draw an arm that crosses the picture."""
    picture = np.full((SIZE, SIZE, 3), 110.0 + light)
    picture[SIZE // 2 :] -= 40
    x = int(10 + progress * (SIZE - 40))
    picture[: SIZE // 2 + 10, x : x + 8] = (200, 120, 60)
    picture[SIZE // 2 + 10 : SIZE // 2 + 24, x - 6 : x + 14] = (60, 80, 200)
    return np.clip(picture + rng.normal(0, 3, picture.shape), 0, 255).astype(np.uint8)


def write_video(path: Path, n: int) -> Path:
    rng = np.random.default_rng(1)
    with av.open(str(path), "w") as container:
        stream = container.add_stream("mpeg4", rate=30)
        stream.width = stream.height = SIZE
        stream.pix_fmt = "yuv420p"
        stream.bit_rate = 2_000_000
        for i in range(n):
            frame = av.VideoFrame.from_ndarray(scene(i / n, 0.0, rng), format="rgb24")
            container.mux(stream.encode(frame))
        container.mux(stream.encode())
    return path
