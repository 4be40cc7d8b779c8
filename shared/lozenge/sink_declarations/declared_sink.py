"""What every sink declares, whatever it writes to."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from lozenge.apps import sink_app
from lozenge.contracts.display_text import VisibleText

NAME = r"[a-z][a-z0-9_]{0,63}"


class DeclaredSink(BaseModel):
    """`sink.toml`, and the name of its folder. `kind` says what it writes to."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Annotated[str, Field(pattern=f"^{NAME}$")]
    title: VisibleText
    owner: VisibleText

    @property
    def app(self) -> str:
        """Its name in groups, dead letters, metrics and logs."""
        return sink_app(self.name)
