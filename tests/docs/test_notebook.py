"""docs/notebook.ipynb: its cells run, its pictures appear, and it holds no outputs.

Outputs are not committed: pictures would outweigh the text, and change with every version of a library.
``make extras`` runs it in a real kernel, too.
"""

import ast
import json

import pytest

from tests.support.calls import ROOT

PATH = ROOT / "docs" / "notebook.ipynb"
PICTURES = 2


def _cells():
    return json.loads(PATH.read_text(encoding="utf-8"))["cells"]


def _shown(code, names):
    """Run a cell; return the value of its last expression, which a notebook shows."""
    tree = ast.parse(code)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "cell", "exec"), names)
    return None if last is None else eval(compile(ast.Expression(last.value), "cell", "eval"), names)


def test_it_runs_and_shows_pictures(monkeypatch, tmp_path, capsys):
    for library in ("pandas", "matplotlib"):
        pytest.importorskip(library)
    monkeypatch.chdir(tmp_path)
    names, shown = {"__name__": "__main__"}, {}
    for cell in _cells():
        if cell["cell_type"] == "code":
            shown[cell["id"]] = _shown("".join(cell["source"]), names)
    pictures = [value for value in shown.values() if hasattr(value, "_repr_png_")]
    assert [picture._repr_png_()[:4] for picture in pictures] == [b"\x89PNG"] * PICTURES
    assert "tb_static" in repr(shown["simulate"])
    assert shown["frame"]["scheme"].tolist() == ["stream", "graph", "tb_static"]
    assert all(len(shown[name]) for name in ("kernels", "read", "meaning"))
    # what the text says: a larger L2 moves fewer bytes
    assert (shown["ratios"].query("column == 'dram_bytes'")["ratio"] < 0.9).all()
    printed = capsys.readouterr().out
    for text in ("tb_static: kernel 7", "its data needs kernel", "gpu.l2.size", "dram_bytes"):
        assert text in printed
    assert not list(tmp_path.iterdir())  # its files are in a folder of their own


def test_it_holds_code_and_text_alone():
    book = json.loads(PATH.read_text(encoding="utf-8"))
    assert (book["nbformat"], book["nbformat_minor"]) == (4, 5)
    ids = [cell["id"] for cell in book["cells"]]
    assert len(set(ids)) == len(ids)
    for cell in book["cells"]:
        assert max(len(line.rstrip("\n")) for line in cell["source"]) <= 120
        if cell["cell_type"] == "code":
            assert (cell["outputs"], cell["execution_count"]) == ([], None), "clear the outputs"
    text = json.dumps(book, indent=1, ensure_ascii=False) + "\n"
    assert PATH.read_text(encoding="utf-8") == text  # as Jupyter writes it
    assert len(text) < 20_000


@pytest.mark.parametrize("link", ["notebook.md", "tables.md", "analysis.md", "schemes.md"])
def test_its_links_lead_somewhere(link):
    assert f"]({link})" in PATH.read_text(encoding="utf-8")
    assert (PATH.parent / link).is_file()


@pytest.mark.filterwarnings("default")  # of the libraries of Jupyter
def test_it_runs_in_a_kernel(monkeypatch, tmp_path):
    nbclient = pytest.importorskip("nbclient")
    nbformat = pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    book = nbformat.read(PATH, as_version=4)
    nbformat.validate(book)
    client = nbclient.NotebookClient(book, timeout=240, kernel_name="python3")
    client.execute(cwd=str(tmp_path))
    outputs = {cell["id"]: cell.get("outputs", []) for cell in book.cells}
    inline = {name for name, made in outputs.items() for each in made if "image/png" in each.get("data", {})}
    assert inline == {"schemes", "occupancy"}
    assert "text/html" in outputs["frame"][0]["data"]  # a data frame as a table
    assert not [each for made in outputs.values() for each in made if each.get("name") == "stderr"]
