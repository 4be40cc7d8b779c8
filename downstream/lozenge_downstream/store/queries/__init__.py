"""Answers to operators: the history of an alert, and the state of cases."""
