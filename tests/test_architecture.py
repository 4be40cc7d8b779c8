"""The dependency rule: stages meet in Kafka topics, so a stage imports `lozenge` and itself, nothing else of ours."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DETECTORS = sorted(path.parent for path in ROOT.glob("detectors/*/pyproject.toml"))
# import name -> its folder; a detector is a package of one module
OURS = {
    "lozenge": ROOT / "shared" / "lozenge",
    **{f"lozenge_{stage}": ROOT / stage / f"lozenge_{stage}" for stage in ("upstream", "downstream", "deploy")},
    **{folder.name: folder for folder in DETECTORS},
}


def _imports(file: Path) -> Iterator[tuple[int, str]]:
    """Line and top-level name of every import, also of those inside functions."""
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name.split(".")[0]) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.lineno, node.module.split(".")[0]


@pytest.mark.parametrize("name", OURS)
def test_imports_only_lozenge_and_itself(name: str) -> None:
    allowed = {"lozenge", name}
    wrong = [
        f"{file.relative_to(ROOT)}:{line} imports {imported}"
        for file in OURS[name].rglob("*.py")
        for line, imported in _imports(file)
        if imported in OURS and imported not in allowed
    ]
    assert not wrong, (
        "\n".join(wrong)
        + "\nMove what both need into shared/lozenge, or let the stages talk through a topic; "
        + "lozenge_deploy starts other stages as processes."
    )


def test_every_source_root_holds_one_package() -> None:
    for root in ("shared", "upstream", "downstream", "deploy"):
        packages = [path.parent.name for path in (ROOT / root).glob("*/__init__.py")]
        assert len(packages) == 1, f"{root}/ holds {packages}: a source root has exactly one import package"
