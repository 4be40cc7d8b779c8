"""What the instances of a normaliser are called and given. Kafka's group protocol assigns their partitions."""

import json
import re
from collections.abc import Sequence

from lozenge.streams.definition import StreamDefinition


def app_of_program(name: str) -> str:
    """The app of a program, which may be one of its instances."""
    return re.sub(r"-[0-9]+$", "", name)


def instance_names(app: str, count: int) -> list[str]:
    """The programs of `count` instances; the first has the app's own name."""
    return [app, *(f"{app}-{number}" for number in range(2, count + 1))][:count]


def normaliser_variables(stream: StreamDefinition, rekeys: Sequence[str], merges: Sequence[str]) -> dict[str, str]:
    """The environment of a normaliser: its stream, with copies by `rekeys`, merged with other streams by `merges`."""
    return {
        "LOZENGE_UPSTREAM_STREAM": stream.name,
        "LOZENGE_UPSTREAM_REKEYS": json.dumps(rekeys),
        "LOZENGE_UPSTREAM_MERGES": json.dumps(merges),
    }
