"""Bits of the schemes' structures."""

from __future__ import annotations

import pytest

from pysim import Config, simulate
from pysim.machine.devices import device
from pysim.schemes import hardware_cost
from pysim.schemes.hardware_cost import Sizes, Structure, bits_for
from pysim.workloads import make


@pytest.mark.parametrize(("things", "bits"), [(1, 1), (2, 1), (3, 2), (4, 2), (5, 3), (4096, 12), (4097, 13)])
def test_width(things, bits):
    assert bits_for(things) == bits


def test_entry_of_the_table():
    sizes = Sizes(window=64, max_tbs=4096, window_tbs=5000, max_producers=4096, sms=132, slots=32)
    fields = {field.name: field.bits for field in hardware_cost.table_entry_fields(sizes, 4)}
    assert fields == {"kind": 2, "kernel": 6, "name": 16, "left": 13, "used": 3, "ranges": 4 * 3 * 12}
    table = hardware_cost.table_structures(sizes, 1000, 4)
    assert [each.name for each in table] == ["dependence table", "window", "TBs of the window"]
    assert table[0].total_bits == 1000 * 184
    assert table[2].total_bits == 2 * 5000
    # what lies in memory is no bit of the chip
    assert hardware_cost.on_chip_bits([*table, hardware_cost.counter_lists(10)]) == sum(
        each.total_bits for each in table
    )
    assert hardware_cost.counter_lists(10).total_bits == 160


def test_lists_of_resident_tbs():
    sizes = Sizes(window=64, max_tbs=4096, window_tbs=5000, max_producers=4096, sms=132, slots=32)
    free, held = (
        hardware_cost.table_structures(sizes, 1000, 1),
        hardware_cost.table_structures(sizes, 1000, 1, 512, 4),
    )
    # 132 SMs of 32 slots are told apart by 13 bits, counters by 16
    assert hardware_cost.on_chip_bits(held) - hardware_cost.on_chip_bits(free) == 512 * (13 + 4 * 16)
    for bits in (hardware_cost.on_chip_bits(held) - 1, hardware_cost.on_chip_bits(held)):
        entries = hardware_cost.largest_table(bits, sizes, 1, 512, 4)
        assert entries == 999 + (bits == hardware_cost.on_chip_bits(held))
    assert hardware_cost.largest_table(0, sizes, 1, 512, 4) == 0


def test_the_rivals_buffers():
    assert hardware_cost.on_chip_bits(hardware_cost.blockmaestro_structures(896, 4)) == 896 * (40 + 162)
    # TBs named in 12 bits: two bits of a kernel beside them, a counter of six, four children
    assert hardware_cost.on_chip_bits(hardware_cost.blockmaestro_structures(1, 4, 12, 12)) == (14 + 6) + (
        14 + 4 * 12
    )


def test_prices_of_placement_and_prologue():
    sizes = Sizes(window=64, max_tbs=4096, window_tbs=5000, max_producers=4096, sms=132, slots=32)
    # an even share of 4096 TBs on 132 SMs is 32, so the count takes 6 bits
    assert hardware_cost.placement_counters(sizes).total_bits == 132 * 64 * 6
    assert hardware_cost.waiting_tbs(sizes).total_bits == 132 * 32 * 13
    assert hardware_cost.producer_sms(sizes).total_bits == 5000 * 8


def test_sizes_of_a_job():
    values = Config.resolve(device("h200"), {"scheme.window": 2}).encoded()
    job = make("mlp:layers=3,width=256,batch=64")
    tbs = job.kernels[0].tbs
    sizes = Sizes.of(job, 7, values)
    assert (sizes.window, sizes.window_tbs, sizes.sms, sizes.slots) == (2, 2 * tbs, 132, 32)
    assert sizes.max_tbs == sizes.max_producers == hardware_cost.MIN_GRID_TBS
    assert Sizes.of(job, 7, values, 64).window == 3
    assert Sizes.of(job, 9999, values).max_producers == 9999


def test_table_bytes_of_runs_are_these_bits():
    job = make("gru:hidden=64,batch=4,timesteps=2,layers=2")
    runs = simulate("h200", job, "acs_hw,blockmaestro,tb_bloom", tables="none", threads=1).frame("runs")
    runs = runs.set_index("scheme")
    slot = Structure("window", 1, hardware_cost.acs_slot_fields(32)).entry_bits
    assert slot == 258  # 32 ids of 8 bits, 2 of state
    peak = runs["table_entries"]["acs_hw"]
    assert runs["table_bytes"]["acs_hw"] == -(-peak * slot // 8)
    assert hardware_cost.entry_bytes(hardware_cost.blockmaestro_counter_fields()) == 5.0
    assert hardware_cost.entry_bytes(hardware_cost.blockmaestro_list_fields(4)) == 20.25
    unit = hardware_cost.entry_bytes(hardware_cost.signature_fields(1792, 64, 12))
    assert unit == (2 * 1792 + 4 * 12 + 64) / 8
    assert runs["table_bytes"]["tb_bloom"] == runs["table_entries"]["tb_bloom"] * unit
