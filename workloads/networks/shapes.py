"""Shapes of published networks: one table, a source a row."""

from __future__ import annotations

from dataclasses import dataclass

DEVLIN = "Devlin et al. 2019, BERT, section 3; vocabulary of the released checkpoints"
RADFORD = "Radford et al. 2019, GPT-2, table 2; heads and vocabulary of the released checkpoints"
BROWN = "Brown et al. 2020, GPT-3, table 2.1; the vocabulary is GPT-2's"
TOUVRON = "Touvron et al. 2023, LLaMA, table 2; feed-forward and vocabulary of the released checkpoints"
TOUVRON2 = "Touvron et al. 2023, Llama 2, table 1 and section 2.2 (grouped queries); released checkpoints"
HE = "He et al. 2016, Deep residual learning, table 1; FLOPs there, parameters of torchvision's models"
SIMONYAN = "Simonyan and Zisserman 2015, VGG, table 1, column E; parameters of torchvision's model"
KRIZHEVSKY = "Krizhevsky 2014, One weird trick, the single column; parameters of torchvision's model"
LECUN = "LeCun et al. 1998, LeNet-5, in the form of Caffe's and PyTorch's tutorials: all maps connected"


@dataclass(frozen=True, slots=True)
class Transformer:
    """``layers`` of ``d`` features, ``heads`` (``kv_heads`` of keys and values, 0: as many) and ``ffn``.

    ``positions``: the longest sequence that was trained; ``published``: parameters as published, in millions;
    ``note``: where the row departs from its source.
    """

    layers: int
    d: int
    heads: int
    ffn: int
    vocabulary: int
    positions: int
    published: float
    source: str
    kv_heads: int = 0
    note: str = ""


def _gpt(
    layers: int, d: int, heads: int, positions: int, published: float, source: str, note: str = ""
) -> Transformer:
    return Transformer(layers, d, heads, 4 * d, 50257, positions, published, source, note=note)


BERT = {
    "bert-base": Transformer(12, 768, 12, 3072, 30522, 512, 110, DEVLIN),
    "bert-large": Transformer(
        24, 1024, 16, 4096, 30522, 512, 335, DEVLIN, note="published as 340M; the checkpoint has 335M"
    ),
}
GPT = {
    "gpt2": _gpt(12, 768, 12, 1024, 124, RADFORD, "published as 117M; the checkpoint has 124M"),
    "gpt2-medium": _gpt(24, 1024, 16, 1024, 355, RADFORD, "published as 345M; the checkpoint has 355M"),
    "gpt2-large": _gpt(36, 1280, 20, 1024, 774, RADFORD, "published as 762M; the checkpoint has 774M"),
    "gpt2-xl": _gpt(48, 1600, 25, 1024, 1558, RADFORD, "published as 1,542M; the checkpoint has 1,558M"),
    "gpt3-125m": _gpt(12, 768, 12, 2048, 125, BROWN),
    "gpt3-350m": _gpt(24, 1024, 16, 2048, 356, BROWN, "published as 350M"),
    "gpt3-760m": _gpt(24, 1536, 16, 2048, 760, BROWN),
    "gpt3-1.3b": _gpt(
        24, 2048, 16, 2048, 1316, BROWN, "16 heads of 128: the table has 24, which do not share 2,048 columns"
    ),
    "gpt3-2.7b": _gpt(32, 2560, 32, 2048, 2651, BROWN),
    "gpt3-6.7b": _gpt(32, 4096, 32, 2048, 6660, BROWN),
    "gpt3-13b": _gpt(40, 5120, 40, 2048, 12860, BROWN, "5,120 columns: the table has 5,140"),
    "gpt3-175b": _gpt(96, 12288, 96, 2048, 174600, BROWN),
}
LLAMA = {
    "llama-7b": Transformer(32, 4096, 32, 11008, 32000, 2048, 6738, TOUVRON),
    "llama-65b": Transformer(80, 8192, 64, 22016, 32000, 2048, 65286, TOUVRON),
    "llama-70b": Transformer(80, 8192, 64, 28672, 32000, 4096, 68977, TOUVRON2, kv_heads=8),
}


@dataclass(frozen=True, slots=True)
class Residual:
    """A ResNet: ``blocks`` of each stage, of two convolutions of 3 x 3, or three with a ``bottleneck``.

    ``published``: parameters in millions; ``gmacs``: multiplications with an addition of an image of 224 x
    224, in billions.
    """

    blocks: tuple[int, ...]
    published: float
    gmacs: float
    source: str
    bottleneck: bool = False
    classes: int = 1000
    note: str = ""


CUSYNC = "cuSync (Jangda et al. 2024) calls a network of 3, 4, 6 and 3 blocks of two convolutions ResNet-38"
RESNET = {
    "resnet18": Residual((2, 2, 2, 2), 11.69, 1.814, HE),
    "resnet34": Residual((3, 4, 6, 3), 21.80, 3.664, HE),
    "resnet38": Residual((3, 4, 6, 3), 21.80, 3.664, HE, note=f"{CUSYNC}: the layers of ResNet-34"),
    "resnet50": Residual((3, 4, 6, 3), 25.56, 4.089, HE, bottleneck=True),
}


@dataclass(frozen=True, slots=True)
class Plain:
    """Convolutions one after another: (filters, side, stride, padding); without filters a maximum of windows.

    ``pooled``: side of the means after them; ``linear``: features of the linear layers after that;
    ``dropped_before``: whether what is dropped is before a linear layer. Others as of :class:`Residual`.
    """

    features: tuple[tuple[int, int, int, int], ...]
    pooled: int
    linear: tuple[int, ...]
    dropped_before: bool
    published: float
    gmacs: float
    source: str


