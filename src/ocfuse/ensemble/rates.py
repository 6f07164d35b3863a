"""What one operation and one byte of `ocfuse.ensemble.costs` cost, as measured.

Written by ``python -m benchmarks.scale.rates`` from what
``python -m benchmarks.scale plan`` measured on 2026-11-16, one thread of
AMD EPYC; do not edit.
"""

#: Seconds.
FIT = {
    "cell": 0,
    "directions": 2.95e-10,
    "factor": 0,
    "fusion": 2.58e-10,
    "fusion of many": 1.89e-10,
    "gaussian": 0,
    "gaussians": 5.99e-09,
    "landmark cube": 4.35e-10,
    "landmark distances": 0,
    "landmark products": 1.08e-11,
    "member": 0,
    "paths": 0.000156,
    "score": 3.49e-06,
    "search": 1.42e-11,
    "spectrum": 1.32e-10,
    "sphere": 5e-08,
    "square": 0,
    "start": 0.418,
    "tails": 0,
    "trees": 0.254,
    "tried": 2e-06,
    "view": 1.25e-07,
    "whitening": 5.08e-11,
}

#: Seconds.
SCORE = {
    "cell": 0,
    "cells": 0.000309,
    "fusion": 1.63e-10,
    "fusion of many": 2.04e-12,
    "gaussians": 1.13e-10,
    "kernel": 3.33e-11,
    "landmark distances": 2.45e-10,
    "landmark products": 4.29e-11,
    "member": 0,
    "neighbour": 0,
    "row": 2.22e-05,
    "search": 8.92e-11,
    "square": 5.83e-11,
    "tails": 1.41e-08,
    "trees": 2.1e-05,
    "view": 2.54e-09,
    "whitening": 1.7e-10,
}

#: Bytes.
PEAK = {
    "cell": 3.33,
    "column": 9.45,
    "kernel": 2.46,
    "landmark work": 10,
    "landmarks": 2.21,
    "neighbours": 6.28,
    "rows": 2.0,
    "score": 42.9,
    "search": 1.0,
    "sphere": 1.1,
    "splits": 4.0,
    "square": 1.52,
    "start": 1.87e07,
    "tails": 2.8,
    "trees": 9.67e06,
    "view": 1.64,
    "wide": 17.5,
    "work": 2.87,
}

#: Bytes.
MODEL = {
    "cell": 3.42,
    "column": 1.24,
    "kernel": 1.14,
    "landmarks": 1.08,
    "score": 4.14,
    "start": 0,
    "tails": 1.36,
    "trees": 8.14e05,
    "view": 0.699,
    "wide": 1.18,
}
