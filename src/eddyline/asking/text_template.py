"""Texts with places for values, which are asked for, and for secrets, which nobody is shown."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from eddyline.errors import MissingSecretError

_PLACE: Final = re.compile(r"(\$?)\{([A-Za-z_][A-Za-z0-9_]*)\}")


@dataclass(frozen=True, slots=True)
class Template:
    """A text in which ``{name}`` stands for a value and ``${NAME}`` for an environment variable.

    >>> template = Template("/${VERSION}/{zip}")
    >>> template.names, template.variables
    (('zip',), ('VERSION',))
    >>> template.filled({"zip": "10 001"}, {"VERSION": "v{2}"})
    '/v{2}/10 001'
    """

    text: str

    @property
    def names(self) -> tuple[str, ...]:
        """The names of values, each once."""
        return tuple(dict.fromkeys(n for dollar, n in _PLACE.findall(self.text) if not dollar))

    @property
    def variables(self) -> tuple[str, ...]:
        """The names of environment variables, each once."""
        return tuple(dict.fromkeys(n for dollar, n in _PLACE.findall(self.text) if dollar))

    def filled(self, values: Mapping[str, str], secrets: Mapping[str, str]) -> str:
        """Return the text with all places filled."""

        def at(place: re.Match[str]) -> str:
            return secrets[place[2]] if place[1] else values[place[2]]

        return _PLACE.sub(at, self.text)

    def prepared(self, secrets: Mapping[str, str], quote: Callable[[str], str]) -> Prepared:
        """Return the text with its secrets, all but the values' places quoted, to be filled often.

        >>> Template("/a b/${V}/{zip}").prepared({"V": "2"}, str.upper).filled({"zip": "x"})
        '/A B/2/x'
        """
        literals, names, last = [""], [], 0
        for place in _PLACE.finditer(self.text):
            literals[-1] += self.text[last : place.start()]
            last = place.end()
            if place[1]:
                literals[-1] += secrets[place[2]]
            else:
                names.append(place[2])
                literals.append("")
        literals[-1] += self.text[last:]
        return Prepared(tuple(map(quote, literals)), tuple(names))


@dataclass(frozen=True, slots=True)
class Prepared:
    """Texts, and the names of the values that stand between them."""

    literals: tuple[str, ...]
    names: tuple[str, ...]

    def filled(self, values: Mapping[str, str]) -> str:
        """Return the text with all values in their places."""
        parts = [self.literals[0]]
        for name, literal in zip(self.names, self.literals[1:], strict=True):
            parts += (values[name], literal)
        return "".join(parts)


def read_secrets(templates: Iterable[Template]) -> dict[str, str]:
    """Return the environment variables that texts name.

    MissingSecretError for one that is not set.
    """
    secrets = {}
    for name in dict.fromkeys(name for template in templates for name in template.variables):
        if name not in os.environ:
            raise MissingSecretError(
                f"the environment variable {name} is not set, which the source of a lookup names"
            )
        secrets[name] = os.environ[name]
    return secrets


def hidden(text: str, secrets: Mapping[str, str]) -> str:
    """Return a text with the names of secrets in place of the secrets.

    >>> hidden("no route to /abc/1", {"TOKEN": "abc"})
    'no route to /${TOKEN}/1'
    """
    for name, secret in sorted(secrets.items(), key=lambda item: -len(item[1])):
        if secret:
            text = text.replace(secret, f"${{{name}}}")
    return text
