"""What the name of a library's kernel says: tile, stages, cluster, warps, layout."""

import re

NAME_COLUMNS = [
    "family",
    *("tile_m", "tile_n", "tile_k", "stages", "cluster_m", "cluster_n"),
    *("warps_m", "warps_n", "warps_k", "name_split_k", "name_layout"),
]
OTHER_FAMILIES = r"gemv\w*|gemmsn\w*|gemmk1\w*|dot_kernel|sgemm_largek\w*|fmha\w*"
SIDE = r"nchwtonhwc|nhwctonchw|tensortransform|region_transform|fillfunctor|scal_kernel|convert_?tensor"
REDUCE = r"splitk.?reduce|split_k_reduce|reduce_1block|splitkreduce|reducesplit"


def _fill(row, match, *columns):
    if match:
        for column, value in zip(columns, match.groups(), strict=False):
            row[column] = value or ""


def _nvjet(row, name, low):
    # nvjet_<chip>_<types>_<tile>_<tile k x stages>_<cluster>_<order>_..._<layout>
    row["family"] = "nvjet"
    sizes = re.search(r"nvjet(?:_sm\d+)?_[a-z0-9]+_(\d+)x(\d+)_(\d+)x(\d+)_(\d+)x(\d+)", low)
    _fill(row, sizes, "tile_m", "tile_n", "tile_k", "stages", "cluster_m", "cluster_n")
    _fill(row, re.search(r"_([NT]{2,3})(?:$|\W)", name), "name_layout")


def _xmma(row, low):
    row["family"] = (re.search(r"sm\d+_xmma_[a-z]+", low) or [""])[0]
    _fill(row, re.search(r"tilesize(\d+)x(\d+)x(\d+)", low), "tile_m", "tile_n", "tile_k")
    _fill(row, re.search(r"_stage(\d+)", low), "stages")
    _fill(row, re.search(r"warpsize(\d+)x(\d+)x(\d+)", low), "warps_m", "warps_n", "warps_k")
    _fill(row, re.search(r"(?:cgasize|cga|clustersize|cluster)(\d+)x(\d+)", low), "cluster_m", "cluster_n")
    _fill(row, re.search(r"_([nt]{2})_[nt]_", low), "name_layout")


def _cutlass(row, low):
    found = re.search(r"cutlass[a-z0-9_]*?(?=_\d+x\d+)", low)
    row["family"] = found[0] if found else "cutlass"
    sizes = re.search(r"_(\d+)x(\d+)(?:_(\d+)x(\d+))?_(?:[nt]{2}|nhwc|nchw)", low)
    _fill(row, sizes, "tile_m", "tile_n", "tile_k", "stages")
    if not row["tile_m"]:
        shape = re.search(r"gemmshapeili(\d+)eli(\d+)eli(\d+)e", low)
        _fill(row, shape, "tile_m", "tile_n", "tile_k")
    _fill(row, re.search(r"_([nt]{2})(?:_|$|>)", low), "name_layout")


def _mangled_cutlass(row, name):
    # C++ symbols of CUTLASS 3, such as those of grouped GEMMs
    row["family"] = "cutlass3x"
    main = re.search(r"MainloopSm90\w*?ILi(\d+)ENS\w+?_IJNS\w*?ILi(\d+)EEENS\w*?ILi(\d+)EEE", name)
    _fill(row, main, "stages", "cluster_m", "cluster_n")
    size = r"NS\w{1,2}_ILi(\d+)EEE"
    tile = re.search(rf"(?:Pingpong|Cooperative)EEENS\w+?_IJ{size}{size}(?:{size}|S\w+?_EEE)", name)
    _fill(row, tile, "tile_m", "tile_n", "tile_k")
    if tile and not tile[3]:
        row["tile_k"] = tile[2]  # a symbol names again what stands before


def _older(row, low):
    row["family"] = re.search(r"(?:ampere|volta|maxwell|turing|hopper)_[a-z0-9]+", low)[0]
    _fill(row, re.search(r"_(\d+)x(\d+)(?:_(\d+)x(\d+))?", low), "tile_m", "tile_n", "tile_k", "stages")
    _fill(row, re.search(r"stages_(\d+)x(\d+)", low), "tile_k", "stages")
    _fill(row, re.search(r"_([nt]{2})(?:_|$)", low), "name_layout")


def _attention(row, low):
    # tile of queries x keys, then width of a head; FlashAttention's template has the width first
    row["family"] = (
        re.search(r"flash_fwd\w*|flash_bwd\w*|fmha_cutlass\w*|cudnn\w*_sdpa_sm\d+", low) or [""]
    )[0]
    flash = re.search(r"flash_fwd_kernel_traits<(\d+), (\d+), (\d+), (\d+)", low)
    _fill(row, flash, "tile_k", "tile_m", "tile_n", "warps_m")
    sizes = re.search(r"_(\d+)x(\d+)x(\d+)_(\d+)x(\d+)x(\d+)_cga(\d+)x(\d+)", low)
    columns = ("tile_m", "tile_n", "tile_k", "warps_m", "warps_n", "warps_k", "cluster_m", "cluster_n")
    _fill(row, sizes, *columns)


def parse_name(name):
    """Return NAME_COLUMNS of a kernel's name, empty where the name says nothing."""
    row = dict.fromkeys(NAME_COLUMNS, "")
    low = name.lower()
    if "nvjet" in low:
        _nvjet(row, name, low)
    elif re.search(r"flash_(?:fwd|bwd)|fmha_cutlass|_sdpa_sm", low):
        _attention(row, low)
    elif "xmma" in low:
        _xmma(row, low)
    elif name.startswith("_ZN7cutlass"):
        _mangled_cutlass(row, name)
    elif "cutlass" in low:
        _cutlass(row, low)
    elif re.search(r"(ampere|volta|maxwell|turing|hopper)_[a-z0-9]+", low):
        _older(row, low)
    else:
        found = re.search(OTHER_FAMILIES, low)
        row["family"] = found[0] if found else ""
    if re.search(r"split_?k|segment_k_on", low) and "reduce" not in low:
        row["name_split_k"] = "1"
    return row


def is_side_kernel(name):
    """Say whether a kernel changes a layout or fills memory around the kernel that does the work."""
    return bool(re.search(SIDE, name.lower()))


def is_reduce(name):
    """Say whether a kernel adds up the parts of a split-K GEMM."""
    return bool(re.search(REDUCE, name.lower()))
