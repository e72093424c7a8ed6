"""What repeated launches read from DRAM again, against an H200's counters."""

from __future__ import annotations

import csv

import pytest

from pysim.program.job import Job
from pysim.workloads import mirrored
from tests.core.harness import config, execute
from tests.support.measured import measured_table
from tests.support.thin import thin

ROWS = measured_table("h200_warm.csv")


def measured(kernel, params):
    with ROWS.open(encoding="utf-8", newline="") as file:
        return next(
            float(row["dram_read_MB"])
            for row in csv.DictReader(file)
            if (row["kernel"], row["params"]) == (kernel, params)
        )


def read(kernel, params, launches):
    job = Job("warm", mirrored.job_of(kernel, params).kernels * launches)
    return execute(job, "stream", config("h200")).slices["dram_read_sectors"].sum() * 32e-6


@pytest.mark.parametrize(
    ("kernel", "params"),
    thin(
        [
            ("gemv", "rows=4096;cols=4096"),  # 67 MB: nothing is found again
            ("sgemm_64x64x16", "M=64;N=7168;K=1792"),  # 51 MB, and copies in the other half: a tenth is
            ("saxpy4", "n=4194304"),  # 34 MB: all of it is
            ("layernorm", "rows=1024;cols=1600"),
        ],
        2,
    ),
)
def test_what_is_read_again(kernel, params):
    again = read(kernel, params, 3) - read(kernel, params, 2)
    # megabytes: a tenth of the largest
    assert again == pytest.approx(measured(kernel, params), abs=5.0)
