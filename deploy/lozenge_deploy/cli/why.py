"""`lozenge why`: the history of one alert, step by step."""

from typing import Any

from lozenge_deploy.cli.options import ALERT, OUTPUT
from lozenge_deploy.cli.printing.output import OutputFormat, labels, moment, show


def why(alert_id: ALERT, output: OUTPUT = OutputFormat.TABLE) -> None:
    """Trace one alert: raw record, event, alert, cases, mutes, notifications, each delivery attempt."""
    from lozenge.kafka.settings import KafkaSettings
    from lozenge_deploy.observe.alert_trace import trace_of
    from lozenge_deploy.operations.notifier_client import ask, in_path

    found = ask("GET", f"/alerts/{in_path(alert_id)}")
    first = found["received_alerts"][0]
    # the notifier's own alarms are in no alert topic
    trace = (
        trace_of(KafkaSettings.load(), first["topic"], first["partition"], first["offset"]) if first["topic"] else []
    )
    if output is OutputFormat.JSON:
        show([found | {"origin": trace}], output)
        return
    show([*trace, *_steps(found)], OutputFormat.WIDE)


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
