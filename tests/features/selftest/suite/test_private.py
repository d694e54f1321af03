"""What a report says of the machine: no folder, user or host has a name in it."""

import pytest

from gpuexplore.features.selftest import selftest_command


@pytest.fixture(autouse=True)
def machine(monkeypatch):
    """Let the user be called ada, her host box.example, and her home lie where homes lie."""
    monkeypatch.setenv("HOME", "/home/ada")
    monkeypatch.setattr(selftest_command, "getuser", lambda: "ada")
    monkeypatch.setattr(selftest_command, "node", lambda: "box.example")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("OSError: /home/ada/x.so: wrong ELF class", "OSError: ~/x.so: wrong ELF class"),
        ("in '/home/ada'", "in '~'"),
        ("/home/adam/x", "/home/adam/x"),
        ("/data/ada/x and /tmp/ray-ada/y", "/data/<user>/x and /tmp/ray-<user>/y"),
        ("RTX 6000 Ada Generation, an adapter", "RTX 6000 Ada Generation, an adapter"),
        ("box.example: connection refused by box", "<host>: connection refused by <host>"),
        ("a boxed boxplot", "a boxed boxplot"),
    ],
)
def test_names_are_left_out_and_words_that_hold_them_are_not(text, told):
    assert selftest_command._without_names(text) == told


def test_home_of_a_container_and_host_and_user_without_a_name_hide_nothing(monkeypatch):
    def nameless():
        raise KeyError("uid not found")

    for home in ("", "/"):
        monkeypatch.setenv("HOME", home)
        assert selftest_command._without_names("/opt/cuda/lib") == "/opt/cuda/lib"
    monkeypatch.setattr(selftest_command, "getuser", nameless)
    monkeypatch.setattr(selftest_command, "node", lambda: "")
    assert selftest_command._without_names("/data/ada/x on box") == "/data/ada/x on box"
