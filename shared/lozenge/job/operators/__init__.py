"""How a batch is evaluated, by kind of detector."""
