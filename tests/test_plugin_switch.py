"""The switch by which a program keeps a driver's plug-in off its session."""

from __future__ import annotations

import pytest

from eddyline.plugin_switch import BY_PROGRAM, ENABLED, PluginSwitch

WITH_PLUGIN = {"spark.sql.extensions": "other.Extensions,eddyline.spark.Extensions"}


class Settings:
    """A session, and its settings."""

    def __init__(self, settings: dict[str, str]) -> None:
        self.all = dict(settings)

    @property
    def conf(self) -> Settings:
        return self

    def get(self, name: str, default: str | None) -> str | None:
        return self.all.get(name, default)

    def set(self, name: str, value: str) -> None:
        self.all[name] = value

    def unset(self, name: str) -> None:
        del self.all[name]


@pytest.mark.parametrize("before", [{}, {ENABLED: "true"}, {ENABLED: "True "}])
def test_it_is_as_before_when_it_is_turned_back(before: dict[str, str]) -> None:
    session = Settings(WITH_PLUGIN | before)
    switch = PluginSwitch(session)
    switch.turn_off()
    assert session.all == WITH_PLUGIN | {ENABLED: BY_PROGRAM}
    inner = PluginSwitch(session)
    inner.turn_off()
    inner.turn_back()
    assert session.all[ENABLED] == BY_PROGRAM
    switch.turn_back()
    assert session.all == WITH_PLUGIN | before


@pytest.mark.parametrize("settings", [{}, WITH_PLUGIN | {ENABLED: "false"}])
def test_nothing_is_set_without_a_plug_in_or_where_it_is_off(settings: dict[str, str]) -> None:
    session = Settings(settings)
    switch = PluginSwitch(session)
    switch.turn_off()
    switch.turn_back()
    assert session.all == settings


def test_what_was_set_since_stays() -> None:
    session = Settings(WITH_PLUGIN)
    switch = PluginSwitch(session)
    switch.turn_off()
    session.set(ENABLED, "true")
    switch.turn_back()
    assert session.all[ENABLED] == "true"
