"""The detector whose alerts another one reads, as far as its folder is next to it."""

from collections.abc import Iterator
from pathlib import Path

from lozenge.detector.manifest import Manifest, read
from lozenge.errors import ConfigError
from lozenge_deploy.releases.alert_chain import cycle_of, sentence
from lozenge_deploy.releases.detector_catalog import detector_in


def alert_input_problems(folder: Path, declaration: Manifest) -> Iterator[str]:
    """A cycle of detectors that read each other's alerts, and a key that those alerts do not have."""

    def reads(name: str) -> str:
        try:
            return read(folder.parent / name / "pyproject.toml")[2].alerts_of if name != folder.name else watched
        except ConfigError:
            return ""  # there is none, or its own check names the problem

    watched = declaration.alerts_of
    if cycle := cycle_of(folder.name, reads):
        yield f"pyproject.toml: tool.lozenge.alerts_of: {sentence(cycle)}"
    elif watched and (found := key_of_alerts(folder.parent / watched)) not in ("", declaration.key):
        yield f"pyproject.toml: tool.lozenge.key: the alerts of {watched} are by {found}, not by {declaration.key}"


def alert_input_warnings(folder: Path, declaration: Manifest) -> Iterator[str]:
    """That the detector is not among the folders next to this one."""
    watched = declaration.alerts_of
    if watched and not (folder.parent / watched / "pyproject.toml").is_file():
        yield (
            f"pyproject.toml: tool.lozenge.alerts_of: {folder.parent} has no detector {watched}; `lozenge deploy` "
            "requires that it is deployed"
        )


def key_of_alerts(folder: Path) -> str:
    """The entity of the alerts of a detector; "" if its folder does not say so."""
    try:
        return detector_in(folder).key
    except ConfigError:
        return ""
