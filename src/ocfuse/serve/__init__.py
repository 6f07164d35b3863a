"""A service for models: scores, explanations and streams over HTTP, and a live page.

It loads model files, checks requests, scores them in threads and stores events in SQLite. It
must not know how a model computes its scores, must not fit one, and imports no command.
"""

try:
    from ocfuse.serve.app import Service, create_app
    from ocfuse.serve.settings import Limits, Retention, Settings
except ModuleNotFoundError as error:
    from ocfuse.system.packages import needed

    needed(str(error.name), "by the service", "serve")
    raise

__all__ = [
    "Limits",
    "Retention",
    "Service",
    "Settings",
    "create_app",
]
