"""Origins of kernels on a tape: part of the network, operation, way."""

from collections import Counter

import pytest

from pysim.program.job import Memory
from pysim.workloads.framework.language import LanguageModel, language_model
from pysim.workloads.framework.layers import Layer
from pysim.workloads.framework.tape import Tape


@pytest.fixture(scope="module")
def tape():
    made = Tape(Memory())
    language_model(LanguageModel(Layer(128, 2, 512, 2, 128), 2, 1024, 512), made)
    return made


def test_every_kernel_has_an_origin_and_flops_add_up(tape):
    assert len(tape.origins) == len(tape.kernels)
    assert all(origin.operation for origin in tape.origins)
    assert sum(tape.worked.values()) == tape.flops


def test_layers_are_alike_but_for_their_number(tape):
    def of(layer):
        found = [(o._replace(parts=o.parts[1:])) for o in tape.origins if o.parts[:1] == (layer,)]
        return Counter(found)

    assert of("layer 0") == of("layer 1")
    assert of("layer 0").total() >= 50


def test_gradients_belong_to_the_operation_that_was_recorded(tape):
    forward = {o[:2] for o in tape.origins if not o.backward and o.parts[:1] == ("layer 1",)}
    backward = {o[:2] for o in tape.origins if o.backward and o.parts[:1] == ("layer 1",)}
    sums = {each for each in backward if each[1] == "column_sums"}
    assert {parts[-1] for parts, _ in sums} == {"qkv", "o", "f1", "f2"}
    # V has no gradient of its own copy, and a sum gives its gradient on as it is
    assert forward - backward == {(("layer 1",), "take_v"), (("layer 1",), "add")}
    assert backward - sums < forward


def test_backward_has_twice_the_flops_of_linear_layers(tape):
    each = {o[::2]: n for o, n in tape.worked.items() if o.operation == "linear"}
    for part in ("qkv", "o", "f1", "f2"):
        assert each[("layer 0", part), True] == 2 * each[("layer 0", part), False] > 0
