"""``pysim timeline``: what it prints and refuses."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.test_dependence_tool import TINY, pysim
from tests.support.calls import caller
from tests.support.trace_events import load_trace, read_trace

run = caller("titanv_gru")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("made") / "gru.h5"
    run(path.parent, *TINY, "--schemes", "stream,tb_static", "--out", path)
    return path.read_bytes()


@pytest.fixture
def tool(made: bytes, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path):
    monkeypatch.chdir(tmp_path)
    Path("gru.h5").write_bytes(made)
    return lambda *args: pysim(monkeypatch, capsys, "timeline", *args)


def test_a_trace(tool) -> None:
    status, out, err = tool("gru.h5", "-o", "t.json.gz", "--schemes", "stream", "--kernels", "0-1,3")
    assert (status, err) == (0, "")
    read = read_trace(load_trace(Path("t.json.gz"))["traceEvents"])
    tbs, arrows = len(read.of("tb")), len(read.flows)
    assert {each.event["args"]["kernel"] for each in read.of("tb")} == {0, 1, 3}
    assert out == f"wrote t.json.gz: stream: {tbs} TBs, {arrows} arrows, 0.0 MB\n"
    assert tool("gru.h5", "-o", "t.json.gz")[0::2] == (
        1,
        "error: t.json.gz is there already: --force (force=True) replaces it\n",
    )
    assert tool("gru.h5", "-o", "t.json.gz", "--force")[0] == 0


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (("gru.h5",), 2, "the following arguments are required: -o/--out"),
        (("gru.h5", "-o", "t.txt"), 2, "--out: t.txt: the name of a trace ends in .json or .json.gz"),
        (("none.h5", "-o", "t.json"), 2, "none.h5 does not exist"),
        ((".", "-o", "t.json"), 2, ". is a folder: a trace is made of a result file"),
        (("gru.h5", "-o", "t.json", "--schemes", "x"), 2, "gru.h5 has no run of scheme x: there are stream, "
         "tb_static"),
        (("gru.h5", "-o", "t.json", "--kernels", "3-2"), 2, "--kernels: 3-2 is an empty range"),
        (("gru.h5", "-o", "t.json", "--kernels", "-2"), 2, "--kernels: must be a non-negative integer"),
        (("gru.h5", "-o", "t.json", "--kernels", "1,"), 2, "must be a non-negative integer, not ''"),
        (("gru.h5", "-o", "t.json", "--most-tbs", "3"), 1, "are more than 3, their trace would take"),
        (("gru.h5", "-o", "t.json", "--forc"), 2, "unknown option --forc: did you mean --force?"),
        (("gru.h5", "-o", "gru.h5/t.json"), 1, "cannot write gru.h5/t.json: gru.h5 is no folder"),
    ],
)  # fmt: skip
def test_bad_input_is_one_line(tool, words: tuple[str, ...], status: int, said: str) -> None:
    before = sorted(Path().iterdir())
    found, out, err = tool(*words)
    assert (found, out, err.count("\n")) == (status, "", 1)
    assert err.startswith("error: ")
    assert said in err
    assert sorted(Path().iterdir()) == before
