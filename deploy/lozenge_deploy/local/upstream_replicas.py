"""The names of a normaliser's instances on this machine. Kafka's group protocol assigns their partitions."""

import re


def app_of_program(name: str) -> str:
    """The app of a program, which may be one of its instances."""
    return re.sub(r"-[0-9]+$", "", name)


def instance_names(app: str, count: int) -> list[str]:
    """The programs of `count` instances; the first has the app's own name."""
    return [app, *(f"{app}-{number}" for number in range(2, count + 1))][:count]
