"""A service for models: scores, explanations and streams over HTTP, and a live page."""
