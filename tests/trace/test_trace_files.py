"""The reader of traces: lists of kernels, folders and packed files."""

import lzma

import pytest

from pysim.errors import WorkloadError
from pysim.trace.kernels_list import KernelFile, Memcpy, read_list
from pysim.trace.reader import read_kernel

from .read import SAMPLE, plain


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "kernel-1.traceg").write_bytes(SAMPLE)
    return tmp_path / "run"


def listed(folder, *lines):
    (folder / "kernelslist.g").write_text("\n".join(lines) + "\n")
    return read_list(folder)


def test_list_of_kernels(folder):
    found = listed(
        folder,
        "MemcpyHtoD,0x00007fb02d700000,4096",
        "",
        "MemcpyDtoH,0x1,2",
        "kernel-1.traceg",
        "kernel-1.traceg ",
    )
    path = folder / "kernel-1.traceg"
    assert found == (Memcpy(0x7FB02D700000, 4096, 1), KernelFile(path, 1, 4), KernelFile(path, 2, 5))
    assert len(list(read_kernel(path))) == 3
    assert read_list(folder / "kernelslist.g") == found
    (folder / "kernelslist.g").rename(folder / "kernelslist_ctx_0x55.g")
    assert read_list(folder) == found


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("kernel-2.traceg", "no such file"),
        ("kernel-1.trace", "does not end in"),
        ("kernel/../../kernel-1.traceg", "leaves the folder"),
        ("/etc/kernel-1.traceg", "absolute path"),
        ("kernel-link.traceg", "leaves the folder"),
        ("MemcpyHtoD,0x0", "not MemcpyHtoD,ADDRESS,BYTES"),
        ("MemcpyHtoD,0xfffffffffffffff0,17", "outside 64 bits"),
        ("MemcpyHtoD,0x10,-1", "outside 64 bits"),
        ("MemcpyHtoDAsync,0x10,4", "not MemcpyHtoD,ADDRESS,BYTES"),
        ("MemcpyDtoH,0x10", "not MemcpyDtoH,ADDRESS,BYTES"),
        ("Memset,0x10,0,4", "not understood: 'Memset,0x10,0,4'"),
        ("MemcpyDtoD,0x10,4", "not understood"),
        ("memcpyhtod,0x10,4", "not understood"),
        ("// note", "not understood"),
        ("4096", "not understood"),
        ("Kernel-1.TRACEG", "not understood"),
        ("../kernel-1.traceg", "leaves the folder"),
        ("sub/kernel-1.traceg", "no such file"),
        ("# kernel-1.traceg", "a comment names a kernel's file"),
    ],
)
def test_bad_lists(folder, line, what):
    (folder / "kernel").mkdir()
    (folder.parent / "kernel-1.traceg").write_bytes(SAMPLE)
    (folder / "kernel-link.traceg").symlink_to(folder.parent / "kernel-1.traceg")
    with pytest.raises(WorkloadError, match=what) as caught:
        listed(folder, "kernel-1.traceg", line)
    assert str(caught.value).startswith(f"{folder / 'kernelslist.g'}:2: ")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "line", ["./kernel-1.traceg", ".//kernel-1.traceg", "\tkernel-1.traceg\r", "twice/other.traceg"]
)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_names_and_encodings_of_a_list(folder, line, encoding):
    (folder / "twice").mkdir()
    (folder / "twice" / "other.traceg").write_bytes(SAMPLE)
    for lines in ([line, "# a comment", "", "kernel-1.traceg"], ["kernel-1.traceg", "#", line]):
        (folder / "kernelslist.g").write_bytes("\n".join(lines).encode(encoding))
        found = read_list(folder)
        assert [command.number for command in found] == [1, 2]
        assert sum(command.path.samefile(folder / line.strip()) for command in found) >= 1


def test_folders_without_a_list(folder):
    with pytest.raises(WorkloadError, match=r"no kernelslist\.g"):
        read_list(folder)
    with pytest.raises(WorkloadError, match="no such file or folder"):
        read_list(folder / "none")
    with pytest.raises(WorkloadError, match="names no kernel"):
        listed(folder, "MemcpyHtoD,0x0,0")
    with pytest.raises(WorkloadError, match="no such file"):
        next(read_kernel(folder / "kernel-9.traceg"))
    with pytest.raises(WorkloadError, match="must end in"):
        next(read_kernel(folder / "kernelslist.g"))


def test_what_is_given_in_place_of_a_folder(folder):
    with pytest.raises(WorkloadError, match="the trace of one kernel: give its folder"):
        read_list(folder / "kernel-1.traceg")
    listed(folder, "kernel-1.traceg")
    with pytest.raises(WorkloadError, match=rf"no kernelslist\.g: did you mean .*{folder.name}\?"):
        read_list(folder.parent)
    (folder / "kernelslist.g").rename(folder / "kernelslist")
    with pytest.raises(WorkloadError, match="as the tracer leaves it"):
        read_list(folder)
    for name in ("kernelslist.g", "kernelslist-2.g"):
        (folder / name).write_text("kernel-1.traceg\n")
    assert len(read_list(folder)) == 1
    (folder / "kernelslist.g").rename(folder / "kernelslist-1.g")
    with pytest.raises(WorkloadError, match="several"):
        read_list(folder)


def test_xz(folder):
    expect = plain(folder / "kernel-1.traceg")
    packed = folder / "kernel-1.traceg.xz"
    packed.write_bytes(lzma.compress(SAMPLE))
    assert plain(packed) == expect
    packed.write_bytes(lzma.compress(SAMPLE[:500]) + bytes(8) + lzma.compress(SAMPLE[500:]))
    assert plain(packed) == expect
    packed.write_bytes(lzma.compress(SAMPLE)[:-20])
    with pytest.raises(WorkloadError, match=r"xz:\d+: the xz data is cut short"):
        plain(packed)
    packed.write_bytes(b"not xz at all")
    with pytest.raises(WorkloadError, match=r"xz:1: xz: "):
        plain(packed)
    packed.write_bytes(lzma.compress(SAMPLE) + b"tail")
    with pytest.raises(WorkloadError, match=r"xz:\d+: "):
        plain(packed)


def test_xz_bomb(folder):
    # blank lines are good text, so that only the ratio stops this one
    packer = lzma.LZMACompressor(preset=1)
    block = b"\n" * (1 << 20)
    data = packer.compress(SAMPLE) + b"".join(packer.compress(block) for _ in range(72)) + packer.flush()
    path = folder / "kernel-1.traceg.xz"
    path.write_bytes(data)
    with pytest.raises(WorkloadError, match=r"xz:\d+: \d+ bytes unpack to more than \d+: this is no trace"):
        plain(path)
