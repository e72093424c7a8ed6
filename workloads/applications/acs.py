"""Kernel graphs of ACS (Durvasula et al., arXiv 2401.12377): three groups, a picture or some steps each."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Graph:
    """``make``: what the registry builds it from; ``small``: the same, for a quick look."""

    group: str
    make: str
    small: str


RIGID, DYNAMIC, STATIC = "rigid bodies", "dynamic networks", "static networks"

GRAPHS: dict[str, Graph] = {
    **{
        name: Graph(RIGID, f"rigid:system={name}", f"rigid:system={name},envs=256,steps=1")
        for name in ("ant", "grasp", "humanoid", "cheetah", "walker")
    },
    "instanas": Graph(DYNAMIC, "network:kind=instanas", "network:kind=instanas"),
    "routing": Graph(DYNAMIC, "network:kind=routing", "network:kind=routing,layers=3"),
    "condconv": Graph(DYNAMIC, "network:kind=condconv", "network:kind=condconv"),
    "nasnet": Graph(STATIC, "network:kind=nasnet", "network:kind=nasnet,layers=2"),
    "amoebanet": Graph(STATIC, "network:kind=amoebanet", "network:kind=amoebanet,layers=2"),
    "squeezenet": Graph(STATIC, "network:kind=squeezenet", "network:kind=squeezenet"),
    "randwire": Graph(STATIC, "network:kind=randwire", "network:kind=randwire,layers=6"),
}
