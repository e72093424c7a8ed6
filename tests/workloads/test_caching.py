"""Addresses of PyTorch's caching allocator, and networks that have them."""

from __future__ import annotations

import itertools
import pickle

import pytest

from pysim import Config, Job, Memory, simulate
from pysim.dependence.dependences import dependences
from pysim.errors import WorkloadError
from pysim.machine.devices import device
from pysim.program.library_kernels import library_kernels
from pysim.workloads import make
from pysim.workloads.framework.caching import LARGE, MIB, ROUND, CachingAllocator, reused
from pysim.workloads.library.memory import memory_bound
from tests.support.thin import thin


def test_sizes_are_rounded_and_the_smallest_free_block_is_taken():
    allocator = CachingAllocator(Memory())
    small = [allocator.take(n) for n in (1, ROUND, ROUND + 1)]
    assert [block.size for block in small] == [ROUND, ROUND, 2 * ROUND]
    assert [b.address - a.address for a, b in itertools.pairwise(small)] == [ROUND, ROUND]
    allocator.free(small[2], ROUND + 1)
    allocator.free(small[0], 1)
    assert allocator.take(ROUND).address == small[0].address  # not the larger ones after it


def test_neighbours_merge_but_not_across_segments():
    allocator = CachingAllocator(Memory())
    blocks = [allocator.take(LARGE) for _ in range(2)]
    for block in blocks:
        allocator.free(block, LARGE)
    assert len(allocator.large.blocks) == 2
    a, b = (allocator.take(2 * MIB) for _ in range(2))
    assert b.address == a.address + 2 * MIB  # the rest of the first is cut off and taken
    allocator.free(b, 2 * MIB)
    allocator.free(a, 2 * MIB)
    assert sorted(block.size for block in allocator.large.blocks) == [LARGE, LARGE]


def test_large_tensors_keep_small_rests():
    allocator = CachingAllocator(Memory())
    block = allocator.take(LARGE)
    allocator.free(block, LARGE)
    again = allocator.take(LARGE - MIB)
    assert (again.address, again.size) == (block.address, LARGE)  # a rest of 1 MiB stays with it


def _chain(length):
    memory = Memory()
    tensors = [memory.tensor("x", 64, 1024, 2)]
    kernels = []
    for _ in range(length):
        made = memory_bound.gelu(memory, tensors[-1], "none")
        kernels += made.kernels
        tensors.append(made.outputs[0])
    return kernels, memory, tensors


def test_a_chain_takes_two_blocks_in_turn():
    """Inputs and results stay; what is freed after its last reader is taken by the next but one."""
    kernels, memory, tensors = _chain(6)
    made = reused(kernels, memory)
    written = [kernel.accesses[-1].tensor.address for kernel in made]
    assert made[0].args[0].address == tensors[0].address
    assert written[-1] == tensors[-1].address
    assert len(set(written)) == 3
    assert written[0] == written[2] == written[4]
    assert written[1] == written[3]


def test_reuse_adds_edges_and_loses_none():
    kernels, memory, _ = _chain(5)
    before, after = (dependences(Job("chain", k)).preds for k in (kernels, reused(kernels, memory)))
    assert all(set(a) <= set(b) for a, b in zip(before, after, strict=True))
    assert sum(map(len, after)) > sum(map(len, before))


def test_what_the_memory_does_not_hold_is_refused():
    kernels, _, _ = _chain(2)
    with pytest.raises(WorkloadError, match="does not hold it"):
        reused(kernels, Memory())


NETWORKS = (
    "mlp:layers=3,width=256,batch=64",
    "mlp:layers=2,width=256,batch=64,dtype=fp32",
    "transformer:layers=1,hidden=128,heads=2,sequence=64,batch=2,ffn=256",
    "transformer:layers=1,hidden=128,heads=2,sequence=128,batch=2,ffn=256,fused=1",
    "gru:hidden=128,batch=4,timesteps=2,layers=2",
    "lstm:hidden=128,batch=4,timesteps=2,layers=2,input=per-step",
    "vanilla:hidden=128,batch=4,timesteps=2,layers=1,input=per-step,dtype=fp16",
)


@pytest.mark.parametrize("text", thin(NETWORKS, [text for text in NETWORKS if not text.startswith("lstm")]))
def test_networks_take_library_kernels_on_an_h200(text):
    job = make(f"{text},kernels=library", "h200")
    runs = simulate("h200", job, "stream,pdl,tb_static,tb_ideal", overrides={"sim.oracle": 1}).frame("runs")
    assert (runs["status"] == "ok").all()
    times = dict(zip(runs["scheme"], runs["time_us"], strict=True))
    assert times["pdl"] < times["stream"]
    assert times["tb_ideal"] < times["stream"]
    again = pickle.loads(pickle.dumps(job))
    assert [k.name for k in again.kernels] == [k.name for k in job.kernels]


def test_flops_of_a_network_do_not_depend_on_its_kernels():
    """Both multiply the same matrices: weights are read once at least, whatever the kernel."""
    text = "gru:hidden=256,batch=16,timesteps=1,layers=1"
    for kernels in ("own", "library"):
        job = make(f"{text},kernels={kernels}", "h200")
        weights = {a.tensor.nbytes for k in job.kernels for a in k.accesses if a.tensor.name.startswith("w_")}
        assert weights == {3 * 256 * 256 * 4}
        read = simulate("h200", job, "tb_ideal").frame("runs")["dram_bytes"][0]
        assert read >= 2 * 3 * 256 * 256 * 4


@pytest.mark.parametrize(
    ("text", "gpu", "said"),
    [
        ("mlp:kernels=library", "titan_v", "measured were those of h200, h100"),
        ("mlp:kernels=library", None, "no GPU is given"),
        ("mlp:kernels=library", Config.resolve(device("h200"), {"gpu.sms": 66}), "gpu.sms = 66"),
        ("mlp:kernels=cublas", "h200", "must be own or library"),
        ("lstm:kernels=library", "h200", "takes input = per-step"),
        ("transformer:fused=1", "h200", "needs kernels = library"),
        ("transformer:kernels=library,dtype=fp32", "h200", "must be fp16"),
        ("gru:kernels=library,buffers=2", "h200", "takes input = per-step"),
    ],
)
def test_what_no_library_was_measured_for_is_refused(text, gpu, said):
    with pytest.raises(WorkloadError, match=said):
        make(text, gpu)


def test_reports_name_the_kernels_of_libraries():
    """GEMMs by what a profiler calls them; a cell that stands in for another says so."""
    named = library_kernels(make("gru:hidden=128,batch=4,timesteps=2,layers=1,kernels=library", "h200"))
    assert named.startswith("cutlass_80_simt_sgemm_")
    assert "cuDNN's gru cell, for PyTorch's x 2" in named
    assert library_kernels(make("mlp:layers=2,kernels=library", "h200")).startswith("nvjet_sm90_hsh_")
