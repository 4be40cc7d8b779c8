"""What is counted: what both tell, and the classes of difference, in words."""

from enum import StrEnum


class Same(StrEnum):
    """What both tell."""

    NEWS = "alerts told"
    REPEATS = "groups told again without news"
    ENDS = "groups of which the end is told"


class Why(StrEnum):
    """The classes of difference."""

    WHOLE = "Alertmanager tells the whole group again, ours what is new"
    AT_ONCE = "news of a case not looked at for group_interval: ours at once, Alertmanager at the group's next tick"
    AFTER = "other news: ours group_interval after it last looked at the case, Alertmanager at the group's next tick"
    MUTED = (
        "what was muted: ours looks again every group_interval from its last look, Alertmanager at the group's ticks"
    )
    BACK = "an alert that was muted after it was told is muted no more: Alertmanager tells its group again"
    EARLIER = "a repeat: ours repeat_interval after the case was told, Alertmanager at the next tick from then"
    CLOCK = (
        "a repeat that one has alone: the other told the group later, for another reason or late, and counts from there"
    )
    PART = "some alerts of a group are over: Alertmanager says so, ours says when all are"
    UNHEARD = "Alertmanager tells the end of alerts that were muted until then and never told"
    GOES_ON = (
        "alerts come to a group whose others are over: Alertmanager tells one message, ours ends a case and opens one"
    )
    MUTED_END = "the end of what was told and is muted now: ours tells it, Alertmanager doesn't"
    OUTLASTS = "a muted alert outlasts the told ones: Alertmanager tells the end when those are over, ours when all are"
