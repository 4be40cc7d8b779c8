"""The notifications of both systems, group by group: what is equal, and of which class each difference is.

A class has a rule, asked of the facts of the script. What fits no rule is unexplained.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from itertools import pairwise

from tests.bench.oracle.classes import Same, Why
from tests.bench.oracle.facts import Facts, next_tick, tick
from tests.bench.oracle.notifications import AlertGroup, Here, There
from tests.bench.oracle.routes import RESOLVED
from tests.bench.oracle.script import INTERVAL, REPEAT

TICK_SECONDS = 4
"""So long after a tick of the first groups those of groups that later waves began have theirs."""


class Comparison:
    """The counts, and what is unexplained."""

    def __init__(self, facts: Facts, there: Iterable[There], here: Iterable[Here]) -> None:
        self.same: Counter[Same] = Counter()
        self.differences: Counter[Why] = Counter()
        self.unexplained: list[str] = []
        theirs: dict[AlertGroup, list[There]] = defaultdict(list)
        ours: dict[AlertGroup, list[Here]] = defaultdict(list)
        for message in sorted(there, key=lambda m: m.at):
            theirs[message.group].append(message)
        for notification in here:
            ours[notification.group].append(notification)
        self.groups = len(theirs.keys() | ours.keys())
        for group in sorted(theirs.keys() | ours.keys()):
            _Group(self, facts, group, theirs[group], ours[group]).compare()


class _Group:
    """One group's messages."""

    def __init__(
        self, found: Comparison, facts: Facts, group: AlertGroup, there: Sequence[There], here: Sequence[Here]
    ) -> None:
        self._found, self._facts, self._group, self._there, self._here = found, facts, group, there, here
        self._news = {id: n.at for n in here for id in n.news}
        self._repeats = [t.at for t in here if t.status == "updated" and not t.news]
        self._ends = [t.at for t in here if t.status == "resolved"]

    def compare(self) -> None:
        """Adds what is found of this group."""
        if sum(len(n.news) for n in self._here) != len(self._news):
            self._unexplained("ours notified of an alert twice")
        news: dict[str, float] = {}
        repeats: list[int] = []
        over: list[There] = []
        last: frozenset[str] = frozenset()
        for message in self._there:
            self._is_whole(message)
            new = message.firing - news.keys()
            if message.firing - new and new:
                self._differs(Why.WHOLE)
            elif not new and message.firing - last:
                self._is_back(message.firing - last, message)
            elif not new and not message.over:
                repeats.append(tick(message.at))
            if message.over:
                over.append(message)
                unheard = message.over - news.keys()
                self._differs(Why.UNHEARD, len(unheard))
                if unheard & self._news.keys():
                    self._unexplained(f"ours alone notified of {sorted(unheard & self._news.keys())}")
            news |= dict.fromkeys(new, message.at)
            last = message.firing
        self._compare_news(news)
        self._compare_repeats(repeats)
        self._ended(news.keys(), frozenset(id for message in over for id in message.over))
        self._compare_ends(over)

    def _is_whole(self, message: There) -> None:
        expected = self._facts.notified(self._group, tick(message.at))
        if message.firing != expected:
            beyond, missing = sorted(message.firing - expected), sorted(expected - message.firing)
            self._unexplained(f"at {message.at:.1f} Alertmanager sent {beyond} against the script, and not {missing}")

    def _ended(self, notified: Iterable[str], over: frozenset[str]) -> None:
        """Alertmanager notifies of the end of each alert that it notified of, unless the end is muted."""
        for alert in (self._facts.alerts[id] for id in notified):
            hears = self._group.receiver in RESOLVED
            expected = hears and not self._facts.muted(self._group, alert, next_tick(alert.resolves_at))
            if expected != (alert.id in over):
                self._unexplained(f"the end of {alert.id} is {'not ' if expected else ''}notified there")

    def _is_back(self, ids: Iterable[str], message: There) -> None:
        before = max(m.at for m in self._there if m.at < message.at)
        for id in ids:
            if not self._facts.muted(self._group, self._facts.alerts[id], tick(before)):
                self._unexplained(f"at {message.at:.1f} Alertmanager notified of {id} again")
        self._differs(Why.BACK)

    def _compare_news(self, there: dict[str, float]) -> None:
        for id in there.keys() - self._news.keys():
            self._unexplained(f"{id} is notified there alone, at {there[id]:.1f}")
        for id in self._news.keys() - there.keys():
            self._unexplained(f"{id} is notified here alone, at {self._news[id]:.1f}")
        for id in sorted(there.keys() & self._news.keys()):
            self._found.same[Same.NEWS] += 1
            here, then = self._news[id], tick(there[id])
            if not then <= here < then + TICK_SECONDS:
                self._differs(self._of_news(id, here, then))

    def _of_news(self, id: str, here: float, there: float) -> Why | None:
        alert = self._facts.alerts[id]
        if here == alert.at and here < there < here + INTERVAL:
            return Why.AT_ONCE
        if abs(here - there) >= INTERVAL:
            return None
        if any(self._facts.muted(self._group, alert, at) for at in range(alert.at, int(here))):
            return Why.MUTED
        return Why.AFTER if self._looked_at(here - INTERVAL) else None

    def _looked_at(self, at: float) -> bool:
        muted = any(self._facts.muted(self._group, alert, at) for alert in self._facts.lasting(self._group, at))
        return muted or any(n.at == at for n in self._here)

    def _compare_repeats(self, there: Sequence[int]) -> None:
        expected = {next_tick(at): at for at in self._repeats}
        for at in there:
            if at in expected:
                self._found.same[Same.REPEATS] += 1
                self._differs(Why.EARLIER)
            elif any(at - REPEAT < n.at < at for n in self._here):
                self._differs(Why.CLOCK)
            else:
                self._unexplained(f"a repeat there alone at {at}")
        for at in expected.keys() - set(there):
            if any(at - REPEAT < message.at and tick(message.at) <= at for message in self._there):
                self._differs(Why.CLOCK)
            else:
                self._unexplained(f"a repeat here alone at {expected[at]}")

    def _compare_ends(self, over: Sequence[There]) -> None:
        if self._ends != self._due_ends():
            self._unexplained(f"ours notified of ends at {self._ends}, and they were due at {self._due_ends()}")
        by_tick = {tick(message.at): message for message in over}
        for at in self._ends:
            message = by_tick.pop(next_tick(at), None)
            if message is not None and not message.firing:
                self._found.same[Same.ENDS] += 1
            else:
                self._differs(self._of_end(at, message))
        for message in by_tick.values():
            if message.firing:
                self._differs(Why.PART)
            elif self._facts.lasting(self._group, tick(message.at)):
                self._differs(Why.OUTLASTS)
            elif message.over & self._news.keys():
                self._unexplained(f"an end there alone at {message.at:.1f}")

    def _due_ends(self) -> list[float]:
        """When the last alerts of notified cases are over."""
        news = sorted(self._news.values()) if self._group.receiver in RESOLVED else []
        overs = sorted({alert.resolves_at for alert in self._facts.members[self._group]})
        empty = [at for at in overs if not self._facts.lasting(self._group, at)]
        return [at for last, at in pairwise([0, *empty]) if any(last <= moment < at for moment in news)]

    def _of_end(self, at: float, message: There | None) -> Why | None:
        """Why ours notifies of an end at `at` and Alertmanager doesn't."""
        if message is not None:
            came = [self._facts.alerts[id].at for id in message.firing]
            return Why.CONTINUES if min(came) >= at else None
        ended = {id for m in self._there if m.at < at for id in m.over}
        left = [self._facts.alerts[id] for id, when in self._news.items() if when < at and id not in ended]
        if left:
            muted = all(self._facts.muted(self._group, alert, next_tick(alert.resolves_at)) for alert in left)
            return Why.MUTED_END if muted else None
        return Why.OUTLASTS

    def _differs(self, why: Why | None, times: int = 1) -> None:
        if why is None:
            self._unexplained("a difference of no class")
        elif times:
            self._found.differences[why] += times

    def _unexplained(self, what: str) -> None:
        self._found.unexplained.append(f"{self._group.receiver} {self._group.labels}: {what}")
