"""The fixtures of this folder see what a page does wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from .conftest import Open

pytestmark = pytest.mark.browser
HEAD = '<!doctype html><html lang="en"><meta charset="utf-8"><title>t</title><link rel="icon" href="data:,">'


def written(folder: Path, body: str) -> Path:
    path = folder / "a page.html"
    path.write_text(HEAD + body)
    return path


def test_a_page_without_problems(open_page: Open, tmp_path: Path) -> None:
    text = "<body>text<script>console.log('fine'); fetch('data:,x').then((r) => r.text())</script>"
    opened = open_page(written(tmp_path, text), 640, 480)
    assert opened.run("[innerWidth, innerHeight]") == [640, 480]
    assert 0 < opened.first_paint_ms() < 30_000
    assert 100_000 < opened.heap_bytes() < 50_000_000
    picture = opened.screenshot().read_bytes()
    assert picture[:8] == b"\x89PNG\r\n\x1a\n"
    assert not opened.problems


def test_memory_of_arrays_is_counted(open_page: Open, tmp_path: Path) -> None:
    opened = open_page(written(tmp_path, "<body>text"))
    before = opened.heap_bytes()
    opened.run("() => { window.kept = new Float64Array(5e6).fill(1); }")
    assert 38e6 < opened.heap_bytes() - before < 45e6


@pytest.mark.parametrize(
    ("script", "problem"),
    [
        ("console.error('bad', 3)", "console error: bad 3"),
        ("console.warn('odd')", "console warning: odd"),
        ("throw new Error('thrown')", "error: thrown"),
        ("Promise.reject(new Error('late'))", "error: late"),
        ("new Image().src = 'http://example.com/a.png'", "request to the network: http://example.com/a.png"),
        ("fetch('https://example.com/b').catch(() => 0)", "request to the network: https://example.com/b"),
        ("new Image().src = 'none.png'", "request failed: file://"),
    ],
)
def test_a_problem_is_seen(open_page: Open, tmp_path: Path, script: str, problem: str) -> None:
    opened = open_page(written(tmp_path, f"<body>text<script>{script}</script>"))
    opened.page.wait_for_timeout(100)
    assert any(each.startswith(problem) for each in opened.problems), opened.problems
    opened.problems.clear()
