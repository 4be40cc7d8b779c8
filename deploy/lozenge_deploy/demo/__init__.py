"""What only the demo and the tests need: a webhook receiver and the live view."""
