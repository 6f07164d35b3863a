"""A service for models: scores, explanations and streams over HTTP, and a live page."""

from ocfuse.serve.app import Service, create_app
from ocfuse.serve.keeping import Keep
from ocfuse.serve.settings import Limits, Settings

__all__ = ["Keep", "Limits", "Service", "Settings", "create_app"]
