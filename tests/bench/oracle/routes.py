"""The same routes and inhibitions in both languages: matchers of every kind, `continue`, inheritance, windows."""

from typing import Any

from lozenge_downstream.routing.config import Routing
from tests.bench.oracle.script import GROUP_WAIT, INTERVAL, LASTS, REPEAT, window

RECEIVERS = ("default", "audit", "three", "urgent", "ones", "night", "brief")
RESOLVED = frozenset({"default", "three", "urgent", "ones", "brief", "night"})
"""Those that are notified of an end."""

_THEIRS = """
global: {{resolve_timeout: {lasts}s}}
route:
  receiver: default
  group_by: [entity]
  group_wait: {wait}s
  group_interval: {interval}s
  repeat_interval: 4h
  routes:
  - receiver: audit
    matchers: ['severity=~"medium|high|critical"']
    group_by: [detector]
    continue: true
  - receiver: three
    matchers: ['detector="d3"']
    group_by: [entity, detector]
    routes:
    - receiver: urgent
      matchers: ['severity=~"high|critical"']
      repeat_interval: {repeat}s
  - receiver: night
    matchers: ['detector="d8"']
    mute_time_intervals: [always]
  - receiver: brief
    matchers: ['detector="d9"']
    active_time_intervals: [brief]
  - receiver: ones
    matchers: ['entity=~"card:1.*"', 'detector!="d4"', 'severity!~"h.*"']
    routes:
    - matchers: ['severity="info"']
      group_by: [entity, severity]
      repeat_interval: {repeat}s
time_intervals:
- name: always
  time_intervals: [{{times: [{{start_time: "00:00", end_time: "24:00"}}]}}]
- name: brief
  time_intervals: [{{times: [{{start_time: "{first}", end_time: "{end}"}}], location: "{zone}"}}]
receivers:
{receivers}
inhibit_rules:
- source_matchers: ['severity="critical"']
  target_matchers: ['severity=~"info|low"']
  equal: [entity]
- source_matchers: ['detector="d1"']
  target_matchers: ['detector=~"d[12]"']
  equal: [entity]
"""


def theirs(start: float, url: str) -> str:
    """Alertmanager's file; receivers are below `url`."""
    first, end, zone = window(start)
    receivers = "".join(
        f"- name: {name}\n"
        f"  webhook_configs: [{{url: '{url}/{name}', max_alerts: 0, send_resolved: {str(name in RESOLVED).lower()}}}]\n"
        for name in RECEIVERS
    )
    return _THEIRS.format(lasts=LASTS, wait=GROUP_WAIT, interval=INTERVAL, repeat=REPEAT, receivers=receivers,
                          first=first, end=end, zone=zone)  # fmt: skip


def ours(start: float) -> Routing:
    """Our routing file."""
    first, end, zone = window(start)
    file: dict[str, Any] = {
        "rate_limit": {"alerts": 1_000_000},
        "time_intervals": {
            "always": {"times": ["00:00-24:00"]},
            "brief": {"times": [f"{first}-{end}"], "location": zone},
        },
        "route": {
            "channels": ["default"],
            "group_by": ["entity"],
            "group_wait": f"{GROUP_WAIT}s",
            "group_interval": f"{INTERVAL}s",
            "resolve_timeout": f"{LASTS}s",
            "send_resolved": True,
            "routes": [
                {
                    "name": "audit",
                    "channels": ["audit"],
                    "matchers": ["severity >= medium"],
                    "group_by": ["detector"],
                    "continue": True,
                    "send_resolved": False,
                },
                {
                    "name": "three",
                    "channels": ["three"],
                    "matchers": ["detector = d3"],
                    "group_by": ["entity", "detector"],
                    "routes": [
                        {
                            "name": "urgent",
                            "channels": ["urgent"],
                            "matchers": ["severity >= high"],
                            "repeat_interval": f"{REPEAT}s",
                        }
                    ],
                },
                {
                    "name": "night",
                    "channels": ["night"],
                    "matchers": ["detector = d8"],
                    "mute_time_intervals": ["always"],
                },
                {
                    "name": "brief",
                    "channels": ["brief"],
                    "matchers": ["detector = d9"],
                    "active_time_intervals": ["brief"],
                },
                {
                    "name": "ones",
                    "channels": ["ones"],
                    "matchers": ['entity =~ "card:1.*"', "detector != d4", 'severity !~ "h.*"'],
                    "routes": [
                        {
                            "name": "one",
                            "matchers": ["severity = info"],
                            "group_by": ["entity", "severity"],
                            "repeat_interval": f"{REPEAT}s",
                        }
                    ],
                },
            ],
        },
        "inhibit_rules": [
            {"source_matchers": ["severity = critical"], "target_matchers": ["severity <= low"], "equal": ["entity"]},
            {"source_matchers": ["detector = d1"], "target_matchers": ['detector =~ "d[12]"'], "equal": ["entity"]},
        ],
    }
    return Routing.model_validate(file)
