"""What is wrong in the environment is told by the variables' names, all at once, and never by their values."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from pydantic import Json, SecretStr
from pydantic_settings import SettingsConfigDict

from lozenge.environment import FromEnvironment
from lozenge.errors import ConfigError

ROOT = Path(__file__).parents[2]


class Kitchen(FromEnvironment):
    model_config = SettingsConfigDict(env_prefix="LOZENGE_KITCHEN_")

    ovens: int = 1
    dishes: Json[tuple[str, ...]] = ("soup",)
    key: SecretStr = SecretStr("")


def test_values_come_from_the_environment_and_from_the_caller(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Kitchen.load().dishes == ("soup",)
    monkeypatch.setenv("LOZENGE_KITCHEN_OVENS", "2")
    monkeypatch.setenv("LOZENGE_KITCHEN_DISHES", '["rice", "beans"]')
    assert Kitchen.load(key=SecretStr("k")).model_dump() == {
        "ovens": 2,
        "dishes": ("rice", "beans"),
        "key": SecretStr("k"),
    }
    assert Kitchen.load(ovens=3).ovens == 3


def test_every_problem_is_told_by_name_and_not_by_value(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOZENGE_KITCHEN_OVENS", "hush-1")
    monkeypatch.setenv("LOZENGE_KITCHEN_DISHES", "[hush-2")
    monkeypatch.setenv("LOZENGE_KITCHEN_KEYS", "hush-3")
    with pytest.raises(ConfigError) as caught:
        Kitchen.load()
    unknown, ovens, dishes = caught.value.problems
    assert unknown.startswith("LOZENGE_KITCHEN_KEYS: there is no such setting, only LOZENGE_KITCHEN_OVENS, ")
    assert ovens.startswith("LOZENGE_KITCHEN_OVENS: ")
    assert dishes.startswith("LOZENGE_KITCHEN_DISHES: ")
    assert "hush" not in str(caught.value)


@pytest.mark.parametrize(
    "command",
    [
        ["lozenge.job", "large_amount"],
        ["lozenge_upstream"],
        ["lozenge_downstream"],
        ["lozenge_deploy.catalogue"],
        ["lozenge_deploy.exporter"],
        ["lozenge_deploy.feed"],
    ],
    ids=lambda command: command[0],
)
def test_a_program_ends_with_a_sentence(command: list[str]) -> None:
    wrong = {"LOZENGE_KAFKA_SECURITY": "foo", "LOZENGE_KAFKA_BOOTSTRAPS": "127.0.0.1:1"}
    ended = subprocess.run(
        [sys.executable, "-m", *command], env=os.environ | wrong, cwd=ROOT, capture_output=True, text=True, timeout=60
    )
    assert ended.returncode == 2, ended.stderr
    assert all(f"{name}: " in ended.stderr for name in wrong)
    assert "Traceback" not in ended.stderr
