"""`postrider apply --init`: writes a file that describes the present state of a workspace."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Optional
from urllib.parse import urlsplit

import click
import yaml

from postrider_client.cli.configuration.kinds import KINDS, Kind, Place, Values, is_received, subdomain_of
from postrider_client.cli.configuration.session import Session
from postrider_client.cli.configuration.targets import ADMIN
from postrider_client.cli.inputs import FILE_FIELDS

TEMPLATES, STREAMS, ALERTS = "templates", "streams", "alerts"
# Sections that are not in the file if they are empty.
OPTIONAL = (STREAMS, ALERTS, "routes", "blocks")
# The stream of a workspace that has not changed it, which is not in the file.
UNCHANGED_MAIN = {
    "id": "main",
    "name": "Main",
    "description": "",
    "kind": "transactional",
    "unsubscribe": "link",
    "scope": "workspace",
    "ownBounces": False,
    "ignoresUnsubscribes": False,
    "public": False,
    "priority": "normal",
    "trackOpens": True,
    "trackClicks": True,
    "trackingDetail": "full",
    "archived": False,
}
# Fields that the file has in another form, or only if they are not the defaults.
SPECIAL = {
    "domains": {"openTracking", "clickTracking", "tracking", "receiving"},
    "templates": {"htmlContent", "textContent", "locales"},
    "webhooks": {"headers"},
}
CONTENT_FILES = (("htmlFile", "htmlContent", "html"), ("textFile", "textContent", "txt"))
ALIAS = re.compile(r"[A-Za-z][A-Za-z0-9._-]*")


@dataclass
class InitialFile:
    """The text of the file, the files of templates by their path, variables it refers to, and notes for the user."""

    text: str = ""
    contents: dict[str, str] = field(default_factory=dict)
    variables: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def write(self, path: Path) -> None:
        """Write all files. Raises click.ClickException if one of them exists."""
        files = {path: self.text, **{path.parent / name: text for name, text in self.contents.items()}}
        for file in files:
            if file.exists():
                raise click.ClickException(f"{file} exists already. Nothing was written.")
        for file, text in files.items():
            file.parent.mkdir(parents=True, exist_ok=True)
            with file.open("x", encoding="utf-8", newline="") as opened:
                opened.write(text)


def describe_workspace(session: Session) -> InitialFile:
    """Return the file of the workspace of the API key."""
    if session.is_management:
        raise click.ClickException("--init requires an API key, which belongs to one workspace.")
    me, result = session.manager.me(), InitialFile()
    is_admin = me.key.scope == ADMIN
    values: dict[str, Any] = {}
    if is_admin:
        # me() may be a second old.
        present = session.manager.workspaces.get(me.workspace.id).raw
        values = {name: _escaped(present[name]) for name in ("name", "recipientRules") if name in present}
    place = session.place(me.workspace.id)
    for kind in KINDS:
        if is_admin or kind.section != "apiKeys":
            values[kind.section] = list(_entries(kind, place, result, key_id=me.key.id))
    for section in OPTIONAL:
        if not values[section]:
            del values[section]
    result.text = yaml.safe_dump(values, sort_keys=False, allow_unicode=True)
    return result


def _entries(kind: Kind, place: Place, result: InitialFile, *, key_id: str) -> Iterator[Values]:
    known = set[Any]()
    for item in sorted(kind.list(place), key=lambda one: one.created_at):
        identity = kind.identity_of(item.raw)
        if identity not in known and item.id != key_id:
            known.add(identity)
            entry = _entry(kind, kind.read(place, item), result)
            yield from [entry] if entry else []


def _entry(kind: Kind, present: Values, result: InitialFile) -> Optional[Values]:
    """Return an object as the file describes it, or None for one that it cannot describe."""
    names = dict.fromkeys((*kind.identity, *FILE_FIELDS[kind.section]))
    special = SPECIAL.get(kind.section, set())
    entry = {name: _escaped(present[name]) for name in names if name in present and name not in special}
    if entry.get("emailOwners") is True:
        # The default.
        del entry["emailOwners"]
    if kind.section == TEMPLATES:
        return _template(entry, present, result)
    if kind.section == "domains":
        return {**entry, **_tracking(present), **({"receiving": True} if is_received(present.get("receiving")) else {})}
    if kind.section == "webhooks":
        return {**entry, "url": _url(present["url"], result), **_headers(present, result)}
    if kind.section in {"routes", ALERTS}:
        # In the file, null would be a value.
        return {name: value for name, value in entry.items() if value not in ([], None)}
    if kind.section == STREAMS:
        given = {name: value for name, value in entry.items() if value is not None}
        return None if _is_unchanged_main(entry) else given
    return {name: value for name, value in entry.items() if value not in ({}, None, False)}


def _is_unchanged_main(entry: Values) -> bool:
    """Return whether a stream is `main` as every workspace has it. A newer field is unchanged if it is empty."""
    return all(value == UNCHANGED_MAIN[name] if name in UNCHANGED_MAIN else not value for name, value in entry.items())


def _tracking(present: Values) -> Values:
    """Return the settings of a domain that are not the defaults; an older service has none of them."""
    entry: dict[str, Any] = {name: False for name in ("openTracking", "clickTracking") if present.get(name) is False}
    subdomain = subdomain_of(present.get("tracking"))
    return {**entry, **({"tracking": {"subdomain": subdomain}} if subdomain else {})}


def _template(entry: dict[str, Any], present: Values, result: InitialFile) -> Optional[Values]:
    alias = present["alias"]
    if not alias or not ALIAS.fullmatch(alias):
        result.notes.append(f"The template {present['name']} has no alias and is not in the file.")
        return None
    entry = {name: value for name, value in entry.items() if value not in (None, {}, [], "", "template")}
    locales = {locale: _files(texts, f"{alias}.{locale}", result) for locale, texts in present["locales"].items()}
    return {**entry, **_files(present, alias, result), **({"locales": locales} if locales else {})}


def _files(texts: Values, name: str, result: InitialFile) -> Values:
    """Write the HTML and text of a template, or of one of its languages, to files; return the fields that name them."""
    entry: dict[str, Any] = {"subject": _escaped(texts["subject"])} if texts.get("subject") else {}
    for field_name, content_name, suffix in CONTENT_FILES:
        if texts.get(content_name):
            entry[field_name] = f"{TEMPLATES}/{name}.{suffix}"
            result.contents[entry[field_name]] = texts[content_name]
    return entry


def _url(url: str, result: InitialFile) -> str:
    """Return a URL with a reference in place of its query, which may contain a secret."""
    query = urlsplit(url).query
    if not query:
        return str(_escaped(url))
    variable = f"WEBHOOK_QUERY_{len(result.variables) + 1}"
    result.variables.append(variable)
    result.notes.append(f"Set {variable} to the query of the webhook {url.partition('?')[0]}.")
    before, _, after = url.partition(f"?{query}")
    return f"{_escaped(before)}?${{{variable}}}{_escaped(after)}"


def _headers(present: Values, result: InitialFile) -> Values:
    """Return the headers of a webhook with references in place of their values, which the service does not show."""
    if not present.get("headers"):
        return {}
    headers = {}
    for name in present["headers"]:
        variable = f"WEBHOOK_HEADER_{len(result.variables) + 1}"
        result.variables.append(variable)
        result.notes.append(f"Set {variable} to the header {name} of the webhook {present['url'].partition('?')[0]}.")
        headers[name] = f"${{{variable}}}"
    return {"headers": headers}


def _escaped(value: Any) -> Any:
    """Return a value in which `${` is literal, without empty limits; an empty list of allowed recipients is a rule."""
    if isinstance(value, Mapping):
        return {name: _escaped(one) for name, one in value.items() if name == "allow" or one not in ([], None)}
    if isinstance(value, list):
        return [_escaped(one) for one in value]
    return value.replace("${", "$${") if isinstance(value, str) else value
