"""A condition that is evaluated ten times a second makes no Kafka client, which would connect and read again each time.

What a condition needs of a topic comes from a probe that reads in the background, or from a client that is made before.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

TESTS = Path(__file__).parent
WAITS = {"wait_for", "until", "_until"}
CLIENTS = {
    "AdminClient",
    "AvroConsumer",
    "Consumer",
    "DeserializingConsumer",
    "KafkaAdminClient",
    "KafkaConsumer",
    "KafkaProducer",
    "Producer",
    "SerializingProducer",
}


def calls(node: ast.AST) -> Iterator[ast.Call]:
    return (found for found in ast.walk(node) if isinstance(found, ast.Call))


def name_of(called: ast.AST) -> str:
    """The last part of a dotted name; "" for what has none."""
    return called.attr if isinstance(called, ast.Attribute) else called.id if isinstance(called, ast.Name) else ""


def polled_clients(source: str) -> list[tuple[int, str]]:
    """Line and class of each Kafka client that a condition makes, itself or through functions of its module."""
    tree = ast.parse(source)
    functions = {node.name: node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    found = set()
    for wait in calls(tree):
        if name_of(wait.func) in WAITS and wait.args:
            condition = wait.args[0]
            reached = set()
            pending: list[ast.AST] = [condition]
            while pending:
                node = pending.pop()
                names = {name_of(call.func) for call in calls(node)} | {name_of(node)}
                found |= {(wait.lineno, name) for name in names & CLIENTS}
                for name in names & functions.keys():
                    if name not in reached:
                        reached.add(name)
                        pending.append(functions[name])
    return sorted(found)


def test_it_finds_a_client_behind_a_lambda_a_function_and_a_method() -> None:
    source = """
def read(topic):
    return KafkaConsumer(topic)

class World:
    def alerts(self):
        return read("t")

    def waits(self):
        self.wait_for(self.alerts, "its alert")

wait_for(lambda: Consumer({}).poll(), "a record")
wait_for(lambda: len(world.alerts()) == 1, "its alert")
consumer = Consumer({})
wait_for(lambda: consumer.poll(), "a record")
"""
    assert polled_clients(source) == [(10, "KafkaConsumer"), (12, "Consumer"), (13, "KafkaConsumer")]


def test_no_condition_makes_a_kafka_client() -> None:
    found = {str(file.relative_to(TESTS)): polled_clients(file.read_text("utf-8")) for file in TESTS.rglob("*.py")}
    assert {file: clients for file, clients in found.items() if clients} == {}
