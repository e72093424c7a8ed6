"""Small traces as text, for the tests of the reader."""

FULL = 0xFFFFFFFF
HEADER = {
    "kernel name": "_Z4testPf",
    "kernel id": "1",
    "grid dim": "(1,1,1)",
    "block dim": "(32,1,1)",
    "shmem": "0",
    "nregs": "32",
    "binary version": "70",
    "cuda stream id": "0",
    "shmem base_addr": "0x00007f0000000000",
    "local mem base_addr": "0x00007f0002000000",
    "nvbit version": "1.5.5",
    "accelsim tracer version": "4",
    "enable lineinfo": "0",
}
EXIT = "0100 ffffffff 0 EXIT 0 0"


def header(**changes):
    """Lines of a header; names with blanks are given with underscores, None leaves a line out."""
    fields = HEADER | {name.replace("_", " "): value for name, value in changes.items()}
    # these two have an underscore of their own
    fields = {name.replace("base addr", "base_addr"): value for name, value in fields.items()}
    lines = [f"-{name} = {value}" for name, value in fields.items() if value is not None]
    return [*lines, "", "#traces format = [line_num] PC mask ...", ""]


def tb(place, warps, extra=()):
    """Lines of a TB: ``warps`` is a list of lists of instruction lines, or a dict by warp number."""
    lines = ["#BEGIN_TB", "", "thread block = " + ",".join(map(str, place)), *extra, ""]
    numbered = warps.items() if isinstance(warps, dict) else enumerate(warps)
    for number, insts in numbered:
        lines += [f"warp = {number}", f"insts = {len(insts)}", *insts, ""]
    return [*lines, "#END_TB", ""]


def text(*parts):
    """Bytes of the lines of all parts."""
    return ("\n".join(line for part in parts for line in part) + "\n").encode()


def line_of(data, needle):
    """Number of the first line that holds ``needle``."""
    return data[: data.index(needle.encode())].count(b"\n") + 1
