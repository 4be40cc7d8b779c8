"""The page on which an analyst answers an alert. It runs no scripts and loads nothing."""

from html import escape
from string import Template

from lozenge.contracts.display_text import shown
from lozenge_downstream.model import PublishedAlert

_LAYOUT = Template("""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<meta name="referrer" content="no-referrer"><title>$title</title>
<style>body{font:16px/1.5 system-ui,sans-serif;max-width:40rem;margin:3rem auto;padding:0 1rem}
pre{white-space:pre-wrap;background:#f4f4f4;padding:1rem}label{display:block;margin:.7rem 0}
input{font:inherit;width:100%;box-sizing:border-box}button{font:inherit;margin:.7rem .5rem 0 0;padding:.4rem 1rem}
</style></head><body><h1>$title</h1>$body</body></html>""")
_FORM = Template("""<p>$about</p><pre>$text</pre><form method="post">
<label>You<input name="author" required maxlength="500" autocomplete="username"></label>
<label>In your own words<input name="note" maxlength="2000"></label>
<button name="verdict" value="confirmed">Confirmed</button>
<button name="verdict" value="false_alarm">False alarm</button>
<button name="verdict" value="snooze">Not again for 7 days</button></form>""")


def alert_page(alert: PublishedAlert) -> str:
    """The alert, and a form with three buttons."""
    about = (
        f"{alert.subject}, {alert.severity}, {alert.detector} {alert.release}, {alert.event_time:%Y-%m-%d %H:%M} UTC"
    )
    body = _FORM.substitute(about=_html(about), text=_html(alert.text))
    return _LAYOUT.substitute(title=_html(alert.title), body=body)


def message_page(text: str) -> str:
    """A page with one sentence."""
    return _LAYOUT.substitute(title="Lozenge", body=f"<p>{_html(text)}</p>")


def _html(text: str) -> str:
    return escape(shown(text))
