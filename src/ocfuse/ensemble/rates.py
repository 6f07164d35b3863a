"""What one operation and one byte of `ocfuse.ensemble.costs` cost, as measured.

Written by ``python -m benchmarks.scale.rates`` from what
``python -m benchmarks.scale plan`` measured on 2026-11-17, one thread of
AMD EPYC; do not edit.
"""

#: Seconds.
FIT = {
    "cell": 4.07e-07,
    "directions": 1.28e-10,
    "factor": 3.54e-11,
    "fusion": 1.49e-09,
    "fusion of many": 0,
    "gaussian": 0,
    "gaussians": 1.63e-09,
    "landmark cube": 3.53e-10,
    "landmark distances": 0,
    "landmark products": 8.07e-11,
    "member": 0.00193,
    "paths": 0,
    "score": 6.22e-06,
    "search": 6.8e-12,
    "spectrum": 1.23e-10,
    "sphere": 6.47e-09,
    "square": 2.78e-10,
    "start": 0.282,
    "tails": 6.88e-09,
    "trees": 0.142,
    "tried": 3.1e-06,
    "view": 1.39e-07,
    "whitening": 3.54e-11,
}

#: Seconds.
SCORE = {
    "cell": 0,
    "cells": 0.000219,
    "fusion": 2.47e-10,
    "fusion of many": 2.65e-11,
    "gaussians": 0,
    "kernel": 4.67e-11,
    "landmark distances": 1.08e-11,
    "landmark products": 4.59e-11,
    "member": 8.73e-07,
    "neighbour": 3.25e-08,
    "row": 1.63e-05,
    "search": 4.97e-11,
    "square": 9.73e-11,
    "tails": 7.67e-09,
    "trees": 0,
    "view": 0,
    "whitening": 2.31e-10,
}

#: Bytes.
PEAK = {
    "cell": 1.6,
    "column": 10.4,
    "factor": 1.27,
    "kernel": 1.67,
    "landmark work": 1.43,
    "landmarks": 3.3,
    "neighbours": 25,
    "outside": 0.816,
    "rows": 0.938,
    "score": 28.9,
    "search": 0,
    "spectrum": 4.04,
    "sphere": 0.871,
    "splits": 0.75,
    "square": 1.01,
    "start": 2.31e07,
    "tails": 1.53,
    "trees": 6.29e06,
    "view": 0,
    "wide": 5.28,
}

#: Bytes.
MODEL = {
    "cell": 2.01,
    "column": 2.04,
    "kernel": 1.19,
    "landmarks": 1.2,
    "score": 4.23,
    "start": 0,
    "tails": 1.93,
    "trees": 5.47e05,
    "view": 0.705,
    "wide": 0.501,
}
