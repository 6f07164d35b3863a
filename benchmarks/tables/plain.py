"""The plain way: all rows in memory, then their scores. Arguments: model, table, scores."""

import sys

import pandas as pd

from ocfuse import load

if __name__ == "__main__":
    model, table, scores = sys.argv[1:]
    load(model).score(pd.read_csv(table)).to_csv(scores, index=False)
