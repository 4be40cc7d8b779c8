"""The verbs of a detector's author: new, test, dev."""
