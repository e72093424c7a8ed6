"""Which names of ``runs`` order whole kernels."""

from pysim.schemes.registry import kernel_level


def test_names_with_settings_and_names_of_studies():
    names = (b"stream", b"tb_static:newest", b"graph, window 4", b"stream-K", b"stream", b"stream:sync_code")
    assert kernel_level(names) == ["stream", "graph, window 4", "stream:sync_code"]
