"""``pysim kernels choose``: what a library launches, and what is wrong with a problem."""

from __future__ import annotations

import pytest

from pysim.workloads.library.choices.chooser import choose_gemm
from tests.support.calls import pysim


def test_the_kernel_comes_first_then_its_facts_and_reasons():
    done = pysim("kernels", "choose", "gemm:m=3072,n=4096,k=768,trans_a=T,dtype=bf16")
    assert (done.returncode, done.stderr) == (0, "")
    choice = choose_gemm(3072, 4096, 768, trans_a="T", dtype="bf16")
    lines = done.stdout.splitlines()
    assert lines[0] == choice.name
    assert lines[1].split() == ["tile", "256", "x", "128", "x", "64", "of", "m,", "n", "and", "k"]
    assert [line[4:] for line in lines if line.startswith("  - ")] == list(choice.reasons)
    others = [line.split()[0] for line in lines[lines.index("next best tiles:") + 1 : -1]]
    assert others == [other.name for other in choice.runners_up]


def test_a_split_of_k_says_who_adds():
    done = pysim("kernels", "choose", "gemm:m=1024,n=16,k=512,dtype=fp32")
    assert "    split of K  16 parts, added by a second kernel\n" in done.stdout


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("choose",), "choose needs a problem, gemm:KEY=VALUE,... with the keys m, n, k, trans_a"),
        (("choose", "gem:m=3"), "choose: no problem gem: did you mean gemm?"),
        (("choose", "gemm:m=3"), "choose gemm: n, k must be given"),
        (("choose", "gemm:m=3,n=4,k=x"), "gemm: k = x: must be an integer"),
        (("choose", "gemm:m=3,n=4,k=4,dtyp=fp16"), "choose gemm has no key 'dtyp': did you mean dtype?"),
        (("choose", "gemm:m=3,m=4"), "choose gemm: 'm=4': give each key once, as key=value"),
        (("choose", "gemm:m=0,n=4,k=4"), "library GEMM: m is 0: a whole number from 1"),
        (("choose", "gemm:m=4,n=4,k=4,device=rtx3070"), "device rtx3070: there are choices for h200"),
        (("gemm", "gemm:m=3"), "kernels takes one name, gemm, or choose and a problem"),
        (("chose",), "no kernel chose: did you mean choose?"),
    ],
)
def test_what_is_wrong_is_one_line(words, text):
    done = pysim("kernels", *words)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("error: ")
    assert text in done.stderr
    assert done.stderr.count("\n") == 1
