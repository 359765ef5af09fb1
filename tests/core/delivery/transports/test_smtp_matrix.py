"""Every stage of a session with every act of a host at that stage (F17 to F24)."""

import asyncio
import ssl
from dataclasses import dataclass, replace

import pytest
import trustme

from core.delivery.bounces.reasons import FailureReason
from core.delivery.bounces.replies import DeliveryOutcome, DeliveryStatus, SuppressOn
from core.delivery.transports.smtp.login import Login
from core.delivery.transports.smtp.tls import TlsMode
from tests.core.delivery.relaying import MESSAGE, SHORT, relay, run
from tests.core.delivery.scripted import (
    Act,
    Script,
    ScriptedServer,
    StubLease,
    disconnect,
    drip,
    flood,
    long_line,
    reset,
    silence,
    then_disconnect,
)
from tests.rows import each

# Acts run concurrently: replies must not time out on a slow processor.
PATIENT = replace(SHORT, banner=0.8, ehlo=0.8, tls=0.8, login=0.8, envelope=0.8, data=0.8, block=0.8, dot=0.8)
STAGES = ("banner", "ehlo", "starttls", "auth", "mail", "rcpt", "data", "dot")
HOST_STAGES = STAGES[:4]

ACTS: dict[str, bytes | Act] = {
    "421": b"421 4.3.0 Closing\r\n",
    "421 then disconnect": then_disconnect(b"421 4.3.0 Closing\r\n"),
    "450": b"450 Wait\r\n",
    "451": b"451 4.3.0 Wait\r\n",
    "452": b"452 4.3.1 Full\r\n",
    "550": b"550 No\r\n",
    "552": b"552 No\r\n",
    "554": b"554 5.7.1 No\r\n",
    "550 then disconnect": then_disconnect(b"550 No\r\n"),
    "disconnect": disconnect,
    "reset": reset,
    "silence": silence,
    "drip": drip,
    "flood": flood,
    "long line": long_line,
    "garbage": b"\x00\xff\xfe<html>GET / HTTP/1.1\r\n\r\n",
    "no code": b"Hello there\r\n",
    "code 999": b"999 Hello\r\n",
    "code 0": b"000 Hello\r\n",
    "two codes": b"250-One\r\n550 Two\r\n",
    "bare line feed": b"250 Ok\n250 Ok\r\n",
    "empty line": b"\r\n",
}
# No reply, or an invalid one: deferred; after the dot the outcome is unknown.
SILENT = {"silence", "drip"}
NETWORK = {"disconnect", "reset", *SILENT}
INVALID_REPLIES = {
    "flood", "long line", "garbage", "no code", "code 999", "code 0", "two codes", "bare line feed", "empty line"
}  # fmt: skip
HOST_REASONS = {
    "banner": FailureReason.HOST_TROUBLE,
    "ehlo": FailureReason.HOST_TROUBLE,
    "starttls": FailureReason.TLS,
    "auth": FailureReason.LOGIN_REFUSED,
}
BOUNCES = {
    ("550", "mail"): FailureReason.UNDETERMINED,
    ("550", "rcpt"): FailureReason.REJECTED,
    ("550", "data"): FailureReason.UNDETERMINED,
    ("550", "dot"): FailureReason.UNDETERMINED,
    ("552", "mail"): FailureReason.TOO_LARGE,
    ("552", "data"): FailureReason.TOO_LARGE,
    ("552", "dot"): FailureReason.TOO_LARGE,
    ("554", "mail"): FailureReason.UNDETERMINED,
    ("554", "rcpt"): FailureReason.REJECTED,
    ("554", "data"): FailureReason.UNDETERMINED,
    ("554", "dot"): FailureReason.UNDETERMINED,
}


def expected(stage: str, act: str) -> tuple[DeliveryStatus, FailureReason]:
    """Return the status and reason by docs/specification.md, Delivery."""
    code = act[:3]
    if act in NETWORK | INVALID_REPLIES:
        by_act = FailureReason.NETWORK if act in NETWORK else FailureReason.PROTOCOL
        return DeliveryStatus.DEFERRED, FailureReason.OUTCOME_UNKNOWN if stage == "dot" else by_act
    if stage == "auth" and code[0] == "4":
        return DeliveryStatus.DEFERRED, FailureReason.HOST_TROUBLE
    if stage in HOST_STAGES:
        return DeliveryStatus.DEFERRED, HOST_REASONS[stage]
    if code[0] == "4":
        return DeliveryStatus.DEFERRED, FailureReason.UNDETERMINED if code == "450" else FailureReason.HOST_TROUBLE
    if (code, stage) == ("552", "rcpt"):
        return DeliveryStatus.DEFERRED, FailureReason.TOO_MANY_RECIPIENTS
    return DeliveryStatus.BOUNCED, BOUNCES[code, stage]


@dataclass(frozen=True)
class Contexts:
    served: ssl.SSLContext
    trusting: ssl.SSLContext


@pytest.fixture(scope="module")
def contexts() -> Contexts:
    authority = trustme.CA()
    served, trusting = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.create_default_context()
    authority.issue_cert("127.0.0.1").configure_cert(served)
    authority.configure_trust(trusting)
    return Contexts(served, trusting)


async def attempt(stage: str, act: bytes | Act, contexts: Contexts, extensions: tuple[str, ...]) -> DeliveryOutcome:
    script: Script = {stage: act, "helo": act} if stage == "ehlo" else {stage: act}
    is_secure = stage in ("starttls", "auth")
    async with ScriptedServer(
        script,
        extensions=extensions,
        secure_extensions=(*extensions, "AUTH PLAIN"),
        tls=contexts.served if is_secure else None,
    ) as server:
        transport = relay(
            server,
            tls=TlsMode.REQUIRED if is_secure else TlsMode.NONE,
            login=Login("u", "p") if is_secure else None,
            context=contexts.trusting,
            timeouts=PATIENT,
        )
        outcome = await transport.deliver(MESSAGE, lease=StubLease())
        transport.close()
        return outcome


async def all_attempts(pairs: list[tuple[str, str]], contexts: Contexts, extensions: tuple[str, ...]):
    """Run the attempts concurrently, so that the timeouts of silent hosts overlap."""
    outcomes = await asyncio.gather(*[attempt(stage, ACTS[act], contexts, extensions) for stage, act in pairs])
    return dict(zip(pairs, outcomes, strict=True))


ANSWERED = [[(stage, act) for act in ACTS.keys() - SILENT] for stage in STAGES]


@each("extensions", [("PIPELINING",), ()])
@each("pairs", [*ANSWERED, [(stage, act) for stage in STAGES for act in sorted(SILENT)]])
def test_every_act_at_every_stage_has_its_outcome(pairs, extensions, contexts):
    outcomes = run(all_attempts(pairs, contexts, extensions))
    found = {pair: (outcome.status, outcome.reason) for pair, outcome in outcomes.items()}
    assert found == {(stage, act): expected(stage, act) for stage, act in pairs}
    for (stage, name), outcome in outcomes.items():
        assert outcome.may_be_delivered is (outcome.reason == FailureReason.OUTCOME_UNKNOWN)
        is_fault = outcome.status is DeliveryStatus.BOUNCED and stage == "rcpt"
        assert outcome.suppresses(SuppressOn.RECIPIENT_FAULT) is is_fault, name
        assert outcome.suppresses(SuppressOn.EVERY_BOUNCE) is (outcome.status is DeliveryStatus.BOUNCED), name
        assert len(outcome.reply.text) <= 4000
        assert not any(character in outcome.reply.text for character in "\0\x1b\r")
