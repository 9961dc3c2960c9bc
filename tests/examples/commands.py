"""What the commands of all ladders do with wrong calls and files, and without matplotlib."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from examples.figure import NoPlotError


def check_wrong_call(
    main: Callable[[Sequence[str]], int], asked: list[str], sentence: str,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    """A call that cannot be understood is exit code 2, and says why."""
    with pytest.raises(SystemExit) as ended:
        main(asked)
    assert ended.value.code == 2
    assert sentence in capsys.readouterr().err


def check_unwritable(
    main: Callable[[Sequence[str]], int], asked: list[str], folder: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    """A plot for a folder that there is not is exit code 1, and a sentence."""
    assert main([*asked, "--svg", str(folder / "none" / "plot.svg")]) == 1
    assert "cannot be written" in capsys.readouterr().err


def check_needs_matplotlib(draw: Callable[[], object], monkeypatch: pytest.MonkeyPatch) -> None:
    """A plot needs it when it is drawn, not before."""
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(NoPlotError, match="pip install"):
        draw()
