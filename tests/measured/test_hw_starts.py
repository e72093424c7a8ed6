"""When TBs of a kernel begin on an empty H200: on SMs of a TPC and of a cluster one behind the other."""

from __future__ import annotations

import csv

import numpy as np
import pytest

from pysim.program.job import Job, Kernel
from pysim.program.warp_program import Code, Program
from tests.core.harness import config, execute
from tests.support.measured import measured_table

ROWS = measured_table("h200_starts.csv")
SMS = 132
CLOCK = 1.98  # GHz
SMEM = 80 << 10  # two TBs find no room on any of these


def measured(threads):
    """Cycles behind the first of their GPC at which its TBs begin, of GPCs of 16 SMs, a TPC a row."""
    with ROWS.open(encoding="utf-8", newline="") as file:
        found = [
            int(row["entry"])
            for row in csv.DictReader(file)
            if (row["threads"], row["tbs"], row["tbs_of_gpc"]) == (str(threads), str(SMS), "16")
        ]
    return np.array(found).reshape(8, 2)


def simulated(threads, gpu="h200"):
    """The same of a GPC of 16 SMs here."""
    code = Code()
    code.delay(2000)
    code.exit()
    program = Program("wait", (tuple(code.ops),), threads // 32, 16, SMEM, 0)
    conf = config(gpu)
    sms = conf.values["gpu.sms"]
    tbs = execute(Job("starts", [Kernel("wait", program, (sms, 1, 1), (), (), 0)]), "stream", conf).tbs
    assert len(set(tbs["sm"])) == sms
    start = np.zeros(sms)
    start[tbs["sm"]] = tbs["start"] / 1024 * CLOCK
    gpc = start[36:52].reshape(8, 2)  # of an H200, the first two GPCs have 18
    return gpc - gpc.min()


@pytest.mark.parametrize("threads", [32, 64, 128, 256, 512, 1024])
def test_second_sms_of_tpcs_begin_later(threads):
    card, here = measured(threads), simulated(threads)
    later = [(each[:, 1] - each[:, 0]).mean() for each in (card, here)]
    assert later[1] == pytest.approx(later[0], rel=0.25, abs=3)
    assert here.max() == pytest.approx(card.max(), rel=0.4)
    assert here.std() == pytest.approx(card.std(), rel=0.25, abs=4)


def test_other_cards_begin_together():
    """Nothing is known of them."""
    assert simulated(256, "titan_v").max() < 15


def test_where_one_has_begun_nothing_waits():
    """What follows on either SM of a TPC follows the one before it, and the wait does not add up."""
    code = Code()
    code.delay(2000)
    code.exit()
    program = Program("wait", (tuple(code.ops),), 8, 16, SMEM, 0)
    conf = config("h200", gpu__sms=2, gpu__gpcs=1, gpu__tpc_sms=2)
    tbs = execute(Job("waves", [Kernel("wait", program, (8, 1, 1), (), (), 0)]), "stream", conf).tbs
    first, second = (np.sort(tbs["start"][tbs["sm"] == sm]) for sm in (0, 1))
    apart = (second - first) / 1024
    assert apart == pytest.approx(apart[0], abs=5)
    assert apart[0] == pytest.approx(5 * 7.1, abs=3)
