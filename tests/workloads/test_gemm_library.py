"""The kernel that cuBLAS launches for a GEMM: what the rule says of single shapes."""

from dataclasses import replace

import pytest

from pysim.errors import WorkloadError
from pysim.program.job import Memory
from pysim.workloads.library.choices.choice import Problem
from pysim.workloads.library.choices.chooser import choose_gemm, chosen
from pysim.workloads.library.choices.cutlass import parts_of_k, swizzled
from pysim.workloads.library.choices.tiled import walk
from pysim.workloads.library.gemms.hopper_gemm import HopperGemm, hopper_gemm
from pysim.workloads.library.gemms.launches import predicted


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
        ((8, 8, 8), {"device": "rtx3070"}, "device rtx3070: there are choices for h200"),
    ],
)
def test_what_is_not_known_is_refused(sizes, options, words):
    with pytest.raises(WorkloadError, match=words):
        choose_gemm(*sizes, **options)


def test_odd_rows_run_on_older_kernels():
    """4099 is odd: nothing is aligned; 2050 is even: 4 B; 4104 is a multiple of 8."""
    families = [choose_gemm(size, size, size).family for size in (4099, 2050, 4104)]
    assert families == [
        "cutlass_75_tensorop_f16_s1688gemm_f16",
        "cutlass_80_tensorop_f16_s16816gemm_f16",
        "nvjet",
    ]
    assert choose_gemm(4096, 4099, 4096).family == "nvjet"  # n is no leading dimension
    assert choose_gemm(4096, 4099, 4096, trans_b="T").family.startswith("cutlass_75")


def test_parts_added_by_a_second_kernel_are_no_fp16():
    choice = choose_gemm(777, 77, 7777)
    assert choice.name == "cutlass_75_tensorop_s1688gemm_f16_128x128_nn_align1"
    assert (choice.split_k, choice.reduction, choice.grid) == (37, "kernel", (8, 1, 37))


def test_tf32_needs_a_large_gemm_for_wgmma():
    assert linear(4096, 4096, 4096, "tf32").unit == "wgmma"
    assert linear(768, 16, 768, "tf32").unit == "mma"
    assert linear(4099, 4099, 4099, "tf32").unit == "mma"


@pytest.mark.parametrize(
    ("m", "n", "k", "trans_a", "family", "tbs"),
    [
        (8192, 1, 2048, "T", "gemv2t_kernel_val", 1024),
        (1024, 1, 1024, "T", "gemvx", 256),
        (3072, 1, 1024, "N", "gemvx", 96),
        (4224, 1, 128, "N", "gemvnsp_kernel", 132),
        (6144, 4, 2048, "T", "gemmsn_tn_kernel", 768),
        (6144, 16, 2048, "N", "gemmsn_nn_kernel", 384),
    ],
)
def test_few_columns_in_fp32(m, n, k, trans_a, family, tbs):
    choice = choose_gemm(m, n, k, trans_a=trans_a, dtype="fp32")
    assert (choice.family, choice.tbs, choice.unit) == (family, tbs, "vector")


def test_full_waves_decide_the_parts_of_k():
    """20 tiles on 264 slots: 13 parts; 272: four, as 5 waves of quarters beat 2 whole ones; 264: none."""
    found = [parts_of_k(tiles, 4096, 8, 264) for tiles in (20, 272, 264)]
    assert found == [13, 4, 1]
    assert parts_of_k(20, 64, 8, 264) == 4  # two k-steps a part at the least


def test_cutlass_widens_its_grid_by_up_to_8_tiles():
    assert [swizzled(*tiles) for tiles in ((1, 133), (2, 3), (5, 5), (17, 33))] == [
        (133, 1),
        (6, 1),
        (20, 2),
        (264, 3),
    ]


def test_a_tree_answers_with_the_leaf_and_then_its_neighbours():
    tree = "m <= 10:\n  n <= 5:\n    a b\n  else:\n    c\nelse:\n  B transposed no:\n    d\n  else:\n    e\n"
    problem = Problem(10, 6, 8, "N", "N", "fp32")
    assert walk(tree, problem) == (["c", "a", "b", "d", "e"], ["m <= 10", "not n <= 5"])
    assert walk(tree, Problem(11, 6, 8, "N", "T", "fp32"))[0][0] == "e"
    with pytest.raises(WorkloadError, match="asks for q"):
        walk("q <= 3:\n  a\nelse:\n  b\n", problem)


def test_a_kernel_has_shared_memory_for_its_stages():
    gemm = HopperGemm(256, 256, 64, (128, 128), 4, (1, 1), 4, smem=100_000)
    with pytest.raises(WorkloadError, match="100000 B of shared memory, its stages take 131072 B"):
        hopper_gemm(gemm, Memory())
    hopper_gemm(replace(gemm, smem=131_072), Memory())


@pytest.mark.parametrize("trans_a", ["N", "T"])
@pytest.mark.parametrize("sizes", [(100, 30, 77), (900, 500, 640), (4096, 4096, 1024), (64, 3000, 4096)])
def test_a_transposed_b_in_fp32_takes_a_kernel_that_exists(trans_a, sizes):
    problem = Problem(*sizes, trans_a, "T", "fp32")
    launch = predicted(chosen(problem), problem)
    assert launch.name.startswith("cutlass_80_simt_sgemm")
    assert launch.registers > 0


def test_a_name_of_xmma_says_n_first():
    """4096 x 64: tiles of 64 along n and 128 along m make a grid of 1 x 32, as launched."""
    choice = choose_gemm(4096, 64, 4096, dtype="fp32", trans_a="T")
    across, down = choice.tile[:2]
    assert choice.family == "sm80_xmma_gemm"
    assert choice.grid[:2] == (-(-64 // across), -(-4096 // down))
