"""A Kafka topic of somebody's own, as JSON; `ce_id` is the notification's id, and a case stays in one partition."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, Literal

from confluent_kafka import KafkaError, KafkaException, Producer
from pydantic import Field

from lozenge.kafka.settings import KafkaSettings
from lozenge_downstream.channels.base.channel import Channel as Base
from lozenge_downstream.channels.base.channel import Drop, Message, Result, Retry, Sent
from lozenge_downstream.channels.base.thread_pool import Threads, threads

_NO_TOPIC = (KafkaError._UNKNOWN_TOPIC, KafkaError.UNKNOWN_TOPIC_OR_PART)


class Channel(Base):
    """`bootstrap` names another cluster than the platform's, if it is another one."""

    type: Literal["kafka"]
    topic: Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]{1,249}$")]
    bootstrap: str | None = None
    concurrency: Annotated[int, Field(ge=1, le=1024)] = 256

    @asynccontextmanager
    async def sender(self) -> "AsyncIterator[Sender]":
        """Opens a producer, which repeats nothing twice; closes it once all it has was taken."""
        kafka = KafkaSettings.load()
        if self.bootstrap is not None:
            kafka = kafka.model_copy(update={"bootstrap": self.bootstrap})
        timeout = int(self.timeout * 1000)
        producer = Producer(
            kafka.client(
                enable_idempotence=True,
                linger_ms=5,
                message_timeout_ms=timeout,
                # else "timed out" is all that is said of a missing topic
                topic_metadata_propagation_max_ms=timeout // 2,
            )
        )
        with threads(1) as own:
            polling = asyncio.create_task(_poll(producer, own))
            try:
                yield Sender(producer, self.topic)
            finally:
                polling.cancel()
                await own.run(lambda: producer.flush(self.timeout))


class Sender:
    """Produces and awaits the broker's answer."""

    def __init__(self, producer: Producer, topic: str) -> None:
        self._producer, self._topic = producer, topic

    async def send(self, message: Message) -> Result:
        """One attempt."""
        loop = asyncio.get_running_loop()
        answered: asyncio.Future[Result] = loop.create_future()

        def told(error: KafkaError | None, _: object) -> None:
            result = Sent() if error is None else self._failed(error)
            loop.call_soon_threadsafe(_settle, answered, result)

        try:
            self._producer.produce(
                self._topic,
                message.body.encode(),
                str(message.fields["case_id"]).encode(),
                headers=[("content-type", b"application/json"), ("ce_id", message.id.encode())],
                on_delivery=told,
            )
        except BufferError:
            return Retry("too much waits for the broker", after=1.0)
        except KafkaException as error:
            known = error.args[0]
            return self._failed(known) if known.code() in _NO_TOPIC else Drop(known.str())
        return await answered

    def _failed(self, error: KafkaError) -> Retry:
        if error.code() in _NO_TOPIC:
            return Retry(f"there is no topic {self._topic}: {error.str()}")
        return Retry(f"the broker did not take it: {error}")


def _settle(answered: "asyncio.Future[Result]", result: Result) -> None:
    if not answered.done():  # whoever waited may have been cut
        answered.set_result(result)


async def _poll(producer: Producer, threads: Threads) -> None:
    while True:
        await threads.run(lambda: producer.poll(0.1))
