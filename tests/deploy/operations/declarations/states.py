"""What is deployed of a sink or a table, after commands."""

from collections.abc import Iterable

from lozenge.protocol.app_requests import APPS, AppRequest, AppRow, AppState


def after(state: AppState, *made: Iterable[AppRow]) -> AppState:
    """The state once these rows are written, one after the other."""
    rows: dict[str, AppRow] = {APPS.key_of(each).decode(): each for each in state.releases.values()}
    if state.request is not None:
        rows[state.name] = state.request
    rows |= {APPS.key_of(row).decode(): row for some in made for row in some}
    return APPS.state_of(state.name, rows)


def request_of(made: Iterable[AppRow]) -> AppRequest:
    """The request among the rows."""
    [request] = [row for row in made if isinstance(row, AppRequest)]
    return request
