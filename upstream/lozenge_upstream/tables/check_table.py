"""`python -m lozenge_upstream.tables.check_table`: what the source of a table would change now, as JSON.

Standard input is the declaration as JSON. The answer has the state, the rows that were read, how many are added,
changed and removed, and every problem. Nothing is written. Exit codes: 0 answered, 1 failed, 2 the declaration is
wrong, 3 no broker.
"""

import json
import sys

from lozenge.contracts.topics import platform_table
from lozenge.kafka.settings import KafkaSettings
from lozenge.platform_tables.definition import PlatformTable
from lozenge.process.standard_output import print_answer
from lozenge_upstream.tables.loader import loaded_rows, looked, source_of


def answer(table: PlatformTable, kafka: KafkaSettings) -> str:
    """The JSON of one look; raises ConfigError, BrokerUnavailable."""
    found, _ = looked(table, source_of(table), loaded_rows(kafka, platform_table(kafka.topics, table.name).name))
    change = found.change
    return json.dumps(
        {
            "table": table.name,
            "state": found.state,
            "rows": found.rows,
            "added": len(change.added),
            "changed": len(change.changed),
            "removed": len(change.removed),
            "problems": found.problems,
        }
    )


def main() -> int:
    """Answers, and returns the exit code."""
    return print_answer(lambda: answer(PlatformTable.model_validate_json(sys.stdin.read()), KafkaSettings.load()))


if __name__ == "__main__":
    sys.exit(main())
