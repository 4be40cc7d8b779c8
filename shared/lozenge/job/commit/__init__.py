"""How a batch becomes final: the claim of partitions and one transaction per batch."""
