"""A Kafka topic of the receiver, as JSON; `ce_id` is the notification's id, and a case has one partition."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, Literal

from confluent_kafka import KafkaError, KafkaException, Producer
from pydantic import Field

from lozenge.kafka.settings import KafkaSettings
from lozenge_downstream.channels.base.channel import Channel as Base
from lozenge_downstream.channels.base.channel import Message, Refused, Result, Retry, Sent
from lozenge_downstream.channels.base.thread_pool import Threads, threads

_NO_TOPIC = (KafkaError._UNKNOWN_TOPIC, KafkaError.UNKNOWN_TOPIC_OR_PART)


class Channel(Base):
    """`bootstrap` is the receiver's cluster, if it is not the platform's."""

    type: Literal["kafka"]
    topic: Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]{1,249}$")]
    bootstrap: str | None = None
    concurrency: Annotated[int, Field(ge=1, le=1024)] = 256

    @asynccontextmanager
    async def sender(self) -> "AsyncIterator[Sender]":
        """Opens an idempotent producer, and flushes it in the end."""
        kafka = KafkaSettings.load()
        if self.bootstrap is not None:
            kafka = kafka.model_copy(update={"bootstrap": self.bootstrap})
        timeout = int(self.timeout * 1000)
        producer = Producer(
            kafka.client(
                enable_idempotence=True,
                linger_ms=5,
                message_timeout_ms=timeout,
                # librdkafka waits 30 s for an unknown topic; with half the timeout the error names the topic
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
    """Produces and awaits the broker's response."""

    def __init__(self, producer: Producer, topic: str) -> None:
        self._producer, self._topic = producer, topic

    async def send(self, message: Message) -> Result:
        """One attempt."""
        loop = asyncio.get_running_loop()
        answered: asyncio.Future[Result] = loop.create_future()

        def delivered(error: KafkaError | None, _: object) -> None:
            result = Sent() if error is None else self._failed(error)
            loop.call_soon_threadsafe(_settle, answered, result)

        try:
            self._producer.produce(
                self._topic,
                message.body.encode(),
                str(message.fields["case_id"]).encode(),
                headers=[("content-type", b"application/json"), ("ce_id", message.id.encode())],
                on_delivery=delivered,
            )
        except BufferError:
            return Retry("the producer's queue is full", after=1.0)
        except KafkaException as error:
            kafka_error = error.args[0]
            return self._failed(kafka_error) if kafka_error.code() in _NO_TOPIC else Refused(kafka_error.str())
        return await answered

    def _failed(self, error: KafkaError) -> Retry:
        if error.code() in _NO_TOPIC:
            return Retry(f"there is no topic {self._topic}: {error.str()}")
        return Retry(f"the broker refused it: {error}")


def _settle(answered: "asyncio.Future[Result]", result: Result) -> None:
    if not answered.done():  # the attempt may have been cancelled
        answered.set_result(result)


async def _poll(producer: Producer, threads: Threads) -> None:
    while True:
        await threads.run(lambda: producer.poll(0.1))
