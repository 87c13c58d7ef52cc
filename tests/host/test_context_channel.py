"""The port at which tasks reach the driver is what the settings say."""

from __future__ import annotations

import pytest

from eddyline.host.context_channel import FORMER_PORTS, PORT, chosen_port


@pytest.mark.parametrize("name", [PORT, *FORMER_PORTS])
@pytest.mark.parametrize("given", ["65536", "-1", "4o5o", "40.5", "  "])
def test_what_is_no_port_is_refused_by_the_setting_s_name(name: str, given: str) -> None:
    with pytest.raises(ValueError, match=rf"{name} is a port from 0 to 65535, not '{given}'"):
        chosen_port({name: given})


@pytest.mark.parametrize("settings", [{}, {PORT: "0"}, {PORT: ""}])
def test_any_free_port_is_taken_where_none_is_named(settings: dict[str, str]) -> None:
    assert chosen_port(settings) == 0
