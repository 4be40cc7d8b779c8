"""A deterministic generator of raw card authorisations that records every case it injects."""

from lozenge_deploy.demo.feed.formats import FORMS, ISO, JSON, Form
from lozenge_deploy.demo.feed.generator import Generator
from lozenge_deploy.demo.feed.written_records import InjectedCase, Raw

__all__ = ["FORMS", "ISO", "JSON", "Form", "Generator", "InjectedCase", "Raw"]
