"""A checkout with detectors in it, and a notifier's API that is served."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from lozenge_deploy.cli.author.scaffold import write
from lozenge_downstream.api import api
from lozenge_downstream.api.server import ApiServer
from tests.downstream.conftest import Desk
from tests.streams import AUTH


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    """A desk whose API is where the verbs look for it, with a token."""
    desk = Desk(f"sqlite:///{tmp_path / 'store.db'}")
    with ApiServer(api(desk.store, desk.pipeline, lambda: None, "a token", None), "127.0.0.1:0") as serving:
        monkeypatch.setenv("LOZENGE_NOTIFIER_URL", f"http://127.0.0.1:{serving.port}")
        monkeypatch.setenv("LOZENGE_NOTIFIER_TOKEN", "a token")
        yield desk
    desk.store.close()


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    (tmp_path / "detectors").mkdir()
    (tmp_path / "pyproject.toml").touch()
    return tmp_path


def made(checkout: Path, name: str, kind: str = "rule") -> None:
    """A detector as `lozenge new` writes it."""
    write(checkout / "detectors", name, kind, "tests", AUTH)
