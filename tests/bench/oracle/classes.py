"""What is counted: what both notify of, and the classes of difference, in words."""

from enum import StrEnum


class Same(StrEnum):
    """What both notify of."""

    NEWS = "alerts notified"
    REPEATS = "groups notified again without new alerts"
    ENDS = "groups of which the end is notified"


class Why(StrEnum):
    """The classes of difference."""

    WHOLE = "Alertmanager notifies of the whole group again, ours of what is new"
    AT_ONCE = "news of a case not looked at for group_interval: ours at once, Alertmanager at the group's next tick"
    AFTER = "other news: ours group_interval after it last looked at the case, Alertmanager at the group's next tick"
    MUTED = (
        "what was muted: ours looks again every group_interval from its last look, Alertmanager at the group's ticks"
    )
    BACK = "an alert that was muted after it was notified is muted no more: Alertmanager notifies of its group again"
    EARLIER = "a repeat: ours repeat_interval after the case was notified, Alertmanager at the next tick from then"
    CLOCK = "a repeat that one has alone: the other notified later, for another reason or late, and counts from there"
    PART = "some alerts of a group are over: Alertmanager says so, ours says when all are"
    UNHEARD = "Alertmanager notifies of the end of alerts that were muted until then and never notified"
    CONTINUES = (
        "alerts come to a group whose others are over: Alertmanager sends one message, ours ends a case and opens one"
    )
    MUTED_END = "the end of what was notified and is muted now: ours notifies of it, Alertmanager doesn't"
    OUTLASTS = "a muted alert outlasts the notified ones: Alertmanager ends when those are over, ours when all are"
