"""FusedDetector against PyOD's ensembles of the same members."""
