"""Learn from verdicts when somebody on the page asks for that: a new file beside the old model.

The work is that of ``ocfuse fit --events``, in a process of its own with less right to the
processor than the service. Nothing that is served is replaced.
"""

import json
import os
import subprocess
import sys
import threading
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from fastapi import APIRouter
from starlette.responses import Response

from ocfuse.serve.dashboard import PRIVATE
from ocfuse.serve.errors import JSONAnswer, ServeError
from ocfuse.serve.schemas import LearningForm, LearningList, LearningOrder, refusals
from ocfuse.serve.settings import Settings
from ocfuse.serve.telemetry import log_event

#: How much less right to the processor than the service.
NICE = 10


@dataclass(frozen=True)
class LearningState:
    """What has become of learning from the verdicts on one model.

    Parameters
    ----------
    model : str
        Name of the model.
    state : {"running", "done", "failed"}
        What is so.
    who : str
        Who asked for it.
    since : float
        When that was, in seconds since 1970.
    text : str
        What has come out, in words.
    """

    model: str
    state: Literal["running", "done", "failed"]
    who: str
    since: float
    text: str = ""


class Learning:
    """Run ``ocfuse fit --events`` for a service, one model at a time.

    Parameters
    ----------
    settings : Settings
        Models, events and training data.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._lock = threading.Lock()
        self._found: dict[str, LearningState] = {}
        self._process: subprocess.Popen[str] | None = None

    def can_learn(self, model: str) -> bool:
        """Return whether the training data of a model are known, and events are in a file."""
        known = self._settings
        return model in known.training and model in known.models and known.events is not None

    def as_json(self) -> list[dict[str, Any]]:
        """Return what has become of each model."""
        with self._lock:
            return [asdict(one) for one in self._found.values()]

    def start(self, model: str, who: str) -> dict[str, Any]:
        """Begin to learn, or refuse to; return the state.

        Parameters
        ----------
        model : str
            Name of the model.
        who : str
            Who asks for it.

        Returns
        -------
        dict
            The state, as of `as_json`.
        """
        if not who.strip():
            raise ServeError(422, "bad_argument", "Who asks for it? Give a name as who.")
        if not self.can_learn(model):
            raise ServeError(
                404,
                "cannot_learn",
                f"The training data of a model {model!r} are not known here. Start the service "
                "with --events FILE and --learn-from NAME=DATA, or run what /v1/verdicts says.",
            )
        with self._lock:
            if self._process is not None:
                raise ServeError(
                    409, "is_learning", "A model is being learned already. Ask again when it is."
                )
            state = LearningState(model, "running", who.strip(), time.time())
            self._process = self._begin(model)
            self._found[model] = state
            name = f"learn {model}"
            threading.Thread(
                target=self._wait, args=(self._process, state), name=name, daemon=True
            ).start()
        log_event("learning_begin", model=model)
        return asdict(state)

    def close(self) -> None:
        """End what is being learned; nothing of it is written."""
        with self._lock:
            if self._process is not None:
                self._process.terminate()

    def files(self, model: str) -> tuple[Path, Path]:
        """Return the file of a model, and that of the new one."""
        path = self._settings.models[model]
        return path, path.with_name(f"{path.stem}-new{path.suffix}")

    def command(self, model: str) -> list[str]:
        """Return what is run."""
        old, new = self.files(model)
        words = ["fit", self._settings.training[model], "--events", self._settings.events]
        words += ["--model", old, "--out", new, "--served-as", model, "--force", "--json"]
        return [sys.executable, "-m", "ocfuse", *map(str, words)]

    def _begin(self, model: str) -> "subprocess.Popen[str]":
        process = subprocess.Popen(
            self.command(model),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        with suppress(OSError, AttributeError):
            os.setpriority(os.PRIO_PROCESS, process.pid, NICE)
        return process

    def _wait(self, process: "subprocess.Popen[str]", state: LearningState) -> None:
        out, err = process.communicate()
        try:
            text, outcome = self._in_words(state.model, json.loads(out)), "done"
        except (ValueError, KeyError):
            text, outcome = self._without_folders(state.model, err), "failed"
        done = LearningState(
            *(state.model, "done" if outcome == "done" else "failed", state.who, state.since, text)
        )
        with self._lock:
            self._found[state.model], self._process = done, None
        log_event(f"learning_{outcome}", model=state.model)

    def _in_words(self, model: str, told: dict[str, Any]) -> str:
        """Return what the new model does with events that it has not seen."""
        false, real = told["held_out"]["false_alarms"], told["held_out"]["real"]
        old, new = self.files(model)
        if false["events"] or real["events"]:
            words = (
                f"False alarms: {false['quiet_after']} of {false['events']} quiet, "
                f"before {false['quiet_before']}. Real events: {real['alarm_after']} of "
                f"{real['events']} alarm, before {real['alarm_before']}; each by a model that has "
                "not seen it."
            )
        else:
            words = "One verdict tells nothing of how others are judged: none was held out."
        return (
            f"{words} {new.name} is written, and {old.name} is served as before: try the new one "
            f"by --shadow {model}={new.name}."
        )

    def _without_folders(self, model: str, words: str) -> str:
        """Return the last words of a command, with names of files instead of their places."""
        known = self._settings
        for path in (*self.files(model), known.training[model], known.events):
            words = words.replace(str(path), "" if path is None else path.name)
        return " ".join(words.split())[-600:] or "The command was ended."


def learning_router(learning: Learning) -> APIRouter:
    """Return the routes that begin to learn from verdicts, and tell what has become of it."""
    router = APIRouter()

    @router.get(
        "/v1/learn",
        tags=["events"],
        summary="Tell what has been learned from verdicts",
        response_model=LearningList,
        responses=refusals(),
    )
    def list_learned() -> Response:
        """Return what has become of models that somebody asked for, since the start."""
        return JSONAnswer({"models": learning.as_json()}, headers=PRIVATE)

    @router.post(
        "/v1/learn",
        tags=["events"],
        summary="Learn from verdicts",
        response_model=LearningForm,
        responses=refusals(400, 403, 404, 409, 413, 415, 422),
    )
    def learn(said: LearningOrder) -> Response:
        """Begin to learn a new model from the old data and the verdicts; replace nothing."""
        return JSONAnswer(learning.start(said.model, said.who), headers=PRIVATE)

    return router
