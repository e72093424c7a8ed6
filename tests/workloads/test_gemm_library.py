"""The kernel that cuBLAS launches for a GEMM: what the rule says of single shapes."""

import pytest

from pysim.errors import WorkloadError
from pysim.workloads.library.gemm import choose_gemm


def linear(m, n, k, dtype="fp16"):
    return choose_gemm(m, n, k, trans_a="T", dtype=dtype)


def test_a_large_gemm_is_persistent():
    choice = linear(12288, 4096, 4096)
    assert choice.name == "nvjet_sm90_hsh_256x128_64x4_1x2_h_bz_coopA_TNT"
    assert (choice.tile, choice.stages, choice.cluster) == ((256, 128, 64), 4, (1, 2))
    assert choice.grid == (2, 66, 1)
    assert choice.tbs == 132


def test_tiles_make_the_grid_fit_one_wave():
    """4608 / 144 is 32: with four columns of tiles 128 TBs, each SM takes one tile at most."""
    choice = linear(4608, 512, 12288)
    assert choice.tile[:2] == (144, 128)
    assert choice.tbs == 128
    assert "1 waves of at most 132" in choice.reasons[0]


def test_few_tiles_and_a_deep_k_are_split():
    choice = linear(1024, 64, 4096)
    assert (choice.split_k, choice.reduction) == (3, "kernel")
    assert "splitK" in choice.name
    assert any("split into 3 parts" in reason for reason in choice.reasons)


def test_bf16_has_kernels_of_its_own():
    assert linear(4096, 4096, 4096, "bf16").name == "nvjet_sm90_tst_256x128_64x4_1x2_h_bz_coopA_TNT"


def test_runners_up_are_other_tiles_and_cost_more():
    choice = linear(3072, 1024, 1024)
    prices = [choice.cost, *(other.cost for other in choice.runners_up)]
    assert len({(c.tile, c.name[-1]) for c in (choice, *choice.runners_up)}) == 4
    assert prices == sorted(prices)


def test_an_untransposed_a_is_fetched_32_rows_at_least():
    chosen = [choose_gemm(1760, n, 1760) for n in (16, 64, 128, 7000)]
    kernels = [c for choice in chosen for c in (choice, *choice.runners_up)]
    assert not [c.name for c in kernels if c.tile[0] % 32]


@pytest.mark.parametrize(
    ("sizes", "options", "words"),
    [
        ((0, 8, 8), {}, "m is 0"),
        ((8, 2**31, 8), {}, "n is 2147483648"),
        ((8, 8, True), {}, "k is True"),
        ((8, 8, 8), {"trans_a": "C"}, "trans_a is C: N or T"),
        ((8, 8, 8), {"dtype": "fp8"}, "dtype fp8: there are fp16"),
        ((8, 8, 8), {"device": "a100"}, "device a100: choices were measured on h200"),
    ],
)
def test_what_is_not_known_is_refused(sizes, options, words):
    with pytest.raises(WorkloadError, match=words):
        choose_gemm(*sizes, **options)
