"""What every alert record has in common, whether Python or Spark encodes it."""

ALERT_TYPE = "lozenge.alert.v1"
"""The CloudEvents type of an alert."""
OWNER = "owner"
"""The label of every alert that names the owner of its detector."""
