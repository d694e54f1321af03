"""`gpuexplore upgrade`: what it would do, why not, and that it does it."""

from gpuexplore.cli import main
from gpuexplore.cli.output import EXIT_OK, EXIT_UNUSABLE
from gpuexplore.store.upgrade import _newest_revision, plan_upgrade
from tests.store.conftest import home
from tests.store.test_upgrade_plan import file, without_room


def test_the_command_tells_refuses_and_upgrades(file, monkeypatch, capsys):
    assert main(["upgrade", "--dry-run"]) == EXIT_OK
    told = capsys.readouterr().out
    assert f"From schema 0002 to {_newest_revision()}:" in told
    assert "0014  Schema changes of version 0.2.0: " in told
    assert plan_upgrade().found == "0002"

    with monkeypatch.context() as patched:
        without_room(patched)
        assert main(["upgrade"]) == EXIT_UNUSABLE
        assert "Not enough disk space for an upgrade: nothing has changed" in capsys.readouterr().err
        assert plan_upgrade().found == "0002"

    assert main(["upgrade"]) == EXIT_OK
    assert f"The database has schema {_newest_revision()} now" in capsys.readouterr().out
    assert main(["upgrade"]) == EXIT_OK
    assert "is up to date" in capsys.readouterr().out
