"""A secret is read for each message, without what editors and shells put around it; one that is none is reported."""

import asyncio
import unicodedata
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from lozenge_downstream.channels.base.channel import Message, Result, Sent
from lozenge_downstream.channels.base.secrets import Secret, SecretUnusable, SecretUrl
from lozenge_downstream.model import ReceivedRecord
from lozenge_downstream.routing.config import Routing
from tests.downstream.channels.conftest import receiving, send

MakeRecord = Callable[..., ReceivedRecord]
LOOPBACK = {"networks": ["127.0.0.0/8"]}

AROUND = ["{}\n", "{}\r\n", " {}\t", "\ufeff{}", "\ufeff{}\r\n", "\n{}"]


@pytest.mark.parametrize("around", AROUND, ids=repr)
@pytest.mark.parametrize("place", ["env", "file"])
def test_a_secret_has_no_line_ends_and_no_byte_order_mark(
    place: str, around: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KEY", around.format("k1 k2"))
    (tmp_path / "key").write_text(around.format("k1 k2"), "utf-8")
    secret = Secret(env="KEY") if place == "env" else Secret(file=tmp_path / "key")
    assert secret.resolve().get_secret_value() == "k1 k2"


@pytest.mark.parametrize("text", ["one\ntwo", "one\x07", "o\u200bne", "o\u2028ne", "one\0two", "o\udcffne"], ids=ascii)
def test_a_secret_that_no_receiver_can_take_is_refused_and_not_shown(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "key").write_bytes(text.encode("utf-8", "surrogateescape"))
    monkeypatch.setenv("KEY", text.replace("\0", "\x01"))
    for secret in ({"env": "KEY"}, {"file": str(tmp_path / "key")}):
        with pytest.raises(ValidationError, match=r"invisible character|no UTF-8 text") as caught:
            Secret.model_validate(secret)
        assert text not in caught.value.errors()[0]["msg"]


@pytest.mark.parametrize("text", ["hooks.slack.com/services/x", "ftp://h/x", "https://", "xoxb-123"])
def test_the_url_of_a_webhook_is_refused_if_it_is_none(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLACK", text)
    with pytest.raises(ValidationError, match="environment variable SLACK does not hold an HTTP URL") as caught:
        Routing.model_validate({"channels": {"c": {"type": "slack", "url": {"env": "SLACK"}}}})
    assert text not in caught.value.errors()[0]["msg"]
    monkeypatch.setenv("SLACK", "https://hooks.example.com/ä\n")
    assert SecretUrl(env="SLACK").resolve().get_secret_value() == "https://hooks.example.com/%C3%A4"


def test_a_key_with_a_line_end_reaches_its_receiver_without(message: Message, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PD_KEY", "k" * 32 + "\r\n")
    with receiving(202) as (url, got):
        assert send(message, type="pagerduty", key={"env": "PD_KEY"}, url=url, **LOOPBACK) == Sent()
    ((_, body),) = got
    assert body["routing_key"] == "k" * 32


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


@given(st.binary(max_size=60) | st.text(max_size=30).map(lambda text: text.encode("utf-8", "surrogatepass")))
def test_any_content_of_a_file_is_a_secret_that_receivers_take_or_is_refused_unseen(
    tmp_path_factory: pytest.TempPathFactory, content: bytes
) -> None:
    file = tmp_path_factory.getbasetemp() / "any"
    file.write_bytes(content)
    try:
        secret = Secret(file=file).resolve().get_secret_value()
    except ValidationError as error:
        message = error.errors()[0]["msg"]
        text = content.decode("utf-8", "replace").strip()
        assert len(text) < 8 or text not in message
        return
    assert secret == secret.strip() != ""
    assert not any(unicodedata.category(character) in ("Cc", "Cf", "Cs") for character in secret)
    assert secret in content.decode()