def _stage(filters: int, layers: int) -> tuple[tuple[int, int, int, int], ...]:
    return (*((filters, 3, 1, 1),) * layers, (0, 2, 2, 0))


PLAIN = {
    "vgg19": Plain(
        (*_stage(64, 2), *_stage(128, 2), *_stage(256, 4), *_stage(512, 4), *_stage(512, 4)),
        7, (4096, 4096, 1000), False, 143.67, 19.63, SIMONYAN,
    ),
    "alexnet-torch": Plain(
        (
            (64, 11, 4, 2), (0, 3, 2, 0), (192, 5, 1, 2), (0, 3, 2, 0), (384, 3, 1, 1), (256, 3, 1, 1),
            (256, 3, 1, 1), (0, 3, 2, 0),
        ),
        6, (4096, 4096, 1000), True, 61.10, 0.714, KRIZHEVSKY,
    ),
}  # fmt: skip
LENET = 61.706, LECUN  # thousand parameters


@dataclass(frozen=True, slots=True)
class Genes:
    """A cell: pairs of (operation, input), two of which make a sum, and which results are concatenated."""

    pairs: tuple[tuple[str, int], ...]
    kept: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Cells:
    """A network of searched cells: ``layers`` normal cells a stage, ``filters`` of the first stage."""

    normal: Genes
    reduction: Genes
    layers: int
    filters: int
    published: float
    gmacs: float
    source: str
    classes: int = 1000
    note: str = ""


CELLS = {
    "nasnet-a": Cells(
        Genes(
            (
                ("sep5", 1), ("sep3", 0), ("sep5", 0), ("sep3", 0), ("avg", 1), ("skip", 0), ("avg", 0),
                ("avg", 0), ("sep3", 1), ("skip", 1),
            ),
            (0, 2, 3, 4, 5, 6),
        ),
        Genes(
            (
                ("sep5", 1), ("sep7", 0), ("max", 1), ("sep7", 0), ("avg", 1), ("sep5", 0), ("skip", 3),
                ("avg", 2), ("sep3", 2), ("max", 1),
            ),
            (3, 4, 5, 6),
        ),
        4, 44, 5.3, 0.564, "Zoph et al. 2018, NASNet, figure 4 and table 2: NASNet-A (4 @ 1056)",
    ),
    "amoebanet-a": Cells(
        Genes(
            (
                ("avg", 0), ("max", 1), ("sep3", 0), ("sep5", 2), ("sep3", 0), ("avg", 3), ("sep3", 1),
                ("skip", 1), ("skip", 0), ("avg", 1),
            ),
            (4, 5, 6),
        ),
        Genes(
            (
                ("avg", 0), ("sep3", 1), ("max", 0), ("sep7", 2), ("sep7", 0), ("avg", 1), ("max", 0),
                ("max", 1), ("sep7", 0), ("sep3", 5),
            ),
            (3, 4, 6),
        ),
        4, 50, 5.1, 0.555, "Real et al. 2019, AmoebaNet, figure 5 and table 2: AmoebaNet-A (4, 50)",
        note="cells as in DARTS's genotypes; 1 x 7 and 7 x 1 filters are taken as separable 7 x 7",
    ),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Wired:
    """RandWire-WS of the small regime: ``nodes`` of a stage, ``filters`` of the first.

    Nodes are in a ring with ``near`` neighbours each, edges rewired with a probability of ``rewired``.
    """

    nodes: int
    filters: int
    near: int
    rewired: float
    published: float
    gmacs: float
    source: str
    classes: int = 1000


RANDWIRE = Wired(
    32, 78, 4, 0.75, 5.6, 0.583, "Xie et al. 2019, RandWire, tables 1 and 2, WS(4, 0.75), C = 78"
)


@dataclass(frozen=True, slots=True)
class Experts:
    """A mixture of ``experts`` of which a token goes to ``top``: ``d`` columns, ``ffn`` within an expert."""

    d: int
    ffn: int
    experts: int
    top: int
    source: str


MIXTRAL = Experts(4096, 14336, 8, 2, "Jiang et al. 2024, Mixtral 8x7B, table 1")


@dataclass(frozen=True, slots=True)
class Speech:
    """DeepSpeech2: ``layers`` of ``cell`` with ``hidden`` units in both directions, ``labels``.

    ``published``: parameters as published, in millions.
    """

    cell: str
    hidden: int
    layers: int
    labels: int
    published: float
    source: str
    note: str = ""


SPEECH = {
    "deepspeech2": Speech(
        "gru", 800, 5, 29, 41.3,
        "SeanNaren/deepspeech.pytorch: defaults of train.py, two convolutions of 32 filters; SeqPoint"
        " (arXiv 2007.10459) samples this network",
        note="no total is published: with 7 layers of 768 units and 73 labels it has 52M (issue 608 there)",
    ),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Translation:
    """GNMT: ``layers`` of each side with ``hidden`` units; ``published``: parameters, in millions."""

    hidden: int
    layers: int
    vocabulary: int
    published: float
    source: str


TRANSLATION = {
    "gnmt": Translation(
        1024, 4, 32320, 160.671297,
        "GNMT v2 of MLPerf (mlcommons/training, rnn_translator) and of NVIDIA's DeepLearningExamples; shapes"
        " of all 160,671,297 parameters: tests of distributed optimisers of NVIDIA's apex",
    ),
}  # fmt: skip
