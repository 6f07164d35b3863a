"""Streams of sensors: SKAB, the UCI robot failures, latency."""
