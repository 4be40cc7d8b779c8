"""A secret in a file is read for each message; one that cannot be read is reported."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from lozenge_downstream.channels.base.channel import Message, Result, Sent
from lozenge_downstream.channels.base.secrets import SecretUnusable
from lozenge_downstream.model import ReceivedRecord
from lozenge_downstream.routing.config import Routing
from tests.downstream.channels.conftest import receiving

MakeRecord = Callable[..., ReceivedRecord]
LOOPBACK = {"networks": ["127.0.0.0/8"]}


@pytest.mark.filterwarnings("ignore:'imghdr' is deprecated:DeprecationWarning")  # which apprise still imports
@pytest.mark.parametrize(("type", "secret"), [("slack", "url"), ("pagerduty", "key"), ("apprise", "url")])
def test_a_secret_in_a_file_is_read_for_each_message(message: Message, tmp_path: Path, type: str, secret: str) -> None:
    file = tmp_path / "secret"
    with receiving() as (url, got):
        there = url.replace("http://", "json://") if type == "apprise" else url
        given = {"type": type, secret: {"file": str(file)}}
        if type != "apprise":
            given |= LOOPBACK
        if type == "pagerduty":
            given |= {"url": f"{url}/v2/enqueue"}
        file.write_text(f"{there}/first")
        made = Routing.model_validate({"channels": {"c": given}}).channels["c"]

        async def twice() -> list[Result]:
            async with made.sender() as sender:
                first = await sender.send(message)
                file.write_text(f"{there}/second")
                second = await sender.send(message)
                file.unlink()
                with pytest.raises(SecretUnusable, match=f"file {file}: No such file or directory"):
                    await sender.send(message)
                return [first, second]

        assert asyncio.run(twice()) == [Sent(), Sent()]
    used = [body["routing_key"].removeprefix(url) if type == "pagerduty" else path for path, body in got]
    assert used == ["/first", "/second"]
