"""Only instances of the group that are no members any more have departed; the rest needs a broker."""

from lozenge_upstream.streaming.group_membership import departed

GROUP = "acme.upstream"


def test_transactions_of_members_and_of_other_groups_are_not_fenced() -> None:
    begun = [f"{GROUP}-one", f"{GROUP}-two", "other.upstream-one", f"{GROUP}s-one", "large_amount-0", GROUP]
    assert departed(begun, GROUP, {f"{GROUP}-two", f"{GROUP}-three"}) == [f"{GROUP}-one"]
