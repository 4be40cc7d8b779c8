"""The webhook's receiver of a campaign: it may fail, and writes down every message that it took."""

from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response

from lozenge_deploy.demo.webhook_receiver import Receiver


class Ledger(Receiver):
    """Writes a line for each accepted message, its `webhook-id` and the notification's id; `failing` answers 500."""

    def __init__(self, secret: str, deliveries: Path) -> None:
        super().__init__(secret)
        self._deliveries = deliveries
        deliveries.touch()
        self.failing = False

    async def receive(self, request: Request) -> Response:
        """The line is there before the answer is."""
        if self.failing:
            return Response(status_code=500)
        answer = await super().receive(request)
        if answer.status_code == 204:
            notification_id = self.latest[-1]["data"]["notification_id"]
            with self._deliveries.open("a") as file:
                file.write(f"{request.headers['webhook-id']} {notification_id}\n")
        return answer
