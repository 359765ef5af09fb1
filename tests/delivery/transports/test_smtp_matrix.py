"""Every stage of a session, and at each everything that a host may do there (F17 to F24)."""

import asyncio
import ssl
from dataclasses import dataclass, replace

import pytest
import trustme

from delivery.bounces.reasons import Reason
from delivery.bounces.replies import DeliveryOutcome, DeliveryStatus, SuppressOn
from delivery.transports.smtp.login import Login
from delivery.transports.smtp.tls import Tls
from tests.delivery.relaying import PARCEL, SHORT, relay, run
from tests.delivery.scripted import (
    Act,
    HeldLease,
    Script,
    ScriptedServer,
    disconnect,
    drip,
    flood,
    long_line,
    reset,
    silence,
    then_disconnect,
)

# All acts are played at once: those that answer must not be late for want of a processor.
PATIENT = replace(SHORT, banner=0.8, ehlo=0.8, tls=0.8, login=0.8, envelope=0.8, data=0.8, block=0.8, dot=0.8)
STAGES = ("banner", "ehlo", "starttls", "auth", "mail", "rcpt", "data", "dot")
HOST_STAGES = STAGES[:4]

ACTS: dict[str, bytes | Act] = {
    "421": b"421 4.3.0 Closing\r\n",
    "421 and a closed door": then_disconnect(b"421 4.3.0 Closing\r\n"),
    "450": b"450 Wait\r\n",
    "451": b"451 4.3.0 Wait\r\n",
    "452": b"452 4.3.1 Full\r\n",
    "550": b"550 No\r\n",
    "552": b"552 No\r\n",
    "554": b"554 5.7.1 No\r\n",
    "550 and a closed door": then_disconnect(b"550 No\r\n"),
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
# No answer, or none that is SMTP: tried again; after the dot nobody knows.
NETWORK = {"disconnect", "reset", "silence", "drip"}
NONSENSE = {
    "flood", "long line", "garbage", "no code", "code 999", "code 0", "two codes", "bare line feed", "empty line"
}  # fmt: skip
HOST_REASONS = {
    "banner": Reason.HOST_TROUBLE,
    "ehlo": Reason.HOST_TROUBLE,
    "starttls": Reason.TLS,
    "auth": Reason.LOGIN_REFUSED,
}
BOUNCES = {
    ("550", "mail"): Reason.UNDETERMINED,
    ("550", "rcpt"): Reason.REJECTED,
    ("550", "data"): Reason.UNDETERMINED,
    ("550", "dot"): Reason.UNDETERMINED,
    ("552", "mail"): Reason.TOO_LARGE,
    ("552", "data"): Reason.TOO_LARGE,
    ("552", "dot"): Reason.TOO_LARGE,
    ("554", "mail"): Reason.UNDETERMINED,
    ("554", "rcpt"): Reason.REJECTED,
    ("554", "data"): Reason.UNDETERMINED,
    ("554", "dot"): Reason.UNDETERMINED,
}


def expected(stage: str, act: str) -> tuple[DeliveryStatus, Reason]:
    """Say what CONTRACT section 4 makes of it."""
    code = act[:3]
    if act in NETWORK | NONSENSE:
        by_act = Reason.NETWORK if act in NETWORK else Reason.PROTOCOL
        return DeliveryStatus.DEFERRED, Reason.OUTCOME_UNKNOWN if stage == "dot" else by_act
    if stage == "auth" and code[0] == "4":
        return DeliveryStatus.DEFERRED, Reason.HOST_TROUBLE
    if stage in HOST_STAGES:
        return DeliveryStatus.DEFERRED, HOST_REASONS[stage]
    if code[0] == "4":
        return DeliveryStatus.DEFERRED, Reason.UNDETERMINED if code == "450" else Reason.HOST_TROUBLE
    if (code, stage) == ("552", "rcpt"):
        return DeliveryStatus.DEFERRED, Reason.TOO_MANY_RECIPIENTS
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
            tls=Tls.REQUIRED if is_secure else Tls.NONE,
            login=Login("u", "p") if is_secure else None,
            context=contexts.trusting,
            timeouts=PATIENT,
        )
        outcome = await transport.deliver(PARCEL, lease=HeldLease())
        transport.close()
        return outcome


async def all_acts(stage: str, contexts: Contexts, extensions: tuple[str, ...]) -> dict[str, DeliveryOutcome]:
    """Let every act be played at once, so that the silent ones are waited for together."""
    outcomes = await asyncio.gather(*[attempt(stage, act, contexts, extensions) for act in ACTS.values()])
    return dict(zip(ACTS, outcomes, strict=True))


@pytest.mark.parametrize("extensions", [("PIPELINING",), ()], ids=["pipelined", "one by one"])
@pytest.mark.parametrize("stage", STAGES)
def test_what_a_host_may_do(stage, extensions, contexts):
    outcomes = run(all_acts(stage, contexts, extensions))
    found = {name: (outcome.verdict, outcome.reason) for name, outcome in outcomes.items()}
    assert found == {name: expected(stage, name) for name in ACTS}
    for name, outcome in outcomes.items():
        assert outcome.may_be_delivered is (outcome.reason == Reason.OUTCOME_UNKNOWN)
        is_fault = outcome.verdict is DeliveryStatus.BOUNCED and stage == "rcpt"
        assert outcome.suppresses(SuppressOn.RECIPIENT_FAULT) is is_fault, name
        assert outcome.suppresses(SuppressOn.EVERY_BOUNCE) is (outcome.verdict is DeliveryStatus.BOUNCED), name
        assert len(outcome.reply.text) <= 4000
        assert not any(character in outcome.reply.text for character in "\0\x1b\r")
