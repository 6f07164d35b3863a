"""A service for models: scores, explanations and streams over HTTP, and a live page."""

from ocfuse.serve.app import Service, create_app
from ocfuse.serve.database import Retention
from ocfuse.serve.settings import Limits, Settings

__all__ = [
    "Limits",
    "Retention",
    "Service",
    "Settings",
    "create_app",
]
