"""Every SASS opcode that a trace may hold (stdlib only: the build reads this file too).

Which opcodes an SM version has is from the instruction set reference of NVIDIA's CUDA Binary Utilities;
the class that Accel-Sim gives each is its peer column. The pipe is where the real SM runs it, as far as
that is known: floats are compared in the integer pipe; conversions and bit counts share the unit of MUFU; moves between register files, uniform
instructions and special registers keep no arithmetic pipe busy and are counted with control.
"""

from __future__ import annotations

from typing import NamedTuple

SM_VERSIONS = (60, 61, 62, 70, 72, 75, 80, 86, 87, 89, 90)

# what an instruction does to a warp; the value in C is the position
KINDS: tuple[tuple[str, str], ...] = (
    ("ALU", "arithmetic, moves, predicates: registers in, registers out"),
    ("LOAD", "load through the L1 or from shared memory"),
    ("STORE", "store; no register comes back"),
    ("ATOMIC", "atomic update that returns the old value"),
    ("REDUCE", "atomic update that returns nothing"),
    ("SHUFFLE", "exchange between lanes, through the shared-memory pipe"),
    ("CONSTANT", "load from constant memory"),
    ("TEXTURE", "texture or surface access; traces hold no addresses"),
    ("BARRIER", "barrier of the TB"),
    ("MEMBAR", "wait for one's own accesses"),
    ("FENCE", "order between generic and asynchronous accesses"),
    ("CCTL", "cache control; .IVALL drops the L1"),
    ("EXIT", "ends threads"),
    ("BRANCH", "control flow; the recorded path is followed"),
    ("NOP", "takes an issue slot only"),
    ("DEPBAR", "wait until at most imm groups of asynchronous copies are outstanding"),
    ("ASYNC_COPY", "LDGSTS: global to shared past the registers"),
    ("ASYNC_COMMIT", "closes a group of asynchronous copies"),
    ("GMMA", "warp-group matrix multiply, asynchronous"),
    ("GMMA_ARRIVE", "registers are handed to the warp-group multiplies that follow"),
    ("GMMA_WAIT", "wait until at most imm groups of warp-group multiplies are outstanding"),
    ("BULK_LOAD", "bulk copy or tensor tile from global to shared"),
    ("BULK_STORE", "bulk copy or tensor tile from shared to global"),
    ("BULK_REDUCE", "bulk reduction from shared to global"),
    ("BULK_PREFETCH", "bulk prefetch into L2"),
    ("BULK_COMMIT", "closes a group of bulk stores"),
    ("MBARRIER", "transaction barrier: initialise or other"),
    ("MBARRIER_ARRIVE", "arrives on a transaction barrier"),
    ("MBARRIER_WAIT", "tests a transaction barrier's phase"),
    ("PDL_WAIT", "wait for the kernels that this one depends on"),
    ("PDL_TRIGGER", "lets dependent kernels start"),
    ("CLUSTER_ARRIVE", "arrives on the barrier of the cluster"),
    ("CLUSTER_WAIT", "waits at the barrier of the cluster"),
)

SPACES = ("", "global", "shared", "local", "generic")
PEERS = ("sp", "int", "alu", "dp", "sfu", "tensor", "branch", "tex", "uniform", "mem")


class Opcode(NamedTuple):
    """One opcode on the SM versions ``first`` to ``last``.

    ``name`` is the mnemonic before the first dot, or before the second where the part after the first
    changes the class. ``pipe`` is one of ``pysim.params.PIPES`` or empty (memory); ``peer`` the unit
    that Accel-Sim uses; ``space`` where a memory instruction goes (``generic``: the address decides).
    """

    name: str
    kind: str
    space: str
    pipe: str
    peer: str
    first: int
    last: int
    doc: str


class _Group(NamedTuple):
    """Opcodes that differ in nothing but their names."""

    kind: str
    space: str
    pipe: str
    peer: str
    first: int
    last: int
    doc: str
    names: str


