"""The first minute: what a new user waits for."""
