"""What `lozenge up` deploys runs with the variables of the platform, not with those of the command."""

import pytest

from lozenge.errors import UsageError
from lozenge_deploy.cli.sink.wanted import Wanted, require_variables

CACHE = Wanted("sink-recent", {"kind": "cache", "url": "redis://:${SECRET}@${HOST}:6379"}, lambda *_: [])


def test_a_variable_that_the_platform_was_started_without_is_named() -> None:
    with pytest.raises(UsageError, match="deploying sink-recent: the platform was started without SECRET") as refused:
        require_variables([CACHE], {"HOST": "cache"})
    assert "`lozenge down`" in refused.value.hint


@pytest.mark.parametrize("environment", [{"HOST": "cache", "SECRET": "x"}, None])
def test_what_has_its_variables_or_is_not_known_is_deployed(environment: dict[str, str] | None) -> None:
    require_variables([CACHE], environment)
