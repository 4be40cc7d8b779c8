"""A fold's hop, batch by batch, as there is no Real-Time Mode for it: the country of a card's last event, in Python.

Every card is known before anything is measured; a fifth of the events is from another country and raises an alert.
"""

from tests.bench.harness import hop
from tests.bench.harness.row import Goal, Row
from tests.bench.harness.workload import Task

ROWS = (
    Row(
        name="fold-hop",
        title="Fold: Avro event in, Avro alert out; a fifth of the events raises one",
        method=hop.METHOD,
        task=Task("fold", every=5, keys=20_000),
        goals=(Goal("p99", "Kafka Streams, at least once", bar=2.0, stretch=1.0),),
        rates=(300,),
        quick=False,
        ours="Lozenge, trigger 0",
    ),
)
