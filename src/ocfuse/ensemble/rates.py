"""What one operation and one byte of `ocfuse.ensemble.costs` cost.

Provisional: 20 sizes were measured on a busy machine, for 47 the plans of earlier rates stand in;
the bytes of "start" were set by hand.
``python -m benchmarks.scale plan`` and then ``python -m benchmarks.scale.rates``, on a quiet
machine, write this file anew, from measurements alone.
"""

#: Seconds.
FIT = {
    "cell": 0,
    "directions": 2.4e-10,
    "factor": 0,
    "fusion": 0,
    "fusion of many": 1.09e-10,
    "gaussian": 1.16e-09,
    "gaussians": 3.65e-09,
    "landmark cube": 7.72e-11,
    "landmark distances": 0,
    "landmark products": 1.2e-10,
    "member": 0,
    "paths": 9.58e-05,
    "score": 9.47e-06,
    "search": 4.44e-12,
    "spectrum": 1.04e-10,
    "sphere": 0,
    "square": 8.69e-11,
    "start": 0.359,
    "tails": 8.29e-10,
    "trees": 0.324,
    "tried": 6.64e-06,
    "view": 9.17e-08,
    "whitening": 4.13e-11,
}

#: Seconds.
SCORE = {
    "cell": 0,
    "cells": 0.000242,
    "fusion": 1.65e-10,
    "fusion of many": 1.8e-12,
    "gaussians": 2.68e-10,
    "kernel": 4.28e-11,
    "landmark distances": 1.88e-10,
    "landmark products": 7.83e-11,
    "member": 2.18e-06,
    "neighbour": 0,
    "row": 1.94e-05,
    "search": 7.7e-11,
    "square": 4.54e-11,
    "tails": 1.21e-08,
    "trees": 1.65e-05,
    "view": 0,
    "whitening": 1.48e-10,
}

#: Bytes.
PEAK = {
    "cell": 2.16,
    "column": 14.5,
    "kernel": 1.15,
    "landmark work": 2.65,
    "landmarks": 1.31,
    "neighbours": 4.29,
    "outside": 0.9,
    "rows": 3.05,
    "score": 53.2,
    "search": 0,
    "sphere": 0.908,
    "splits": 0.191,
    "square": 1.35,
    "start": 2.67e07,
    "tails": 2.56,
    "trees": 8.71e06,
    "view": 1.74,
    "wide": 10.4,
    "work": 5.71,
}

#: Bytes.
MODEL = {
    "cell": 3.39,
    "column": 1.3,
    "kernel": 1.14,
    "landmarks": 2.58,
    "score": 4.82,
    "start": 0,
    "tails": 1.37,
    "trees": 9.23e05,
    "view": 0.699,
    "wide": 8.15,
}
