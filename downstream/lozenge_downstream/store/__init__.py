"""The notifier's state in SQL: SQLite by default, PostgreSQL where several notifiers share the work.

What belongs together is written in one transaction, with the Kafka offsets that it came from.
"""

from lozenge_downstream.store.database import Store, StoreUnavailable
from lozenge_downstream.store.retention import Retention
from lozenge_downstream.store.transaction import Transaction

__all__ = ["Retention", "Store", "StoreUnavailable", "Transaction"]
