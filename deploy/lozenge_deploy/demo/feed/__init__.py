"""A deterministic generator of raw card authorisations that remembers every case it injected."""

from lozenge_deploy.demo.feed.formats import FORMS, ISO, JSON, Form
from lozenge_deploy.demo.feed.generator import Case, Feed, Raw

__all__ = ["FORMS", "ISO", "JSON", "Case", "Feed", "Form", "Raw"]
