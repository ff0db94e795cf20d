"""The program that README.md and python/README.md show: one and the same, and it prints what it says."""

import os
import re
from pathlib import Path

SOURCE = Path(os.environ["STRATA_SOURCE"])


def programs(path):
    return re.findall(r"^```python\n(.*?)^```$", path.read_text(), re.S | re.M)


def test_the_program_runs(capsys):
    program = programs(SOURCE / "README.md")[0]
    assert program == programs(SOURCE / "python" / "README.md")[0]
    assert len(program.splitlines()) <= 12
    exec(compile(program, "README.md", "exec"), {})
    printed = capsys.readouterr().out
    assert printed.startswith("gpu:0\n")
    assert "waiting for other streams" in printed
