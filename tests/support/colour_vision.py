"""How far apart colours are for people with and without full colour vision.

Dichromacy is simulated after Machado, Oliveira and Fernandes, "A Physiologically-based Model for Simulation
of Color Vision Deficiency", IEEE Transactions on Visualization and Computer Graphics 15 (6), 2009: the
matrices of severity 1 of their table, applied to linear RGB. Distances are those of CIE 1976 L*a*b* (D65);
one of about 2.3 is just noticeable side by side.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
from numpy.typing import NDArray

VISION = {
    "full": np.eye(3),
    "protanopia": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
    "deuteranopia": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    ),
    "tritanopia": np.array(
        [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]]
    ),
}
TO_XYZ = np.array(  # of linear sRGB
    [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
)
WHITE = np.array([0.95047, 1.0, 1.08883])


def linear(colour: str) -> NDArray[np.float64]:
    """Return linear RGB of a colour #rrggbb."""
    value = np.array([int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)])
    return np.where(value <= 0.04045, value / 12.92, ((value + 0.055) / 1.055) ** 2.4)


def lab(colour: str, vision: str = "full") -> NDArray[np.float64]:
    """Return L*, a*, b* of a colour as it is seen."""
    seen = np.clip(VISION[vision] @ linear(colour), 0, 1)
    share = TO_XYZ @ seen / WHITE
    root = np.where(share > 216 / 24389, np.cbrt(share), (24389 / 27 * share + 16) / 116)
    return np.array([116 * root[1] - 16, 500 * (root[0] - root[1]), 200 * (root[1] - root[2])])


def closest(colours: list[str], vision: str) -> tuple[float, str, str]:
    """Return the smallest distance between two of the colours, and which."""
    seen = {colour: lab(colour, vision) for colour in colours}
    return min((float(np.linalg.norm(seen[a] - seen[b])), a, b) for a, b in combinations(colours, 2))


def contrast(colour: str, other: str) -> float:
    """Return the contrast of two colours as WCAG 2 defines it, from 1 to 21."""
    bright, dark = sorted((float(TO_XYZ[1] @ linear(each)) for each in (colour, other)), reverse=True)
    return (bright + 0.05) / (dark + 0.05)
