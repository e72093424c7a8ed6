"""``pysim check --cusync``: what semaphores of tiles cover."""

import json

import pytest

from tests.support.calls import pysim, refused

SMALL = "mlp:layers=2,width=256"


def test_covered():
    done = pysim("check", SMALL, "--cusync", "row+pdl", "--prove")
    assert done.returncode == 0, done.stderr
    assert "under cusync:row+pdl on h200: 2 kernels\n1 layer  waits for 0 layer: " in done.stdout
    assert done.stdout.endswith(" safe\nthe oracle finds nothing\n")


def test_json():
    made = json.loads(pysim("check", SMALL, "--cusync", "default", "--json").stdout)
    assert (made["safe"], made["deadlock"]) == (True, [])
    assert made["kernels"][1]["producers"] == [0]
    assert made["kernels"][1]["semaphores"] > 0


@pytest.mark.parametrize(
    ("words", "said", "status"),
    [
        ((SMALL, "--cusync", "strided"), "nothing that it makes is read in parts that lie apart", 1),
        ((SMALL, "--cusync", "row", "--at", "start"), "--at: only with --pdl", 2),
    ],
)
def test_refused(words, said, status):
    refused(pysim("check", *words), said, status)
