from lozenge.protocol.table_records import TableColumns
from lozenge_deploy.operations.tables.loaded import LoadedTable
from lozenge_deploy.operations.tables.report import NOT_RUNNING, state_of, table_row

LOADED = LoadedTable("9-0123456789ab", TableColumns("country string", ("country",)), {"a": b"{}", "b": b"{}"})


def test_a_row_has_the_state_of_the_last_look_and_the_version_in_force() -> None:
    samples = {
        "lozenge_table_state{state=good}": 0.0,
        "lozenge_table_state{state=refused}": 1.0,
        "lozenge_table_good_timestamp_seconds": 90.0,
    }
    row = table_row("limits", LOADED, samples, ["large_amount"], 100.4)
    assert (row["state"], row["rows"], row["version"], row["key"]) == ("refused", 2, LOADED.version, ["country"])
    assert (row["good_seconds_ago"], row["used_by"]) == (10, ["large_amount"])


def test_a_table_without_a_loader_that_runs_says_so() -> None:
    assert state_of({}) == NOT_RUNNING
    row = table_row("limits", None, {}, [], 100.0)
    assert (row["rows"], row["version"], row["good_seconds_ago"]) == (0, None, None)
