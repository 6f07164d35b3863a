"""Groups that are imported late: known to the help, and paid for only when called."""

import subprocess
import sys

from typer.testing import CliRunner

from ocfuse.cli import bench
from ocfuse.cli.app import LATE, app

CODE = "import sys; from ocfuse.cli.app import app; app({!r}, standalone_mode=False); "
CHECK = "assert not {'sklearn', 'scipy', 'matplotlib', 'pandas'} & set(sys.modules)"


def test_other_commands_do_not_import_scikit_learn():
    for arguments in (["data", "list"], ["--help"]):
        done = subprocess.run(
            [sys.executable, "-c", CODE.format(arguments) + CHECK],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout


def test_late_groups_are_listed_and_run():
    help_text = CliRunner().invoke(app, ["--help"]).output
    assert "bench" in help_text
    assert LATE["bench"] == (bench.__name__, bench.app.info.help)
    shown = CliRunner().invoke(app, ["bench", "paper", "--help"])
    assert shown.exit_code == 0
    assert "--quick" in shown.output
