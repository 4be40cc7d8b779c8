"""Routing files for tests."""

from pathlib import Path

from lozenge_downstream.routing import config as routing_file
from lozenge_downstream.routing.config import Routing
from lozenge_downstream.routing.tree import Route


def routing(tmp_path: Path, text: str) -> Routing:
    file = tmp_path / "routing.toml"
    file.write_text(text)
    return routing_file.routing(file)


TREE = Route.model_validate(
    {
        "channels": ["ops"],
        "group_by": ["entity"],
        "group_interval": "7m",
        "routes": [
            {"name": "audit", "matchers": ["severity >= low"], "channels": ["archive"], "continue": True},
            {
                "name": "large",
                "matchers": ["detector = large_amount"],
                "group_by": ["detector"],
                "routes": [{"name": "urgent", "matchers": ["severity >= high"], "channels": ["oncall"]}],
            },
            {"name": "never", "matchers": ["detector = large_amount"]},
        ],
    }
)
