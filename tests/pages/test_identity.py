"""Who a visitor is, and what that allows: accounts before cookies, and cookies only as we give them."""

import pytest
from streamlit.runtime.context import ContextProxy
from streamlit.testing.v1 import AppTest

from gpuexplore.ui.identity import LONGEST_OWNER, OWNER_COOKIE, _owner_of_account, address, is_cookie, new_cookie
from tests.pages.conftest import texts


def who():
    import streamlit as st

    from gpuexplore.ui.identity import show_account
    from gpuexplore.ui.roles import is_admin
    from gpuexplore.ui.session import owner

    show_account()
    st.text(owner())
    st.text(is_admin())


@pytest.fixture
def visitor(monkeypatch):
    """Return a function that gives the owner and the rights of a visitor, and what the sidebar says."""

    def asked(cookie=None, **user):
        monkeypatch.setattr(ContextProxy, "cookies", {OWNER_COOKIE: cookie} if cookie is not None else {})
        app = AppTest.from_function(who)
        app.user = user
        app.run()
        assert not app.exception
        name, admin = (text.value for text in app.text)
        return name, admin == "True", texts(app.sidebar.caption), [button.label for button in app.sidebar.button]

    return asked


def test_a_browser_is_known_by_its_cookie(visitor):
    assert visitor("7oF1mQdHv-lOf7dt6kNpug") == ("7oF1mQdHv-lOf7dt6kNpug", False, "", [])


@pytest.mark.parametrize("cookie", [None, "", "x" * 65, "x" * 3000, "a\x00b", "a\ud800b", "user:ada@example.org", "ß"])
def test_a_cookie_we_never_gave_names_nobody(visitor, cookie):
    name, admin, _, _ = visitor(cookie)

    assert name != cookie
    assert is_cookie(name)
    assert not admin


def test_a_login_counts_before_the_cookie(visitor):
    named = visitor("a-browser", is_logged_in=True, email="Ada@Example.org", email_verified=True)

    assert named == ("user:ada@example.org", False, ":material/person: ada@example.org", ["Log out"])


def test_an_email_that_nobody_verified_is_no_name(visitor):
    assert visitor(is_logged_in=True, email="ada@example.org", email_verified=False, sub="42")[0] == "user:42"


def test_without_a_login_the_cookie_counts_and_a_login_is_offered(visitor):
    assert visitor("a-browser", is_logged_in=False, email="ada@example.org") == ("a-browser", False, "", ["Log in"])


def test_what_a_host_says_without_being_asked_is_no_name(visitor):
    assert visitor("a-browser", email="test@example.com")[0] == "a-browser"


@pytest.mark.parametrize(("setting", "expected"), [("", False), ("grace@example.org, ADA@example.org", True)])
def test_administrators_are_accounts_of_a_setting(visitor, monkeypatch, setting, expected):
    monkeypatch.setenv("GPUEXPLORE_ADMINS", setting)

    assert visitor(is_logged_in=True, email="ada@example.org")[1] is expected


def test_no_cookie_is_an_administrator(visitor, monkeypatch):
    monkeypatch.setenv("GPUEXPLORE_ADMINS", "ada")

    assert visitor("ada") == ("ada", False, "", [])


def test_names_given_to_browsers_differ_and_fit():
    names = {new_cookie() for _ in range(100)}

    assert len(names) == 100
    assert all(is_cookie(name) for name in names)


@pytest.mark.parametrize("name", ["a" * 300, "ada\x00", "ada\ud800"])
def test_the_name_of_an_account_always_fits(name):
    owner = _owner_of_account(name)

    assert len(owner) <= LONGEST_OWNER
    assert owner.isprintable()
    assert not is_cookie(owner)
    assert owner != _owner_of_account(name + "b")


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        (None, None),
        ("192.0.2.7", "192.0.2.7"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("2001:DB8::7", "2001:db8::/64"),
        ("2001:db8::7:1:2:3", "2001:db8::/64"),
        ("198.51.100.9", None),
        ("unknown", None),
        ("x" * 9999, None),
    ],
)
def test_an_address_is_one_of_the_network_or_unknown(monkeypatch, seen, expected):
    monkeypatch.setenv("GPUEXPLORE_TRUSTED_PROXIES", "proxy.example,198.51.100.0/24")
    monkeypatch.setattr(ContextProxy, "ip_address", seen)

    assert address() == expected


def test_an_administrator_can_cancel_the_run_of_another(page, store, claimed, monkeypatch):
    monkeypatch.setenv("GPUEXPLORE_ADMINS", "ada@example.org")
    monkeypatch.setattr("gpuexplore.ui.roles.account", lambda: "ada@example.org")
    monkeypatch.setattr("gpuexplore.ui.identity.account", lambda: "ada@example.org")
    app = page("benchmark", run=claimed.run_id)
    next(button for button in app.button if button.label == "Cancel").click().run()

    assert not app.exception
    assert store.cancel_requested(claimed.run_id)


def test_others_see_no_way_to_cancel(page, claimed):
    app = page("benchmark", owner="somebody-else", run=claimed.run_id)

    assert "Cancel" not in [button.label for button in app.button]
