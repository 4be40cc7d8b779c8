"""The names of upstream's instances on this machine. Kafka's group protocol assigns their partitions."""


def app_of_program(name: str) -> str:
    """The app of a program, which may be one of its instances."""
    return name.partition("-")[0]


def instance_names(count: int) -> list[str]:
    """The programs of `count` instances; the first has the app's own name."""
    return ["upstream", *(f"upstream-{number}" for number in range(2, count + 1))][:count]
