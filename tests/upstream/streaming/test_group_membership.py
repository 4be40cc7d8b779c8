"""Only instances of the group that are no members any more have departed; the rest needs a broker."""

from lozenge_upstream.streaming.group_membership import departed, transactional_id

GROUP = "acme.upstream"


def test_transactions_of_members_and_of_other_groups_are_not_fenced() -> None:
    mine = {name: transactional_id(GROUP, name) for name in ("one", "two", "three")}
    others = [transactional_id(app, "one") for app in ("other.upstream", f"{GROUP}s", f"{GROUP}-login")]
    begun = [mine["one"], mine["two"], *others, "large_amount-0", GROUP]
    assert departed(begun, GROUP, {mine["two"], mine["three"]}) == [mine["one"]]
