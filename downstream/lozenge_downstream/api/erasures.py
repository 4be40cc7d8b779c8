"""The request that erases one entity from the store; the audit log of the platform has who sent it."""

from collections.abc import Callable, Sequence
from typing import Any

from starlette.requests import Request

from lozenge.protocol.data_subject import DataSubject
from lozenge_downstream.api.request_handling import changing, is_dry
from lozenge_downstream.api.requests import NewErasure
from lozenge_downstream.store import Store


class ErasureApi:
    """Answers it."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def requests(self) -> Sequence[tuple[str, str, Callable[[Request, Any], Any]]]:
        """The method, path and handler."""
        return [("POST", "/erasures", self._erase)]

    def _erase(self, request: Request, body: Any) -> Any:
        asked = NewErasure.model_validate(body)
        with changing(self._store, request, exclusive=True) as t:
            done = t.erase(DataSubject(asked.key, asked.value))
        if not is_dry(request):
            self._store.reclaim()
        why = "they are on their way: run this again in a minute"
        left = [{"what": "notifications", "rows": done.on_their_way, "why": why}] if done.on_their_way else []
        return {"removed": done.removed, "left": left}
