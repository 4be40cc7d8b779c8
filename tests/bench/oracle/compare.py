"""What Alertmanager told and what ours told, group by group: what is the same, and of which class each difference is.

A class has a rule, asked of the facts of the script. What fits no rule is unexplained.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from itertools import pairwise

from tests.bench.oracle.classes import Same, Why
from tests.bench.oracle.facts import Facts, next_tick, tick
from tests.bench.oracle.routes import RESOLVED
from tests.bench.oracle.script import INTERVAL, REPEAT
from tests.bench.oracle.told import Here, Place, There

TICK_SECONDS = 4
"""So long after a tick of the first groups those of groups that later waves began have theirs."""


class Comparison:
    """The counts, and what is unexplained."""

    def __init__(self, facts: Facts, there: Iterable[There], here: Iterable[Here]) -> None:
        self.same: Counter[Same] = Counter()
        self.differences: Counter[Why] = Counter()
        self.unexplained: list[str] = []
        theirs: dict[Place, list[There]] = defaultdict(list)
        ours: dict[Place, list[Here]] = defaultdict(list)
        for message in sorted(there, key=lambda m: m.at):
            theirs[message.place].append(message)
        for telling in here:
            ours[telling.place].append(telling)
        self.groups = len(theirs.keys() | ours.keys())
        for place in sorted(theirs.keys() | ours.keys()):
            _Group(self, facts, place, theirs[place], ours[place]).compare()


class _Group:
    """One group's messages."""

    def __init__(
        self, found: Comparison, facts: Facts, place: Place, there: Sequence[There], here: Sequence[Here]
    ) -> None:
        self._found, self._facts, self._place, self._there, self._here = found, facts, place, there, here
        self._news = {id: telling.at for telling in here for id in telling.news}
        self._repeats = [t.at for t in here if t.status == "updated" and not t.news]
        self._ends = [t.at for t in here if t.status == "resolved"]

    def compare(self) -> None:
        """Adds what is found of this group."""
        if sum(len(telling.news) for telling in self._here) != len(self._news):
            self._unexplained("ours told an alert twice")
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
                    self._unexplained(f"ours alone told {sorted(unheard & self._news.keys())}")
            news |= dict.fromkeys(new, message.at)
            last = message.firing
        self._compare_news(news)
        self._compare_repeats(repeats)
        self._ended(news.keys(), frozenset(id for message in over for id in message.over))
        self._compare_ends(over)

    def _is_whole(self, message: There) -> None:
        expected = self._facts.told(self._place, tick(message.at))
        if message.firing != expected:
            beyond, missing = sorted(message.firing - expected), sorted(expected - message.firing)
            self._unexplained(f"at {message.at:.1f} Alertmanager told {beyond} against the script, and not {missing}")

    def _ended(self, told: Iterable[str], over: frozenset[str]) -> None:
        """Of every alert that it told, Alertmanager tells the end unless that is muted when it comes."""
        for alert in (self._facts.alerts[id] for id in told):
            hears = self._place.receiver in RESOLVED
            expected = hears and not self._facts.muted(self._place, alert, next_tick(alert.resolves_at))
            if expected != (alert.id in over):
                self._unexplained(f"the end of {alert.id} is {'not ' if expected else ''}told there")

    def _is_back(self, ids: Iterable[str], message: There) -> None:
        before = max(m.at for m in self._there if m.at < message.at)
        for id in ids:
            if not self._facts.muted(self._place, self._facts.alerts[id], tick(before)):
                self._unexplained(f"at {message.at:.1f} Alertmanager told {id} again")
        self._differs(Why.BACK)

    def _compare_news(self, there: dict[str, float]) -> None:
        for id in there.keys() - self._news.keys():
            self._unexplained(f"{id} is told there alone, at {there[id]:.1f}")
        for id in self._news.keys() - there.keys():
            self._unexplained(f"{id} is told here alone, at {self._news[id]:.1f}")
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
        if any(self._facts.muted(self._place, alert, at) for at in range(alert.at, int(here))):
            return Why.MUTED
        return Why.AFTER if self._looked_at(here - INTERVAL) else None

    def _looked_at(self, at: float) -> bool:
        muted = any(self._facts.muted(self._place, alert, at) for alert in self._facts.lasting(self._place, at))
        return muted or any(telling.at == at for telling in self._here)

    def _compare_repeats(self, there: Sequence[int]) -> None:
        expected = {next_tick(at): at for at in self._repeats}
        for at in there:
            if at in expected:
                self._found.same[Same.REPEATS] += 1
                self._differs(Why.EARLIER)
            elif any(at - REPEAT < telling.at < at for telling in self._here):
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
            self._unexplained(f"ours told ends at {self._ends}, and they were due at {self._due_ends()}")
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
            elif self._facts.lasting(self._place, tick(message.at)):
                self._differs(Why.OUTLASTS)
            elif message.over & self._news.keys():
                self._unexplained(f"an end there alone at {message.at:.1f}")

    def _due_ends(self) -> list[float]:
        """When the last alerts of cases that were told are over."""
        news = sorted(self._news.values()) if self._place.receiver in RESOLVED else []
        overs = sorted({alert.resolves_at for alert in self._facts.members[self._place]})
        empty = [at for at in overs if not self._facts.lasting(self._place, at)]
        return [at for last, at in pairwise([0, *empty]) if any(last <= told < at for told in news)]

    def _of_end(self, at: float, message: There | None) -> Why | None:
        """Why ours tells an end at `at` and Alertmanager doesn't."""
        if message is not None:
            came = [self._facts.alerts[id].at for id in message.firing]
            return Why.GOES_ON if min(came) >= at else None
        ended = {id for m in self._there if m.at < at for id in m.over}
        left = [self._facts.alerts[id] for id, when in self._news.items() if when < at and id not in ended]
        if left:
            muted = all(self._facts.muted(self._place, alert, next_tick(alert.resolves_at)) for alert in left)
            return Why.MUTED_END if muted else None
        return Why.OUTLASTS

    def _differs(self, why: Why | None, times: int = 1) -> None:
        if why is None:
            self._unexplained("a difference of no class")
        elif times:
            self._found.differences[why] += times

    def _unexplained(self, what: str) -> None:
        self._found.unexplained.append(f"{self._place.receiver} {self._place.group}: {what}")
