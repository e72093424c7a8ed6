"""Reading a sweep: every row under the keys of its point, in grid order, and nothing damaged."""

import json

import pytest

from pysim import stats
from pysim.sweep import SweepFolder
from pysim.sweep.worker import Shard, work

from .common import collected, planned, sweep


def test_a_key_that_is_named_like_a_column_of_runs_stays(tmp_path):
    """Two GPUs of one name are told apart by the grid's key, not mixed."""
    files = []
    for number in (40, 80):
        (tmp_path / str(number)).mkdir()
        files.append(tmp_path / str(number) / "g.toml")
        files[-1].write_text(f'name = "g"\nbase = "titan_v"\n[gpu]\nsms = {number}\n')
    sweep({"hidden": [64]}, gpu=list(map(str, files))).run(tmp_path / "sweep", quiet=True)
    frame = stats.load(tmp_path / "sweep")
    assert frame["grid.gpu"].tolist() == [str(file) for file in files for _ in range(2)]
    assert set(frame["gpu"]) == {"g"}
    sweep({"hidden": [64]}, gpu=["titan_v", "v100"]).run(tmp_path / "names", quiet=True)
    assert "grid.gpu" not in stats.load(tmp_path / "names")


def test_the_bytes_do_not_follow_from_the_history(tmp_path):
    one, two = SweepFolder(tmp_path / "a"), SweepFolder(tmp_path / "b")
    for schemes in ("graph", "stream,graph,pool"):
        sweep(schemes=schemes).run(one.path, quiet=True)
    sweep(schemes="stream,graph,pool").run(two.path, quiet=True)
    assert collected(one) == collected(two)


def test_a_result_of_another_point_is_refused(tmp_path):
    folder = planned(tmp_path)
    work(folder, Shard(), threads=1)
    first, second = folder.plan.files()[:2]
    folder.result(second).write_bytes(folder.result(first).read_bytes())
    with pytest.raises(stats.StoreError, match="holds another point: delete it"):
        stats.load(folder.path)


@pytest.mark.parametrize(
    "change",
    [
        {"keys": ["hidden", "hidden"]},
        {"keys": ["run", "split"]},
        {"places": [{"values": [[1], 2], "files": []}]},
    ],
)
def test_a_damaged_plan_is_one_line_for_readers_too(tmp_path, change):
    folder = planned(tmp_path)
    file = folder.path / "sweep.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | change))
    with pytest.raises(stats.StoreError, match="is damaged"):
        stats.load(folder.path)
