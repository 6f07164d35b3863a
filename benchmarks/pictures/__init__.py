"""Benchmark of PictureDetector: tiles, ready-made features, speed."""
