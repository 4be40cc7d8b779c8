"""The limit of every hop: the same events at the same rate, straight from the producer to the measuring consumer."""

from tests.bench.harness.system import HOP, Guarantees, System

SYSTEMS = (System("broker round trip", "limit", Guarantees("none", "never"), shapes=HOP),)
