"""What is asked of a kind of detector, instead of comparing its name."""

import ast
from pathlib import Path

import pytest

from lozenge.contracts.detector_kind import DetectorKind

SOURCES = [
    path for root in ("shared", "upstream", "deploy") for path in (Path(__file__).parents[3] / root).rglob("*.py")
]


@pytest.mark.parametrize(
    ("kind", "stateless", "in_topic", "in_checkpoint", "batches", "instances"),
    [
        (DetectorKind.RULE, True, False, False, False, True),
        (DetectorKind.AGGREGATE, False, False, True, False, False),
        (DetectorKind.STATEFUL, False, True, False, True, True),
    ],
)
def test_a_kind_says_where_its_state_is_and_how_it_runs(
    kind: DetectorKind, stateless: bool, in_topic: bool, in_checkpoint: bool, batches: bool, instances: bool
) -> None:
    assert (kind.stateless, kind.state_in_topic, kind.state_in_checkpoint) == (stateless, in_topic, in_checkpoint)
    assert (kind.needs_batches, kind.fits_instances) == (batches, instances)


def test_no_code_compares_the_name_of_a_kind() -> None:
    names = {kind.value for kind in DetectorKind}
    assert SOURCES
    compared = [
        f"{path.name}:{node.lineno}"
        for path in SOURCES
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Compare)
        and any(isinstance(c, ast.Constant) and c.value in names for c in (node.left, *node.comparators))
    ]
    assert compared == []
