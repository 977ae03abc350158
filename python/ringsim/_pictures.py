"""Pictures drawn by the command, which notebooks display."""
from __future__ import annotations

import pathlib

from ._command import Path


class Picture(str):
    """An SVG picture as a string. Notebooks display it; `save` writes it to a file."""

    def _repr_svg_(self) -> str:
        return str(self)

    def __repr__(self) -> str:
        return f"<ringsim.Picture: an SVG of {len(self)} characters>"

    def save(self, path: Path) -> None:
        pathlib.Path(path).write_text(self, encoding="utf-8")
