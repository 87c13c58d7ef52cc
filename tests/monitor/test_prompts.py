"""Before a prompt, what was shown goes."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import ModuleType, SimpleNamespace

import pytest

from eddyline.monitor.screen import before_prompts


@pytest.fixture
def called() -> list[str]:
    return []


@pytest.fixture(autouse=True)
def no_ipython(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "IPython", raising=False)


def test_pythons_own(monkeypatch: pytest.MonkeyPatch, called: list[str]) -> None:
    monkeypatch.setattr(sys, "ps1", ">>> ", raising=False)
    end = before_prompts(lambda: called.append("action"))
    assert str(sys.ps1) == ">>> "
    assert called == ["action"]
    later = before_prompts(lambda: called.append("later"))  # begun later, ended later
    end()
    assert str(sys.ps1) == ">>> "
    assert called == ["action", "later"]
    later()
    assert str(sys.ps1) == ">>> "
    assert called == ["action", "later"]


def test_ipythons(monkeypatch: pytest.MonkeyPatch, called: list[str]) -> None:
    actions: list[tuple[str, Callable[[], None]]] = []
    events = SimpleNamespace(
        register=lambda *what: actions.append(what), unregister=lambda *what: actions.remove(what)
    )
    ipython = ModuleType("IPython")
    monkeypatch.setattr(
        ipython, "get_ipython", lambda: SimpleNamespace(events=events), raising=False
    )
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    end = before_prompts(lambda: called.append("action"))
    ((event, action),) = actions
    assert event == "post_execute"
    action()
    assert called == ["action"]
    end()
    assert actions == []


def test_no_prompt_at_all(monkeypatch: pytest.MonkeyPatch, called: list[str]) -> None:
    monkeypatch.delattr(sys, "ps1", raising=False)
    before_prompts(lambda: called.append("action"))()
    assert not hasattr(sys, "ps1")
    assert called == []
