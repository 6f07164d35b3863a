"""Learn how far members are to be trusted, from one-class tasks with known anomalies."""
