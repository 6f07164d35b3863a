"""The rival that predicts motion, on the same runs; its scores are kept, as it is slow."""

from importlib.util import find_spec

import numpy as np

from benchmarks.robots.measures import Scored
from benchmarks.robots.recordings import CACHE, FloatArray, Recordings, Runs
from ocfuse.lab.paper.runner import PACKAGE, code_digest, data_digest, definition_key
from ocfuse.lab.rivals.motion_unet import MotionRun, MotionUNet
from ocfuse.vision.frames import decode_picture
from ocfuse.vision.trials import Trial

#: Columns that tell where the arm is; the others are speeds and forces. A robot without
#: such names has angles alone.
ARM = ("position_", "finger_")


def has_torch() -> bool:
    """Tell whether the rival can be learned here."""
    return find_spec("torch") is not None


def motion_scores(data: Recordings, n_steps: int) -> list[Scored]:
    """Return the scores of the prediction alone, and with the motion that the joints tell."""
    errors = [stored_errors(data, n_steps, part) for part in ("validation", "test")]
    found = [Scored("camera", "motion U-Net", *(-e[:, 0] for e in errors))]
    if data.train.joints is not None:
        found.append(Scored("both", "motion U-Net", *(-e.mean(axis=1) for e in errors)))
    return found


def stored_errors(data: Recordings, n_steps: int, part: str) -> FloatArray:
    """Return the errors of the frames of validation or test, from disk if they are there."""
    file = CACHE / f"motion-{motion_key(data, n_steps)}.npz"
    if not file.exists():
        model = MotionUNet(n_steps=n_steps, random_state=0)
        model.fit(motion_run(trial) for trial in data.train.trials)
        found = {name: errors_of(model, getattr(data, name)) for name in ("validation", "test")}
        file.parent.mkdir(parents=True, exist_ok=True)
        np.savez(file, **found)
    with np.load(file) as arrays:
        errors: FloatArray = arrays[part]
    return errors


def errors_of(model: MotionUNet, runs: Runs) -> FloatArray:
    return np.concatenate([model.errors(motion_run(trial)) for trial in runs.trials])


def motion_key(data: Recordings, n_steps: int) -> str:
    """Return a name that changes with the code, the runs and the training."""
    code = [PACKAGE / "bench/rivals/motion_unet.py", *(PACKAGE / "bench/rivals/motion").glob("*")]
    sources = [path for path in code if path.suffix == ".py"]
    runs = (data.train, data.validation, data.test)
    pictures = data_digest(*(part.pooled for part in runs))
    return definition_key(code_digest(sources), pictures, str(n_steps))


def motion_run(trial: Trial) -> MotionRun:
    """Return the pictures of a run, and where the arm was."""
    frames = np.stack([decode_picture(path.read_bytes()) for path in trial.frames])
    if trial.joints is None:
        return MotionRun(frames)
    arm = [j for j, name in enumerate(trial.joint_names) if name.startswith(ARM)]
    return MotionRun(frames, trial.joints[:, arm] if arm else trial.joints)
