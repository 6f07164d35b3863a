"""Part "watch": `ocfuse watch --video` end to end, wall clock and CPU time per frame."""

import json
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import av
import numpy as np

from benchmarks.pictures.speed import SIZE, scene
from benchmarks.report import Report, Table, Target

RATE = 30
PER_RUN = 100
#: Runs learned from, and whether their progress is known.
MODELS = ((12, True), (12, False), (34, True))
#: Frames that are watched: of a file, and of a stream that gives 30 per second.
FRAMES = 600
MAIN = "from ocfuse.cli import main; main()"
#: Container that can be read from front to back; packets of several frames would wait.
STREAM = "mpegts"


def run(quick: bool) -> Report:
    models, frames = (((4, True),), 60) if quick else (MODELS, FRAMES)
    rows, data, targets = [], {}, []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        video = write_run(folder / "watched.mp4", frames, seed=1000)
        stream = write_run(folder / "watched.ts", frames, seed=1000, kind=STREAM)
        for n_runs, has_progress in models:
            model = learn(folder, n_runs, 25 if quick else PER_RUN, has_progress)
            for what, told in (
                ("file", watch_file(model, video, has_progress)),
                ("30 frames/s", watch_stream(model, stream, frames, has_progress)),
            ):
                title = f"{n_runs} runs, {'with' if has_progress else 'without'} progress, {what}"
                rows.append([title, *columns(told)])
                data[title] = told
                print(rows[-1], flush=True)
                if what == "file":
                    rate = told["frames_per_second"]
                    targets.append(
                        Target(f">= {RATE} frames/s, {title}", f"{rate:.1f}", rate >= RATE)
                    )
    header = ["model and input", "frames/s", "CPU ms", "median ms", "p99 ms", "end after", "start"]
    return Report(
        "Watching a video",
        f"`ocfuse watch --video` in a process of its own: decoding, EfficientNet-Lite0 at {SIZE} x "
        f"{SIZE} (one thread), members, events and lines of JSON; {frames} frames of a made-up "
        "scene. 'CPU ms' is the processor time of the whole program per frame, 'median' and 'p99' "
        "the wall clock from taking a frame up to having told of it. A file is watched as fast as "
        "it goes; a stream is sent to stdin at 30 frames per second, and 'end after' is the "
        "time from its last frame to the end of the program; 'start' that from the start of "
        "the program to its first line.",
        targets,
        [Table("Per frame", header, rows)],
        data,
    )


def columns(told: dict[str, float]) -> list[str]:
    return [
        f"{told['frames_per_second']:.1f}",
        *(f"{told[name]:.1f}" for name in ("cpu_ms", "median_ms", "p99_ms")),
        *(f"{told[name]:.1f} s" if name in told else "" for name in ("end_after", "start")),
    ]


def learn(folder: Path, n_runs: int, n_frames: int, has_progress: bool) -> Path:
    runs = folder / f"runs{n_runs}{has_progress}"
    runs.mkdir()
    for i in range(n_runs):
        write_run(runs / f"run{i}.mp4", n_frames, seed=i)
        if has_progress:
            numbers = np.linspace(0, 1, n_frames)
            (runs / f"run{i}.progress").write_text("\n".join(map(str, numbers)))
    model = folder / f"{runs.name}.ocf"
    subprocess.run([*command("fit"), "--video", runs, "-o", model, "--quiet"], check=True)
    return model


def watch_file(model: Path, video: Path, has_progress: bool) -> dict[str, float]:
    flags = progress_flags(model.parent, has_progress)
    words = [*command("watch"), model, "--video", video, "--quiet", *flags]
    done = subprocess.run(words, check=True, capture_output=True, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def watch_stream(model: Path, video: Path, frames: int, has_progress: bool) -> dict[str, float]:
    """Send the file in as many pieces as it has frames, each when it is due."""
    flags = progress_flags(model.parent, has_progress)
    words = [*command("watch"), model, "--video", "-", "--all", "--quiet", *flags]
    begin = time.perf_counter()
    process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    lines, is_there = [], threading.Event()
    # in a thread of its own: a program that cannot write does not read either
    reader = threading.Thread(
        target=lambda: [(lines.append(x), is_there.set()) for x in process.stdout]
    )
    reader.start()
    content = video.read_bytes()
    cuts = np.linspace(0, len(content), frames + 1).astype(int)
    first = 20  # until its first line the program starts, and FFmpeg looks at what comes
    process.stdin.write(content[: cuts[first]])
    process.stdin.flush()
    is_there.wait(60)
    start = time.perf_counter()
    for i in range(first, frames):
        time.sleep(max(0.0, start + (i - first) / RATE - time.perf_counter()))
        process.stdin.write(content[cuts[i] : cuts[i + 1]])
        process.stdin.flush()
    last = time.perf_counter()
    process.stdin.close()
    reader.join()
    process.wait()
    told = json.loads(lines[-1])
    return told | {"end_after": time.perf_counter() - last, "start": start - begin}


def progress_flags(folder: Path, has_progress: bool) -> list[str]:
    if not has_progress:
        return []
    told = folder / "watched.progress"
    n = len(list(av_frames(folder / "watched.mp4")))
    told.write_text("\n".join(map(str, np.linspace(0, 1, n))))
    return ["--progress", str(told)]


def av_frames(path: Path):
    with av.open(str(path)) as container:
        yield from container.decode(video=0)


def command(name: str) -> list[str]:
    return [sys.executable, "-c", MAIN, name]


def write_run(path: Path, n: int, seed: int, kind: str | None = None) -> Path:
    """Write a run of the scene; every frame stands alone, as from many cameras."""
    rng = np.random.default_rng(seed)
    light = rng.normal(0, 5)
    with av.open(str(path), "w", format=kind) as container:
        stream = container.add_stream("mpeg4", rate=RATE)
        stream.width = stream.height = SIZE
        stream.pix_fmt = "yuv420p"
        stream.bit_rate = 2_000_000
        stream.codec_context.gop_size = 1
        for i in range(n):
            picture = scene(i / (n - 1), light, rng)
            frame = av.VideoFrame.from_ndarray(picture, format="rgb24")
            container.mux(stream.encode(frame))
        container.mux(stream.encode())
    return path
