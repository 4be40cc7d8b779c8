from lozenge.metrics.app_metrics import AppMetrics
from lozenge.metrics.families import KINDS, metric_families


def test_the_families_are_those_of_every_kind_of_app() -> None:
    names = {family.name for family in metric_families()}
    assert names == {family.name for kind in KINDS for family in kind("app").registry.collect()}
    assert {"lozenge_files", "lozenge_table_state", "lozenge_records"} <= names
    assert {kind.__name__ for kind in _kinds(AppMetrics)} == {kind.__name__ for kind in KINDS}


def _kinds(of: type[AppMetrics]) -> set[type[AppMetrics]]:
    """The kinds that have no kinds of their own."""
    found = {leaf for kind in of.__subclasses__() for leaf in _kinds(kind)} or {of}
    return {kind for kind in found if kind.__module__.startswith("lozenge.")}
