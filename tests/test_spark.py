"""The recipe for Spark scores as the model itself does, on a local Spark if there is one."""

import importlib
import os
import shutil
import sys
import warnings

import pandas as pd
import pytest

from ocfuse import load
from tests.cli.cases import with_anomalies

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    sql = pytest.importorskip("pyspark.sql", reason="pyspark is not installed; it takes 500 MB")

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.filterwarnings("ignore"),  # of pyspark
    pytest.mark.skipif(shutil.which("java") is None, reason="Java is not installed"),
]


@pytest.fixture(scope="module")
def spark():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        patch.setenv("PYTHONPATH", os.pathsep.join(filter(None, sys.path)))
        builder = sql.SparkSession.builder.master("local[2]").appName("test")
        builder = builder.config("spark.ui.enabled", "false")
        builder = builder.config("spark.driver.bindAddress", "127.0.0.1")
        builder = builder.config("spark.driver.host", "127.0.0.1")
        session = builder.config("spark.sql.shuffle.partitions", "2").getOrCreate()
        yield session
        session.stop()


def test_scores_are_those_of_the_model(spark, plant_folder):
    example = importlib.import_module("examples.spark_score")
    table = with_anomalies()
    table["temperature"] = table["temperature"].mask(table.index == 3, float("inf"))
    rows = spark.createDataFrame(table).repartition(3)
    model = plant_folder / "model.ocf"
    found = example.scored(rows, str(model), keep=["part"]).toPandas().set_index("part")
    want = load(model).score(table, keep_going=True).set_index("part").loc[found.index]
    assert list(found.columns) == ["score", "p_value", "is_anomaly"]
    assert len(found) == len(table)
    pd.testing.assert_series_equal(found["score"], want["score"], rtol=1e-9)
    pd.testing.assert_series_equal(found["p_value"], want["p_value"], check_dtype=False)
    assert found["is_anomaly"].isna().sum() == want["is_anomaly"].isna().sum() == 1
    alarms = want["is_anomaly"].fillna(value=False)
    assert found["is_anomaly"].eq(True)[alarms].all()
