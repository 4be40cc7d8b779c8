"""A wrong command line is one sentence and exit code 2; what was requested is what is measured."""

import pytest

from tests.bench.harness import row, system
from tests.bench.harness.asked import Asked
from tests.bench.harness.asked import asked as parsed

ROWS, SYSTEMS = row.discovered(), system.discovered()


def asked(*arguments: str) -> Asked:
    return parsed(ROWS, SYSTEMS, None, arguments)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--rounds", "0"], "argument --rounds: '0' is not a whole number from 1 on"),
        (["--rounds", "many"], "argument --rounds: 'many' is not a whole number from 1 on"),
        (["--minutes", "-1"], "argument --minutes: '-1' is not a number above 0"),
        (["--minutes", "nan"], "argument --minutes: 'nan' is not a number above 0"),
        (["--rates", "300", "0"], "argument --rates: '0' is not a whole number from 1 on"),
        (["--events", "0"], "argument --events: '0' is not a whole number from 1 on"),
        (["nosuch"], f"argument ROW: no row is called 'nosuch'; there are {', '.join(ROWS)}"),
        (
            ["diamond", "--only", "nosuch"],
            "--only nosuch: of diamond there are Lozenge, all in realtime; Lozenge",
        ),
    ],
)
def test_arguments_that_cannot_be_measured_are_refused_with_one_sentence(
    arguments: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        asked(*arguments)
    assert ended.value.code == 2
    assert f"error: {sentence}" in capsys.readouterr().err


def test_without_arguments_all_rows_are_measured_in_full() -> None:
    found = asked()
    assert ([each.name for each, _ in found.rows], found.plan) == (list(ROWS), row.FULL)


def test_the_quick_table_skips_rows_that_say_nothing_at_its_size() -> None:
    found = asked("--quick")
    assert {each.name for each, _ in found.rows} == {name for name in ROWS if ROWS[name].quick}
    assert "drain" not in {each.name for each, _ in found.rows}


def test_rows_without_any_of_the_systems_are_skipped() -> None:
    [(each, those)] = asked("life", "diamond", "--only", "three in").rows
    assert (each.name, [s.name for s in those]) == ("diamond", ["Quix Streams, three in a chain"])


def test_numbers_of_the_plan_are_changed_one_by_one() -> None:
    found = asked("--rounds", "3", "--rates", "100", "200")
    assert (found.plan.rounds, list(found.plan.rates), found.plan.events) == (3, [100, 200], row.FULL.events)


def test_the_options_say_the_same_again() -> None:
    found = asked(
        "life", "--anyway", "--rounds", "3", "--minutes", "2.5", "--rates", "100", "200", "--only", "trigger 0"
    )
    assert asked("life", *found.options) == found
    assert asked("drain", *found.options).plan == found.plan


def test_all_selects_every_system_that_fits() -> None:
    [(each, those)] = asked("backlog-fold", "--all").rows
    assert those == [s for s in SYSTEMS if each.fits(s)]
