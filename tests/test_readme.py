"""The README's Python blocks run as they are copied, and print what stands beside them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
PRINTED = re.compile(r"^print\(.*\)\s+# (.*)$", re.MULTILINE)


def test_there_is_a_block() -> None:
    assert BLOCKS and PRINTED.findall(BLOCKS[0])


@pytest.mark.parametrize("block", BLOCKS)
def test_it_prints_what_it_says(block: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert ">>>" not in block
    exec(compile(block, "README.md", "exec"), {})
    lines = capsys.readouterr().out.splitlines()
    said = PRINTED.findall(block)
    assert len(lines) == len(said) == block.count("print(")
    for line, comment in zip(lines, said, strict=True):
        assert comment == line or comment.startswith(f"{line},")
