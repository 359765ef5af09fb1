"""The optional spam filter: rspamd. Without it, or while it is down, there is no result."""

import json
import logging
import math
from typing import Any, TypedDict

import aiohttp

from receiving.reading.verdicts import ReceivedEnvelope

log = logging.getLogger("postrider.receiving")

TIMEOUT = aiohttp.ClientTimeout(total=10.0)
MAX_ANSWER_BYTES = 256 * 1024
MAX_SYMBOLS = 100
MAX_SYMBOL_LENGTH = 100


class SpamResult(TypedDict):
    """The result of the filter as the resource shows it."""

    score: float
    threshold: float
    isSpam: bool
    symbols: list[str]


async def check_spam(
    source: bytes, *, url: str | None, password: str | None, envelope: ReceivedEnvelope, recipient: str
) -> SpamResult | None:
    """Return the result of the filter, or None.

    url: the operator's, which may have a private address; empty without a filter.
    """
    if not url:
        return None
    headers = {
        "Helo": _plain(envelope.helo),
        "From": _plain(envelope.mail_from),
        "Rcpt": _plain(recipient),
        **({"Ip": envelope.remote_ip} if envelope.remote_ip else {}),
        **({"Password": password} if password else {}),
    }
    try:
        async with aiohttp.ClientSession(timeout=TIMEOUT) as session:
            address = f"{url.rstrip('/')}/checkv2"
            async with session.post(address, data=source, headers=headers, allow_redirects=False) as response:
                response.raise_for_status()
                return _read_answer(await _read_json(response))
    # Deeply nested JSON raises RecursionError.
    except (aiohttp.ClientError, OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        log.warning("the spam filter did not answer", extra={"data": {"error": type(error).__name__}})
        return None


async def _read_json(response: aiohttp.ClientResponse) -> Any:
    body = b""
    while len(body) < MAX_ANSWER_BYTES and (piece := await response.content.read(MAX_ANSWER_BYTES - len(body))):
        body += piece
    return json.loads(body)


def _read_answer(answer: dict[str, Any]) -> SpamResult:
    score, threshold = float(answer["score"]), float(answer["required_score"])
    if not (math.isfinite(score) and math.isfinite(threshold)):
        raise ValueError("a score is no number")
    symbols = sorted(_plain(str(name))[:MAX_SYMBOL_LENGTH] for name in answer.get("symbols") or {})[:MAX_SYMBOLS]
    return {"score": score, "threshold": threshold, "isSpam": score >= threshold, "symbols": symbols}


def _plain(text: str) -> str:
    return "".join(character if character.isascii() and character.isprintable() else "?" for character in text)
