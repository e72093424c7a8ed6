"""Whatever tables come in: an error code or a run, never a crash."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pysim._ffi import dtype_of, ffi, lib, params_struct
from pysim.params import PARAMS, encode

from .harness import lowered_of, tiny
from .workloads_small import ALL

TABLES = {
    "ops": "gs_op",
    "patterns": "gs_pattern",
    "programs": "gs_program",
    "launches": "gs_launch",
    "nodes": "gs_node",
    "ranges": "gs_range",
    "preds": "uint32_t",
    "outs": "uint32_t",
    "tb_out_ptr": "uint32_t",
    "tb_outs": "uint32_t",
    "copied": "gs_copy",
}
SOURCES = [
    ("gemm_edges", "tb_static"),
    ("random_dag", "tb_ideal"),
    ("gru", "tb_static"),
    ("split_k", "stream"),
    ("copied_in_time", "tb_static"),
    ("gru", "tb_learned"),
]
_MADE = {}


def tables_of(which):
    """Copies of the tables of a small job, and what they were made of."""
    if which not in _MADE:
        name, scheme = SOURCES[which]
        made, _ = lowered_of(ALL[name](), scheme, tiny())
        arrays = {}
        for table, ctype in TABLES.items():
            count = getattr(made.job, f"n_{table}")
            if count:
                kind = dtype_of(ctype) if ctype != "uint32_t" else np.dtype("u4")
                data = ffi.buffer(getattr(made.job, table), count * kind.itemsize)
                arrays[table] = np.frombuffer(bytes(data), kind).copy()
        _MADE[which] = made, arrays
    made, arrays = _MADE[which]
    return made, {name: array.copy() for name, array in arrays.items()}


def attempt(made, arrays, params=None, order=None, quanta=2000, threads=1):
    """Create and run for a while; return the code."""
    job = ffi.new("gs_job *")
    job.tb_buffer = 1 << 16
    for name, array in arrays.items():
        ctype = TABLES[name]
        setattr(job, name, ffi.cast(f"{ctype} *", array.ctypes.data))
        setattr(job, f"n_{name}", len(array))
    code, text = ffi.new("int *"), ffi.new("char[256]")
    sim = lib.gs_create(params or params_struct(made.values), order or made.order, job, code, text)
    if sim == ffi.NULL:
        assert code[0] < 0
        message = ffi.string(text).decode()
        assert message
        assert "\n" not in message
        return code[0]
    try:
        assert code[0] == 0
        rows = ffi.new("gs_tb_record[]", 4096)
        for _ in range(4):
            rc = lib.gs_run(sim, threads, quanta // 4)
            if rc != lib.GS_MORE:
                break
            while lib.gs_take_tbs(sim, rows, len(rows)):
                pass
        totals = ffi.new("gs_totals *")
        lib.gs_totals_get(sim, totals)
        if rc < 0:
            assert ffi.string(lib.gs_error(sim))
        return rc
    finally:
        lib.gs_free(sim)


NUMBERS = st.one_of(
    st.sampled_from(
        (0, 1, 2, 3, 4, 7, 8, 31, 32, 63, 64, 127, 128, 255, 256, 65535, 65536, 2**31 - 1, 2**31, 2**32 - 1)
    ),
    st.integers(0, 2**64 - 1),
)


def put(array, row, name, value):
    """Write the low bits of a value into a field (or one entry of an array field)."""
    field = array[name] if name else array
    kind = field.dtype
    raw = np.frombuffer(int(value).to_bytes(8, "little")[: kind.itemsize], kind)[0]
    if field.ndim > 1:
        field[row, value % field.shape[1]] = raw
    else:
        field[row] = raw


def fuzz(examples):
    """Run a test with random choices ``data``, this many times."""

    def wrap(test):
        checked = settings(max_examples=examples, deadline=None, suppress_health_check=list(HealthCheck))
        return checked(given(data=st.data())(test))

    return wrap


def drawn(data):
    """Tables of one of the small jobs."""
    return tables_of(data.draw(st.integers(0, len(SOURCES) - 1)))


def drawn_row(data, arrays):
    """A table and one of its rows."""
    array = arrays[data.draw(st.sampled_from(sorted(arrays)))]
    return array, data.draw(st.integers(0, len(array) - 1))


def test_untouched_tables_run():
    for which in range(len(SOURCES)):
        made, arrays = tables_of(which)
        assert attempt(made, arrays, quanta=1 << 30) == lib.GS_DONE


@fuzz(600)
def test_any_field_may_be_wrong(data):
    made, arrays = drawn(data)
    for _ in range(data.draw(st.integers(1, 3))):
        array, row = drawn_row(data, arrays)
        name = data.draw(st.sampled_from(array.dtype.names)) if array.dtype.names else None
        put(array, row, name, data.draw(NUMBERS))
    attempt(made, arrays)


@fuzz(400)
def test_any_byte_may_be_wrong(data):
    made, arrays = drawn(data)
    for _ in range(data.draw(st.integers(1, 6))):
        raw = arrays[data.draw(st.sampled_from(sorted(arrays)))].view(np.uint8)
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    attempt(made, arrays)


@fuzz(200)
def test_tables_may_be_short(data):
    made, arrays = drawn(data)
    table = data.draw(st.sampled_from(sorted(arrays)))
    short = arrays[table][: data.draw(st.integers(0, len(arrays[table]) - 1))].copy()
    if len(short):
        arrays[table] = short
    else:
        del arrays[table]
    attempt(made, arrays)


@fuzz(300)
def test_parameters_at_the_ends_of_their_ranges(data):
    """What a configuration lets through one by one must not hurt the core together."""
    made, arrays = drawn(data)
    values = dict(made.values)
    rows = {f"{group}.{row.name}": row for group, all_rows in PARAMS.items() for row in all_rows}
    for _ in range(data.draw(st.integers(1, 4))):
        path = data.draw(st.sampled_from(sorted(rows)))
        row = rows[path]
        if row.unit == "choice":
            values[path] = data.draw(st.integers(0, len(row.choices) - 1))
        elif path not in ("gpu.l2.size",):  # up to 1 GiB of tags
            values[path] = encode(row, data.draw(st.sampled_from((row.lo, row.hi))))
    attempt(made, arrays, params=params_struct(values), quanta=200)


@fuzz(150)
def test_orders_may_be_anything(data):
    made, arrays = drawn(data)
    order = ffi.new("gs_order *", made.order[0])
    types = {name: field.type for name, field in ffi.typeof("gs_order").fields}
    for _ in range(data.draw(st.integers(1, 3))):
        name = data.draw(st.sampled_from(list(types)))
        if types[name].kind == "array":
            place = data.draw(st.integers(0, types[name].length - 1))
            getattr(order, name)[place] = data.draw(NUMBERS) % (1 << 8)
        else:
            setattr(order, name, data.draw(NUMBERS) % (1 << ffi.sizeof(types[name]) * 8))
    attempt(made, arrays, order=order, quanta=400)


def test_footprints_lie_in_what_there_is_for_them():
    made, arrays = tables_of(len(SOURCES) - 1)
    assert (arrays["launches"]["footprint"] > 0).all()
    arrays["launches"]["first_footprint"][-1] = made.order.footprints - 1
    assert attempt(made, arrays) == lib.GS_ERR_ARG
    made, arrays = tables_of(len(SOURCES) - 1)
    arrays["launches"]["footprint"][-1] = 2**32 - 1
    assert attempt(made, arrays) == lib.GS_ERR_ARG


@pytest.mark.parametrize("gpcs", [(0, 0, 2, 3, 4, 5), (6, 1, 2, 3, 4, 5), (255, 1, 2, 3, 4, 5)])
def test_an_order_of_gpcs_that_leaves_some_out(gpcs):
    made, arrays = tables_of(0)
    order = ffi.new("gs_order *", made.order[0])
    params = params_struct(dict(made.values) | {"gpu.gpcs": 6})
    order.gpcs[0:6] = range(6)
    assert attempt(made, arrays, order=order, params=params) >= 0
    order.gpcs[0:6] = gpcs
    assert attempt(made, arrays, order=order, params=params) == lib.GS_ERR_ARG


def change(arrays, table, row, name, value):
    array = arrays[table]
    if name:
        array[name][row] = value
    else:
        array[row] = value


LIMIT = 2**32 - 1
WRONG = [
    (0, "ops", 0, "kind", 200, "kind"),
    (0, "ops", 0, "level", 3, "level"),
    (0, "launches", 0, "program", 9, "program"),
    (0, "launches", 0, "grid", 0, "grid"),
    (0, "launches", 0, "grid", 65536, "2^31"),
    (0, "launches", 0, "arg", 100, "256"),
    (0, "launches", 0, "first_out", LIMIT, "outside"),
    (0, "programs", 0, "warps", 65, "warps"),
    (0, "programs", 0, "warps", 0, "warps"),
    (0, "programs", 0, "entry", LIMIT, "entry"),
    (0, "programs", 0, "ops", 0, "ops"),
    (0, "patterns", 0, "align", 3, "align"),
    (0, "patterns", 0, "minor", 0, "minor"),
    (1, "nodes", 0, "expect", 0, "node 0"),
    (1, "nodes", 0, "kernel", 0, "node 0"),
    (1, "ranges", 0, "count", 0, "range 0"),
    (1, "ranges", 0, "start", LIMIT, "range 0"),
    (1, "preds", 0, "", 10**6, "forward"),
]


@pytest.mark.parametrize(("which", "table", "row", "name", "value", "word"), WRONG)
def test_named_errors(which, table, row, name, value, word):
    made, arrays = tables_of(which)
    change(arrays, table, row, name, value)
    job_code = attempt(made, arrays)
    assert job_code in (lib.GS_ERR_ARG, lib.GS_ERR_LIMIT, lib.GS_ERR_FIT)


def test_two_launches_of_one_rank():
    made, arrays = tables_of(2)
    arrays["launches"]["rank"][1] = arrays["launches"]["rank"][0]
    assert attempt(made, arrays) == lib.GS_ERR_ARG


def test_a_node_that_nobody_counts_down_is_a_deadlock():
    made, arrays = tables_of(2)
    arrays["nodes"]["expect"][0] += 1
    assert attempt(made, arrays, quanta=1 << 30) == lib.GS_ERR_DEADLOCK


@pytest.mark.threads
def test_errors_with_threads():
    made, arrays = tables_of(2)
    arrays["nodes"]["expect"][0] += 1
    assert attempt(made, arrays, quanta=1 << 30, threads=4) == lib.GS_ERR_DEADLOCK
    made, arrays = tables_of(0)
    assert attempt(made, arrays, quanta=1 << 30, threads=0) == lib.GS_ERR_ARG
    assert attempt(made, arrays, quanta=1 << 30, threads=9) == lib.GS_ERR_ARG
