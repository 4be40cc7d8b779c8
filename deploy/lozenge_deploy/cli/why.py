"""`lozenge why`: the history of one alert, step by step."""

from functools import cache
from typing import TYPE_CHECKING, Any

from lozenge.errors import UsageError
from lozenge_deploy.cli.options import ALERT, OUTPUT
from lozenge_deploy.cli.printing.output import OutputFormat, labels, moment, show

if TYPE_CHECKING:
    from lozenge.kafka.settings import KafkaSettings
    from lozenge_deploy.observe.alert_trace import Causes, Position


def why(alert_id: ALERT, output: OUTPUT = OutputFormat.TABLE) -> None:
    """Trace one alert: raw record, event, alert, cases, mutes, notifications, each delivery attempt.

    Before an alert of alerts are those that it rests on, each with its own event and raw record.
    """
    from lozenge.kafka.settings import KafkaSettings
    from lozenge_deploy.observe.alert_trace import trace_of

    found, kafka = _known(alert_id), KafkaSettings.load()
    position = _position(found)
    trace = trace_of(kafka, position, _causes(kafka)) if position is not None else []
    if output is OutputFormat.JSON:
        show([found | {"origin": trace}], output)
        return
    show([*trace, *_steps(found)], OutputFormat.WIDE)


def _known(alert_id: str) -> dict[str, Any]:
    """What the notifier knows of an alert; raises UsageError if it has received none of this id."""
    from lozenge_deploy.operations.notifier_client import ask, in_path

    found: dict[str, Any] = ask("GET", f"/alerts/{in_path(alert_id)}")
    return found


def _position(found: dict[str, Any]) -> "Position | None":
    """Where the alert is; None for the notifier's own alarms, which are in no topic."""
    first = found["received_alerts"][0]
    return (first["topic"], first["partition"], first["offset"]) if first["topic"] else None


def _causes(kafka: "KafkaSettings") -> "Causes":
    """The inputs of the releases that are kept, and the alerts that the notifier has received."""
    from lozenge_deploy.observe.alert_trace import Causes
    from lozenge_deploy.releases.release_store import Releases

    @cache
    def input_of(detector: str, release: str) -> str | None:
        found = Releases(kafka).named({detector: release}).get(detector)
        return found.stream.events(kafka.topics, found.declaration.key) if found is not None else None

    def alert_at(alert_id: str) -> "Position | None":
        try:
            return _position(_known(alert_id))
        except UsageError:
            return None

    return Causes(input_of, alert_at)


def _steps(found: dict[str, Any]) -> list[dict[str, Any]]:
    rows = [
        _step(
            a["received_at"],
            "received",
            f"{a['outcome']}: {a['reason']}",
            f"{a['topic']} {a['partition']}:{a['offset']}",
        )
        for a in found["received_alerts"]
    ]
    rows += [_step(m["at"], "muted", m["reason"], f"route {m['route']}") for m in found["muted"]]
    for case in found["cases"]:
        said = f"route {case['route']}, {labels(case['group'])}"
        rows.append(_step(case["opened_at"], "case", said, case["case_id"]))
        if case["muted"]:
            rows.append(_step(case["next_evaluation_at"], "next evaluation", case["muted"], f"route {case['route']}"))
        sent = case["notification"]
        if sent:
            routing = f", routing {sent['routing']}" if sent["routing"] else ""
            position = f"{sent['topic']} {sent['partition']}, seq {sent['seq']}{routing}"
            rows.append(_step(sent["created_at"], "notified", sent["notification_id"], position))
            rows += [
                _step(f["at"], "attempt failed", f["error"], f"channel {f['channel']}") for f in sent["failed_attempts"]
            ]
            rows += [_step(d["due_at"], "delivery", _result(d), f"channel {d['channel']}") for d in sent["deliveries"]]
    rows += [_step(v["at"], "feedback", f"{v['verdict']} {v['note']}".strip(), v["author"]) for v in found["feedback"]]
    return rows


def _result(delivery: dict[str, Any]) -> str:
    attempts = (
        f"{delivery['state']} after {delivery['attempts']} attempts" if delivery["attempts"] else delivery["state"]
    )
    return f"{attempts}; {delivery['error']}" if delivery["error"] else attempts


def _step(at: float | None, what: str, said: str, where: str) -> dict[str, Any]:
    return {"when": moment(at), "what": what, "detail": said, "where": where}
