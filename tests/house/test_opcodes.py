"""The table of SASS opcodes: complete, consistent and sorted the way C searches it."""

import itertools

import pytest

from pysim import opcodes, params

ROWS = opcodes.OPCODES
# what the two recorded traces and ordinary code of each architecture hold
SEEN = {
    61: "MOV S2R XMAD SHL SHR IADD IADD32I ISCADD ISETP BRA SYNC SSY BAR MEMBAR LDS STS LDG STG NOP EXIT",
    70: "LDG STG LDS STS FFMA HMMA IMAD IADD3 LOP3 LEA SHF SHFL BSSY BSYNC WARPSYNC MUFU DFMA I2F F2F DEPBAR",
    75: "LDSM IMMA UMOV ULDC UIADD3 R2UR VOTEU MOVM HFMA2 USEL",
    80: "LDGSTS LDGDEPBAR DEPBAR ARRIVES REDUX DMMA F2FP I2FP ATOMG RED",
    89: "QMMA LDGSTS HMNMX2",
    90: "UTMALDG UTMASTG UBLKCP SYNCS HGMMA WARPGROUP UCGABAR_ARV UCGABAR_WAIT ACQBULK PREEXIT FENCE",
}


def test_rows_name_only_declared_things():
    kinds = [name for name, _ in opcodes.KINDS]
    pipes = ["", *(name for name, _ in params.PIPES)]
    for row in ROWS:
        assert row.kind in kinds, row
        assert row.space in opcodes.SPACES, row
        assert row.pipe in pipes, row
        assert row.peer in opcodes.PEERS, row
        assert row.first in opcodes.SM_VERSIONS, row
        assert row.last in opcodes.SM_VERSIONS, row
        assert row.first <= row.last, row
        assert len(row.name.encode("ascii")) < 20, row
    assert {row.kind for row in ROWS} == set(kinds)


def test_rows_are_sorted_and_ranges_of_a_name_do_not_meet():
    for low, high in itertools.pairwise(ROWS):
        assert (low.name, low.first) < (high.name, high.first)
        assert low.name != high.name or low.last < high.first


@pytest.mark.parametrize("version", sorted(SEEN))
def test_ordinary_code_is_covered(version):
    names = {row.name for row in ROWS if row.first <= version <= row.last}
    assert set(SEEN[version].split()) <= names


def test_old_opcodes_end_and_new_ones_begin():
    def names(version):
        return {row.name for row in ROWS if row.first <= version <= row.last}

    has = {version: names(version) for version in (61, 70, 80, 90)}
    assert "XMAD" in has[61]
    assert "XMAD" not in has[70]
    assert "LDGSTS" not in has[70]
    assert "LDGSTS" in has[80]
    assert "HGMMA" not in has[80]
