"""Score a table of Spark by a model, on all of its machines.

usage: spark-submit spark_score.py model.ocf rows/ scores/

Both folders hold Parquet files. Every machine needs Python with ``ocfuse[tool]``, as with Dask.
"""

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from pyspark import SparkFiles
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import BooleanType, DoubleType, StructField, StructType

import ocfuse

RESULTS = (
    StructField("score", DoubleType()),
    StructField("p_value", DoubleType()),
    StructField("is_anomaly", BooleanType()),
)


def scored(rows: DataFrame, model: str, keep: Sequence[str] = ()) -> DataFrame:
    """Return columns of rows beside their scores; a row that cannot be scored has none."""
    rows.sparkSession.sparkContext.addFile(model)  # every machine gets a copy
    kept = [field for field in rows.schema.fields if field.name in keep]
    score = scorer(Path(model).name, [field.name for field in kept])
    return rows.mapInPandas(score, StructType([*kept, *RESULTS]))


def scorer(name: str, keep: Sequence[str]) -> Callable[[Iterable[Any]], Iterator[Any]]:
    """Return what scores the batches of a partition by the model file of a name."""

    def score(batches: Iterable[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        model = ocfuse.load(SparkFiles.get(name))  # once for many batches
        for batch in batches:
            found = model.score(batch, keep_going=True)
            results = found[[field.name for field in RESULTS]]
            yield pd.concat([batch[list(keep)], results], axis=1)

    return score


def main(model: str, source: str, target: str) -> None:
    """Score a folder of Parquet files into another."""
    spark = SparkSession.builder.appName("ocfuse").getOrCreate()
    rows = spark.read.parquet(source)
    scored(rows, model, keep=rows.columns).write.parquet(target)
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
