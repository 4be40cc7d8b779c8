from lozenge.metrics.table_metrics import TableMetrics
from lozenge.platform_tables.state import TableState


def test_a_look_has_one_state_and_a_bad_one_keeps_the_time_of_the_last_good_one() -> None:
    metrics = TableMetrics("table-limits")
    metrics.looked(TableState.GOOD, 7)
    good = metrics.snapshot()["samples"]
    metrics.looked(TableState.REFUSED, 7)
    bad = metrics.snapshot()["samples"]
    name = "lozenge_table_good_timestamp_seconds"
    assert 0 < good[name] == bad[name]
    assert bad["lozenge_table_rows"] == 7
    states = {text: value for text, value in bad.items() if text.startswith("lozenge_table_state")}
    assert [text for text, value in states.items() if value] == ["lozenge_table_state{state=refused}"]
    assert len(states) == len(TableState)
