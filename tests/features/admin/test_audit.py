"""The audit log as the command prints it, and what pruning erases of it and writes to it."""

import json

from gpuexplore.cli import main
from gpuexplore.cli.output import EXIT_OK, EXIT_UNUSABLE
from gpuexplore.store import open_store
from gpuexplore.store.prune import prune
from tests.store.conftest import clock, database, experiment, failed, home, postgresql_server, rowless_url, store
from tests.store.test_audit import told


def test_pruning_erases_old_lines_and_says_so_itself(store, experiment, failed, clock):
    store.record(experiment, "ada", results=[])
    limit = store.now()
    store.submit(experiment, "bob")

    assert prune(store, limit, "command line", lambda _: None).audit == 1
    assert [(action, thing) for action, _, _, thing in told(store)][1:] == [
        ("runs pruned", f"1 runs before {limit[:19]}")
    ]


def test_the_command_prints_the_newest_first(home, experiment, capsys):
    with open_store() as store:
        runs = [store.submit(experiment, "user:ada", address="192.0.2.7") for _ in range(3)]

    assert main(["audit"]) == EXIT_OK
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["when", "(UTC)", "who", "from", "what", "of"]
    assert [line.split()[-1] for line in lines[1:]] == runs[::-1]
    assert "ada  192.0.2.7  run submitted" in lines[1]
    assert main(["audit", "--since", "1h", "--limit", "2", "--json"]) == EXIT_OK
    assert [entry["object"] for entry in json.loads(capsys.readouterr().out)] == runs[:0:-1]
    assert main(["audit", "--since", "0m"]) == EXIT_OK
    assert "no audit entries in that time" in capsys.readouterr().err
    assert main(["audit", "--limit", "0"]) == EXIT_UNUSABLE
    assert main(["audit", "--since", "yesterday"]) == EXIT_UNUSABLE
    assert "expected a number and a unit" in capsys.readouterr().err
