"""A folder that breaks the conventions is refused before anything is built, run or asked."""

from pathlib import Path
from typing import cast

import pytest

from lozenge.errors import ConfigError
from lozenge.kafka.settings import KafkaSettings
from lozenge_deploy.cli.author.scaffold import write
from lozenge_deploy.control.client import Control
from lozenge_deploy.operations.deploy_plan import prepare


class Unasked:
    """No control plane: whatever is asked of it fails."""


def test_the_lint_is_the_first_check_of_a_plan(tmp_path: Path) -> None:
    write(tmp_path, "spotter", "rule", "tests")
    (tmp_path / "spotter" / "README.md").unlink()
    control = cast(Control, Unasked())
    with pytest.raises(ConfigError, match="checking spotter: ") as refused:
        prepare(tmp_path / "spotter", KafkaSettings.local("127.0.0.1:1"), control, state=None, settings={})
    assert any("README.md" in problem for problem in refused.value.problems)
