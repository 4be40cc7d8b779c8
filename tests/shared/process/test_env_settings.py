"""Wrong settings are reported by the names of their variables, all at once, and never with their values."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from pydantic import Json, SecretStr
from pydantic_settings import SettingsConfigDict

from lozenge.errors import ConfigError
from lozenge.process.env_settings import FromEnvironment, load, with_variables

ROOT = Path(__file__).parents[3]


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


@pytest.mark.parametrize("value", ["k 1\n", "k 1\r\n", " k 1 ", "\ufeffk 1\n"], ids=repr)
def test_what_shells_and_secret_stores_add_is_no_part_of_a_value(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOZENGE_KITCHEN_KEY", value)
    monkeypatch.setenv("LOZENGE_KITCHEN_OVENS", "2\n")
    kitchen = Kitchen.load()
    assert (kitchen.key.get_secret_value(), kitchen.ovens) == ("k 1", 2)


def test_every_problem_is_reported_by_name_and_without_its_value(monkeypatch: pytest.MonkeyPatch) -> None:
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


class Cellar(FromEnvironment):
    model_config = SettingsConfigDict(env_prefix="LOZENGE_CELLAR_")

    bottles: int = 1


def test_two_classes_report_the_problems_of_both(monkeypatch: pytest.MonkeyPatch) -> None:
    assert load(Kitchen, Cellar) == (Kitchen(), Cellar())
    monkeypatch.setenv("LOZENGE_CELLAR_BOTTLES", "many")
    with pytest.raises(ConfigError, match="LOZENGE_CELLAR_BOTTLES: ") as caught:
        load(Kitchen, Cellar)
    monkeypatch.setenv("LOZENGE_KITCHEN_OVENS", "many")
    with pytest.raises(ConfigError) as caught:
        load(Kitchen, Cellar)
    assert [problem.split(":")[0] for problem in caught.value.problems] == [
        "LOZENGE_KITCHEN_OVENS",
        "LOZENGE_CELLAR_BOTTLES",
    ]
    monkeypatch.delenv("LOZENGE_CELLAR_BOTTLES")
    with pytest.raises(ConfigError, match="LOZENGE_KITCHEN_OVENS: "):
        load(Kitchen, Cellar)


@pytest.mark.parametrize(
    "command",
    [
        ["lozenge.job", "large_amount"],
        ["lozenge_upstream"],
        ["lozenge_downstream"],
        ["lozenge_deploy.local.topic_bootstrap"],
        ["lozenge_deploy.observe.exporter"],
        ["lozenge_deploy.demo.feed"],
    ],
    ids=lambda command: command[0],
)
def test_a_program_with_wrong_settings_ends_with_one_sentence(command: list[str]) -> None:
    wrong = {"LOZENGE_KAFKA_SECURITY": "foo", "LOZENGE_KAFKA_BOOTSTRAPS": "127.0.0.1:1"}
    if "deploy" not in command[0]:
        wrong[f"LOZENGE_{command[0].replace('.', '_').split('_')[1].upper()}_INSTANCES"] = "2"
    said = failed(command, wrong)
    assert all(f"{name}: " in said for name in wrong)


def test_a_detectors_settings_are_checked_before_the_broker_is_asked() -> None:
    wrong = {"LOZENGE_JOB_SETTINGS": '{"nonsense": 1}', "LOZENGE_KAFKA_BOOTSTRAP": "127.0.0.1:1"}
    assert "the settings of large_amount: 1 problem(s)\\n  - nonsense: " in failed(
        ["lozenge.job", "detectors/large_amount"], wrong
    )


def failed(command: list[str], variables: dict[str, str]) -> str:
    """What a program says that ends with 2."""
    environment = os.environ | variables
    ended = subprocess.run(
        [sys.executable, "-m", *command], env=environment, cwd=ROOT, capture_output=True, text=True, timeout=60
    )
    assert ended.returncode == 2, ended.stderr
    assert "Traceback" not in ended.stderr
    return ended.stderr


def test_every_variable_that_is_missing_is_named_at_once() -> None:
    url = "postgresql://${USER}:${WORD}@db/${USER}"
    assert with_variables(url, {"USER": "a", "WORD": "b"}, doing="", hint="") == "postgresql://a:b@db/a"
    with pytest.raises(ConfigError) as refused:
        with_variables(url, {}, doing="opening it", hint="set them")
    assert refused.value.problems == ("USER is not set", "WORD is not set")
