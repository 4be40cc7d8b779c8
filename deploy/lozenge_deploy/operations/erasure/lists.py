"""Reference lists: the entry whose value names a subject is removed, and reasons that name it lose the word."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from lozenge.contracts.topics import reference_list
from lozenge.errors import LozengeError
from lozenge.kafka.writers import TransactionalWriter
from lozenge_deploy.operations.erasure.compacted import erase_topic
from lozenge_deploy.operations.erasure.plan import Plan
from lozenge_deploy.operations.erasure.receipt import Line, not_done
from lozenge_deploy.operations.lists.edit import writer_of
from lozenge_deploy.operations.lists.list_usage import names


def erase_lists(plan: Plan) -> Iterator[Line]:
    """A line for each list of the platform."""
    for name in names(plan.kafka):
        try:
            yield erase_topic(
                plan, f"list {name}", reference_list(plan.kafka.topics, name), partial(_writing, plan, name)
            )
        except LozengeError as error:
            yield not_done(f"list {name}", error)


@contextmanager
def _writing(plan: Plan, name: str) -> Iterator[TransactionalWriter]:
    """The one writer of a list; the audit log gets no record of its value."""
    writer = TransactionalWriter(plan.kafka, writer_of(name))
    writer.fence()
    yield writer
