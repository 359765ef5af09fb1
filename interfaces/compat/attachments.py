"""Attachments in requests of the dialects, with names and Content-IDs that `/v1` refuses and providers accept.

Frameworks name a file like its path (`@assets/img/logo.png`) and use file names as Content-IDs (`my logo.png`).
See docs/decisions/0291.
"""

import re
from collections.abc import Iterator
from html import escape
from typing import Any
from urllib.parse import quote

from core.lib.email_addresses import FORBIDDEN
from emails.accept.rules.attachments import CONTENT_ID
from interfaces.compat.errors import invalid_field

SEPARATORS = re.compile(r"[/\\]")
NOT_IN_CONTENT_ID = re.compile(r"[^A-Za-z0-9!#$%&'*+/=?^_`{|}~.@-]+")
SCHEME = "cid:"
MAX_LENGTH = 255
NOT_IN_TEMPLATES = (
    "A Content-ID must consist of alphanumeric characters and @ . - _ only, because the template refers to it. Change "
    "it there, too."
)


def with_clean_files(body: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of an email with clean names and Content-IDs of its files, and with the HTML that uses them.

    Raises InvalidFields for a Content-ID that would have to change in a template.
    """
    files = [_named(file) for file in body.get("attachments") or ()]
    changed = {}
    for file, (given, content_id) in zip(files, _content_ids(files), strict=True):
        file["contentId"] = content_id
        if given != content_id and isinstance(given, str):
            changed[given] = content_id
    if changed and body.get("templateId"):
        raise invalid_field("attachments", NOT_IN_TEMPLATES)
    html = body.get("html")
    return {
        **body,
        "attachments": files,
        **({"html": _with_references(html, changed)} if changed and isinstance(html, str) else {}),
    }


def _named(file: dict[str, Any]) -> dict[str, Any]:
    """Return a file with the last part of its name, without control characters; `attachment` if nothing is left."""
    name = file.get("filename")
    if not isinstance(name, str) or not name:
        return dict(file)
    last = FORBIDDEN.sub("", SEPARATORS.split(name)[-1]).strip()[-MAX_LENGTH:]
    return {**file, "filename": last if last.strip(". ") else "attachment"}


def _content_ids(files: list[dict[str, Any]]) -> Iterator[tuple[Any, Any]]:
    """Yield the Content-ID of each file without `cid:` and angle brackets, and a valid one that no other file has."""
    bare = [_bare(file.get("contentId")) for file in files]
    taken = {text for text in bare if isinstance(text, str) and CONTENT_ID.fullmatch(text)}
    renamed: dict[str, str] = {}
    for number, text in enumerate(bare, 1):
        if not isinstance(text, str) or text in taken:
            yield text, text
            continue
        if text not in renamed:
            clean = NOT_IN_CONTENT_ID.sub("_", text)[:MAX_LENGTH]
            renamed[text] = clean if clean not in taken else f"{number}.{clean}"[:MAX_LENGTH]
            taken.add(renamed[text])
        yield text, renamed[text]


def _bare(content_id: Any) -> Any:
    if not isinstance(content_id, str):
        return content_id
    return content_id.strip().removeprefix(SCHEME).removeprefix("<").removesuffix(">").strip() or None


def _with_references(html: str, changed: dict[str, str]) -> str:
    """Return HTML whose references have the changed Content-IDs, as they were written or encoded (RFC 2392)."""
    for given in sorted(changed, key=len, reverse=True):
        for spelling in spellings(given):
            html = html.replace(SCHEME + spelling, SCHEME + changed[given])
    return html


def spellings(text: str) -> list[str]:
    """Return a text as it is written in HTML: plain, with character references, and percent-encoded in a URL."""
    return list(dict.fromkeys((text, escape(text), quote(text, errors="replace"))))
