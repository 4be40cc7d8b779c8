"""A deterministic generator of raw card authorisations that remembers every case it injected."""

from lozenge_deploy.feed.feed import Case, Feed, Raw
from lozenge_deploy.feed.formats import FORMS, ISO, JSON, Form

__all__ = ["FORMS", "ISO", "JSON", "Case", "Feed", "Form", "Raw"]
