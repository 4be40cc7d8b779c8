"""What the notifier remembers, in SQL: SQLite unless told otherwise, PostgreSQL where several instances share the work.

Everything that belongs together is written in one transaction, with the Kafka offsets that it came from.
"""

from lozenge_downstream.store.database import Store, StoreUnavailable
from lozenge_downstream.store.retention import Retention
from lozenge_downstream.store.transaction import Transaction

__all__ = ["Retention", "Store", "StoreUnavailable", "Transaction"]