_GROUPS: tuple[_Group, ...] = (
    # 32-bit floating point
    _Group("ALU", "", "fp32", "sp", 60, 90, "32-bit floating point", "FADD FADD32I FCHK FFMA FFMA32I FMUL FMUL32I FSWZADD FSWZ"),
    _Group("ALU", "", "int", "sp", 60, 90, "comparison and selection of 32-bit floats, in the integer pipe", "FMNMX FSEL FSET FSETP"),
    _Group("ALU", "", "int", "sp", 60, 62, "comparison of 32-bit floats", "FCMP"),
    _Group("ALU", "", "fp32", "sp", 60, 62, "range reduction before MUFU", "RRO"),
    _Group("ALU", "", "sfu", "sfu", 60, 90, "exp2, rcp, rsqrt, sin, tanh", "MUFU"),
    # 16-bit floating point, two a lane
    _Group("ALU", "", "fp16", "sp", 60, 90, "packed 16-bit floating point", "HADD2 HFMA2 HMUL2 HSET2 HSETP2"),
    _Group("ALU", "", "fp16", "sp", 60, 90, "packed 16-bit floating point", "HADD2_32I HFMA2_32I HMUL2_32I"),
    _Group("ALU", "", "fp16", "sp", 80, 90, "packed 16-bit floating point", "HMNMX2 VHMNMX"),
    # tensor cores
    _Group("ALU", "", "tensor", "tensor", 70, 90, "matrix multiply of a warp", "HMMA"),
    _Group("ALU", "", "tensor", "tensor", 72, 90, "matrix multiply of a warp", "IMMA"),
    _Group("ALU", "", "tensor", "int", 60, 70, "matrix multiply of a warp", "IMMA"),
    _Group("ALU", "", "tensor", "tensor", 75, 90, "matrix multiply of a warp", "BMMA"),
    _Group("ALU", "", "tensor", "tensor", 80, 90, "matrix multiply of a warp", "DMMA"),
    _Group("ALU", "", "tensor", "tensor", 89, 90, "matrix multiply of a warp", "QMMA"),
    _Group("GMMA", "", "tensor", "tensor", 90, 90, "matrix multiply of a warp group", "HGMMA QGMMA IGMMA BGMMA"),
    _Group("GMMA_ARRIVE", "", "control", "alu", 90, 90, "before a warp-group multiply", "WARPGROUP WARPGROUP.ARRIVE WARPGROUPSET"),
    _Group("GMMA_WAIT", "", "control", "alu", 90, 90, "wait for warp-group multiplies", "WARPGROUP.DEPBAR"),
    # 64-bit floating point
    _Group("ALU", "", "fp64", "dp", 60, 90, "64-bit floating point", "DADD DFMA DMUL DSETP"),
    _Group("ALU", "", "fp64", "dp", 60, 62, "64-bit floating point", "DMNMX DSET"),
    # integers
    _Group("ALU", "", "int", "int", 60, 90, "integer and logic", "BMSK IABS IADD IADD3 IADD32I IDP IDP4A IMAD IMNMX IMUL IMUL32I ISCADD ISCADD32I ISETP LEA LOP LOP3 LOP32I SHF SHL SHR VABSDIFF VABSDIFF4"),
    _Group("ALU", "", "int", "int", 60, 62, "integer and logic", "BFE BFI ICMP IMADSP ISAD ISET VADD VMNMX VSET VSETP VSHL VSHR VMAD XMAD"),
    _Group("ALU", "", "sfu", "int", 60, 90, "bit counts, at the rate of the special functions", "BREV FLO POPC"),
    _Group("ALU", "", "int", "int", 90, 90, "integer with minimum and maximum", "VIADD VIADDMNMX"),
    _Group("ALU", "", "int", "sp", 90, 90, "integer with minimum and maximum", "VIMNMX VIMNMX3"),
    # conversions
    _Group("ALU", "", "sfu", "alu", 60, 90, "conversion", "F2F F2I FRND I2F I2I"),
    _Group("ALU", "", "int", "alu", 60, 90, "conversion with packing", "F2FP F2IP I2FP I2IP"),
    # moves and predicates
    _Group("ALU", "", "int", "alu", 60, 90, "move or select", "MOV MOV32I PRMT SEL SGXT"),
    _Group("ALU", "", "int", "alu", 60, 90, "predicates", "PLOP3 PSETP P2R R2P"),
    _Group("ALU", "", "int", "alu", 60, 62, "predicates and condition codes", "CSET CSETP PSET CC2R R2CC"),
    _Group("SHUFFLE", "", "", "alu", 60, 90, "exchange between lanes", "SHFL"),
    _Group("SHUFFLE", "", "", "alu", 75, 90, "matrix transpose between lanes", "MOVM"),
    _Group("ALU", "", "int", "alu", 60, 90, "vote of a warp", "VOTE VOTE_VTG"),
    _Group("ALU", "", "int", "alu", 60, 90, "match between lanes", "MATCH"),
    _Group("ALU", "", "control", "alu", 60, 90, "special registers and state", "B2R CS2R CSMTEST GETLMEMBASE LEPC QSPC R2B S2R SETCTAID SETLMEMBASE"),
    # memory
    _Group("LOAD", "generic", "", "mem", 60, 90, "load", "LD"),
    _Group("LOAD", "global", "", "mem", 60, 90, "load", "LDG"),
    _Group("LOAD", "local", "", "mem", 60, 90, "load", "LDL"),
    _Group("LOAD", "shared", "", "mem", 60, 90, "load", "LDS"),
    _Group("LOAD", "shared", "", "mem", 75, 90, "load of matrices", "LDSM"),
    _Group("STORE", "generic", "", "mem", 60, 90, "store", "ST"),
    _Group("STORE", "global", "", "mem", 60, 90, "store", "STG"),
    _Group("STORE", "local", "", "mem", 60, 90, "store", "STL"),
    _Group("STORE", "shared", "", "mem", 60, 90, "store", "STS"),
    _Group("STORE", "shared", "", "alu", 90, 90, "store of matrices", "STSM"),
    _Group("STORE", "shared", "", "mem", 90, 90, "store to the shared memory of the cluster", "STAS"),
    _Group("ATOMIC", "generic", "", "mem", 60, 90, "atomic", "ATOM"),
    _Group("ATOMIC", "global", "", "mem", 60, 90, "atomic", "ATOMG"),
    _Group("ATOMIC", "shared", "", "mem", 60, 90, "atomic", "ATOMS"),
    _Group("REDUCE", "global", "", "mem", 60, 90, "reduction", "RED"),
    _Group("REDUCE", "global", "", "mem", 90, 90, "reduction", "REDG"),
    _Group("REDUCE", "shared", "", "mem", 90, 90, "reduction in the shared memory of the cluster", "REDAS"),
    _Group("LOAD", "global", "", "mem", 90, 90, "reducing load over several GPUs", "LDGMC"),
    _Group("CONSTANT", "", "", "alu", 60, 90, "constant load", "LDC"),
    _Group("CCTL", "", "control", "alu", 60, 90, "cache control", "CCTL CCTLL CCTLT"),
    _Group("MEMBAR", "", "control", "mem", 60, 90, "wait for one's own accesses", "MEMBAR"),
    _Group("NOP", "", "control", "alu", 60, 90, "error barrier", "ERRBAR"),
    _Group("NOP", "", "control", "alu", 90, 90, "error barrier of a cluster", "CGAERRBAR"),
    _Group("FENCE", "", "control", "mem", 90, 90, "fence between proxies", "FENCE"),
    _Group("ASYNC_COPY", "global", "", "mem", 80, 90, "copy from global to shared", "LDGSTS"),
    _Group("ASYNC_COMMIT", "", "control", "alu", 80, 90, "closes a group of copies", "LDGDEPBAR"),
    _Group("DEPBAR", "", "control", "alu", 60, 90, "wait for scoreboards or groups", "DEPBAR"),
    _Group("MBARRIER_ARRIVE", "shared", "", "mem", 80, 90, "arrive when copies are done", "ARRIVES"),
    # bulk copies and transaction barriers
    _Group("BULK_LOAD", "global", "", "mem", 90, 90, "tensor tile or bytes to shared", "UTMALDG UBLKCP UBLKCP.S"),
    _Group("BULK_STORE", "global", "", "mem", 90, 90, "tensor tile or bytes to global", "UTMASTG UBLKCP.G"),
    _Group("BULK_REDUCE", "global", "", "mem", 90, 90, "tensor tile or bytes into global", "UTMAREDG UBLKRED"),
    _Group("BULK_PREFETCH", "global", "", "mem", 90, 90, "tensor tile or bytes into L2", "UTMAPF UBLKPF"),
    _Group("BULK_COMMIT", "", "control", "mem", 90, 90, "closes a group of bulk stores", "UTMACMDFLUSH"),
    _Group("NOP", "", "control", "mem", 90, 90, "cache of tensor descriptors", "UTMACCTL"),
    _Group("MBARRIER", "shared", "", "mem", 90, 90, "transaction barrier", "SYNCS"),
    _Group("MBARRIER_ARRIVE", "shared", "", "mem", 90, 90, "transaction barrier: arrive", "SYNCS.ARRIVE"),
    _Group("MBARRIER_WAIT", "shared", "", "mem", 90, 90, "transaction barrier: test", "SYNCS.PHASECHK"),
    _Group("PDL_WAIT", "", "control", "alu", 90, 90, "programmatic launch: wait", "ACQBULK"),
    _Group("PDL_TRIGGER", "", "control", "alu", 90, 90, "programmatic launch: trigger", "PREEXIT"),
    _Group("CLUSTER_ARRIVE", "", "control", "alu", 90, 90, "barrier of the cluster: arrive", "UCGABAR_ARV"),
    _Group("CLUSTER_WAIT", "", "control", "alu", 90, 90, "barrier of the cluster: wait", "UCGABAR_WAIT"),
    # uniform datapath: one value a warp
    _Group("ALU", "", "control", "uniform", 75, 90, "uniform arithmetic", "R2UR S2UR UBMSK UBREV UCLEA UF2FP UFLO UIADD3 UIMAD UISETP ULEA ULOP ULOP3 ULOP32I UMOV UP2UR UPLOP3 UPOPC UPRMT UPSETP UR2UP USEL USGXT USHF USHL USHR VOTEU"),
    _Group("ALU", "", "int", "uniform", 80, 90, "reduction over the lanes", "REDUX"),
    _Group("CONSTANT", "", "", "uniform", 75, 90, "uniform constant load", "ULDC"),
    _Group("NOP", "", "control", "alu", 90, 90, "sizes of registers or shared memory", "USETMAXREG USETSHMSZ"),
    # textures and surfaces
    _Group("TEXTURE", "", "", "alu", 60, 62, "texture", "TEX TEXS TLD TLDS TLD4 TLD4S TMML TXA TXD TXQ TXDEPBAR"),
    _Group("TEXTURE", "", "", "tex", 70, 90, "texture", "TEX TLD TLD4 TMML TXD TXQ"),
    _Group("TEXTURE", "", "", "alu", 60, 90, "surface", "SUATOM SULD SUQUERY SURED SUST"),
    # control flow
    _Group("EXIT", "", "control", "branch", 60, 90, "ends threads", "EXIT KILL"),
    _Group("BRANCH", "", "control", "branch", 60, 90, "control flow", "BPT BRA BRX CALL JMP JMX RET RTT NANOSLEEP WARPSYNC YIELD BMOV BREAK BSSY BSYNC RPCMOV"),
    _Group("BRANCH", "", "control", "branch", 60, 62, "control flow", "BRK CAL CONT IDE JCAL LONGJMP PBK PCNT PEXIT PLONGJMP PRET RAM SAM SSY SYNC"),
    _Group("BRANCH", "", "control", "branch", 75, 90, "control flow", "BRXU JMXU"),
    _Group("BRANCH", "", "control", "branch", 90, 90, "control flow", "ELECT ENDCOLLECTIVE"),
    _Group("BARRIER", "", "control", "mem", 60, 90, "barrier of the TB", "BAR"),
    _Group("NOP", "", "control", "alu", 60, 90, "nothing", "NOP PMTRIG"),
    # marks that the tracer itself writes around a spin loop
    _Group("NOP", "", "control", "alu", 90, 90, "mark of the tracer", "REPLAY_START REPLAY_END"),
)

# sorted by name, then SM version, so that C finds a name by halving; the opcode of a parsed
# instruction is a position in here
OPCODES: tuple[Opcode, ...] = tuple(
    sorted(
        Opcode(name, group.kind, group.space, group.pipe, group.peer, group.first, group.last, group.doc)
        for group in _GROUPS
        for name in group.names.split()
    )
)
