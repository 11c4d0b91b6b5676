"""Label and field selectors, from their text to a predicate."""

import re
from collections.abc import Callable, Collection
from typing import Any, NamedTuple

from mcptasks_local.errors import Object, bad_request
from mcptasks_local.resources import Resource

Predicate = Callable[[Object], bool]

_TOKEN = re.compile(r"\s*(==|!=|=|!|,|\(|\)|<|>|[^\s=!,()<>]+)")
_NAME = re.compile(r"([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")


class Requirement(NamedTuple):
    """One part of a label selector: `operator` is in, notin, exists, absent, < or >."""

    key: str
    operator: str
    values: frozenset[str]

    def matches(self, labels: dict[str, str]) -> bool:
        has, value = self.key in labels, labels.get(self.key, "")
        match self.operator:
            case "in":
                return has and value in self.values
            case "notin":
                return not has or value not in self.values
            case "exists":
                return has
            case "absent":
                return not has
            case order:
                (bound,) = self.values
                if not (value.isdecimal() and bound.isdecimal()):
                    return False
                return int(value) > int(bound) if order == ">" else int(value) < int(bound)


def parse_labels(text: str) -> list[Requirement]:
    """`a=b,c!=d,e in (f,g),h,!i` as requirements; all of them must hold.

    Raises:
        ApiError: 400, it cannot be read.
    """
    tokens: list[str] = []
    position, text = 0, text.rstrip()
    while position < len(text):
        found = _TOKEN.match(text, position)
        if found is None:  # pragma: no cover - the last alternative takes whatever the others leave
            raise bad_request(f"unable to parse requirement: {text[position:]!r}")
        tokens.append(found[1])
        position = found.end()
    requirements: list[Requirement] = []
    while tokens:
        requirements.append(_requirement(tokens))
        if tokens and tokens.pop(0) != ",":
            raise bad_request(f"unable to parse requirement: found '{text}', expected: ',' or 'end of string'")
        if not tokens and text.endswith(","):
            raise bad_request("unable to parse requirement: found '', expected: identifier after ','")
    return requirements


def _requirement(tokens: list[str]) -> Requirement:
    if tokens[0] == "!":
        tokens.pop(0)
        return Requirement(_identifier(tokens), "absent", frozenset())
    key = _identifier(tokens)
    if not tokens or tokens[0] == ",":
        return Requirement(key, "exists", frozenset())
    operator = tokens.pop(0)
    if operator in ("in", "notin"):
        return Requirement(key, operator, frozenset(_values(tokens)))
    if operator not in ("=", "==", "!=", "<", ">"):
        raise bad_request(f"unable to parse requirement: found '{operator}', expected: in, notin, =, ==, !=, gt, lt")
    value = tokens.pop(0) if tokens and tokens[0] != "," else ""
    if value in ("=", "==", "!=", "!", "(", ")", "<", ">"):
        raise bad_request(f"unable to parse requirement: found '{value}', expected: identifier")
    names = {"=": "in", "==": "in", "!=": "notin"}
    return Requirement(key, names.get(operator, operator), frozenset([value]))


def _identifier(tokens: list[str]) -> str:
    token = tokens.pop(0) if tokens else ""
    if not _NAME.fullmatch(token):
        raise bad_request(f"unable to parse requirement: found '{token}', expected: !, identifier, or 'end of string'")
    return token


def _values(tokens: list[str]) -> list[str]:
    if not tokens or tokens.pop(0) != "(":
        raise bad_request("unable to parse requirement: expected: '(' after in or notin")
    values: list[str] = []
    while tokens and (part := tokens.pop(0)) != ")":
        if part != ",":
            values.append(part)
    return values


def by_labels(text: str) -> Predicate:
    """A predicate on objects."""
    requirements = parse_labels(text)
    return lambda obj: all(part.matches(obj["metadata"].get("labels") or {}) for part in requirements)


def by_fields(text: str, supported: Collection[str]) -> Predicate:
    """A predicate for `status.phase=Running,metadata.name!=x`.

    Raises:
        ApiError: 400, it cannot be read, or names a field that is not in `supported`.
    """
    tests: list[tuple[list[str], str, bool]] = []
    for part in text.split(","):
        if not part:
            continue
        path, operator, value = re.match(r"([^=!]*)(==|=|!=)?(.*)", part, re.DOTALL).groups()  # type: ignore[union-attr]
        if operator is None:
            raise bad_request(f"invalid selector: '{text}'; can't understand '{part}'")
        if path not in supported:
            raise bad_request(f"field label not supported: {path}")
        tests.append((path.split("."), value, operator != "!="))
    return lambda obj: all((_text(value_at(obj, path)) == value) == wanted for path, value, wanted in tests)


def value_at(obj: Any, path: list[str]) -> Any:
    """What lies at a path of keys, or None."""
    for key in path:
        if not isinstance(obj, dict):
            return None
        obj = obj.get(key)
    return obj


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def matcher(resource: Resource, labels: str | None, fields: str | None) -> Predicate:
    """A predicate for objects of ``resource`` from both selectors of a request.

    Raises:
        ApiError: 400, a selector cannot be read.
    """
    by_label = by_labels(labels or "")
    by_field = by_fields(fields or "", ("metadata.name", "metadata.namespace", *resource.fields))
    return lambda obj: by_label(obj) and by_field(obj)
