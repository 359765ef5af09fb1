"""SMTP sessions with one relay: the bytes on the wire, and the outcome."""

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.delivery.bounces.reasons import FailureReason
from core.delivery.bounces.replies import DeliveryStatus, SuppressOn
from core.delivery.message.compose import OutgoingMessage
from core.delivery.message.errors import UnsafeAddress
from core.delivery.transports.destinations import DestinationLimits
from core.delivery.transports.interface import LeaseLost
from core.delivery.transports.relay import inbox_transport
from core.delivery.transports.smtp.commands import dot_stuffed
from core.delivery.transports.smtp.mail_host import Timeouts
from tests.conftest import examples
from tests.core.delivery.relaying import MESSAGE, SHORT, Bytes, awaited, deliver, relay
from tests.core.delivery.scripted import GOOD, ScriptedServer, StubLease, after, disconnect, outgoing_message, silence
from tests.rows import each

LEASE = StubLease()


@awaited
async def test_a_message_arrives_as_it_was_composed():
    async with ScriptedServer() as server:
        outcome = await relay(server).deliver(MESSAGE, lease=LEASE)
        wanted = DeliveryStatus.SENT, 250, "2.0.0 Queued as 1"
        assert (outcome.status, outcome.reply.code, outcome.reply.text) == wanted
        assert server.messages == [MESSAGE.to_bytes()]
        assert server.said("EHLO") == ["EHLO sender.example"]
        assert server.said("MAIL") == [f"MAIL FROM:<bounce+1@example.org> SIZE={len(MESSAGE.to_bytes())}"]
        assert server.said("RCPT") == ["RCPT TO:<ada@example.com>"]


@awaited
async def test_acceptance_by_the_inbox_is_a_delivery():
    async with ScriptedServer() as server:
        transport = inbox_transport(port=server.port, ehlo_name="localhost")
        assert (await transport.deliver(MESSAGE, lease=LEASE)).status is DeliveryStatus.DELIVERED
        transport.close()


class TestConnections:
    @awaited
    async def test_a_connection_is_reused(self):
        async with ScriptedServer({"rcpt": [b"250 Ok\r\n", b"550 5.1.1 Unknown\r\n", b"250 Ok\r\n"]}) as server:
            transport = relay(server)
            statuses = [(await transport.deliver(MESSAGE, lease=LEASE)).status for _ in range(3)]
            assert statuses == [DeliveryStatus.SENT, DeliveryStatus.BOUNCED, DeliveryStatus.SENT]
            assert server.connections == 1
            assert server.said("RSET"), "a refusal is followed by RSET"
            transport.close()
            await asyncio.sleep(0.05)
            assert server.open == 0
            assert server.said("QUIT")

    @each("reply", [b"500 What?\r\n", b"450 Later\r\n", b"421 Bye\r\n"])
    @awaited
    async def test_a_connection_that_refuses_rset_is_closed(self, reply):
        script = {"rcpt": [b"550 5.1.1 Unknown\r\n", b"250 Ok\r\n"], "rset": reply}
        async with ScriptedServer(script) as server:
            transport = relay(server)
            statuses = [(await transport.deliver(MESSAGE, lease=LEASE)).status for _ in range(2)]
            assert statuses == [DeliveryStatus.BOUNCED, DeliveryStatus.SENT]
            assert server.connections == 2

    @each("way", ["closed", "421"])
    @awaited
    async def test_a_connection_closed_between_messages_costs_no_attempt(self, way):
        script = {"mail": [b"250 Ok\r\n", disconnect if way == "closed" else b"421 Idle\r\n", b"250 Ok\r\n"]}
        async with ScriptedServer(script) as server:
            transport = relay(server)
            for _ in range(2):
                assert (await transport.deliver(MESSAGE, lease=LEASE)).status is DeliveryStatus.SENT
            assert server.connections == 2

    @each(
        ("stage", "act", "messages"),
        [("rcpt", disconnect, 1), ("data", disconnect, 1), ("dot", disconnect, 2), ("mail", b"550 5.7.1 No\r\n", 1)],
    )
    @awaited
    async def test_a_kept_connection_that_ends_or_refuses_later_is_not_replaced_in_the_same_attempt(
        self, stage, act, messages
    ):
        async with ScriptedServer({stage: [GOOD[stage], act, GOOD[stage]]}) as server:
            transport = relay(server)
            assert (await transport.deliver(MESSAGE, lease=LEASE)).status is DeliveryStatus.SENT
            assert (await transport.deliver(MESSAGE, lease=LEASE)).status is not DeliveryStatus.SENT
            assert (server.connections, len(server.messages)) == (1, messages)
            transport.close()

    @awaited
    async def test_a_connection_that_waits_for_the_body_of_a_refused_message_is_closed(self):
        # Pipelined: the host answers DATA with 354 although it has refused the recipient.
        async with ScriptedServer({"rcpt": b"550 5.1.1 Unknown\r\n", "data": GOOD["data"]}) as server:
            assert (await relay(server).deliver(MESSAGE, lease=LEASE)).status is DeliveryStatus.BOUNCED
            await asyncio.sleep(0.05)
            assert (server.connections, server.open, server.messages) == (1, 0, [])

    @awaited
    async def test_a_connection_with_unexpected_data_is_not_reused(self):
        async def chatter(visit):
            await visit.say(b"250 Ok\r\n")
            await asyncio.sleep(0.02)
            await visit.say(b"421 Idle for too long\r\n")

        async with ScriptedServer({"dot": chatter}) as server:
            transport = relay(server)
            await transport.deliver(MESSAGE, lease=LEASE)
            await asyncio.sleep(0.1)
            assert (await transport.deliver(MESSAGE, lease=LEASE)).status is DeliveryStatus.SENT
            assert server.connections == 2

    @awaited
    async def test_a_connection_has_a_message_limit_and_an_idle_time(self):
        async with ScriptedServer() as server:
            transport = relay(server, limits=DestinationLimits(max_messages=2, idle_seconds=1))
            for _ in range(4):
                await transport.deliver(MESSAGE, lease=LEASE)
            assert server.connections == 2
            await transport.deliver(MESSAGE, lease=LEASE)
            assert (server.connections, server.open) == (3, 1)
            async with asyncio.timeout(30):
                while server.open:
                    await asyncio.sleep(0.05)


class TestPipelining:
    @awaited
    async def test_three_commands_travel_in_one_packet(self):
        packets = []

        async def watch(visit):
            packets.append(len(visit.reader._buffer))
            await visit.say(b"250 Ok\r\n")

        async with ScriptedServer({"mail": watch}) as server:
            await relay(server).deliver(MESSAGE, lease=LEASE)
            assert packets[0] > 0, "RCPT and DATA arrive before the reply to MAIL"
        async with ScriptedServer({"mail": watch}, extensions=()) as server:
            await relay(server).deliver(MESSAGE, lease=LEASE)
            assert packets[1] == 0

    def test_the_first_refusal_is_the_reply(self):
        script = {"mail": b"550 5.7.1 Sender blocked\r\n", "rcpt": b"503 MAIL first\r\n", "data": b"503 RCPT first\r\n"}
        outcome = deliver(script)
        assert outcome.reply.text == "5.7.1 Sender blocked"
        assert (outcome.status, outcome.is_recipient_fault) == (DeliveryStatus.BOUNCED, False)

    @each("stage", ["mail", "rcpt", "dot"])
    @each("name", ["example.org", "bounces.shop.example", "sender.example"])
    def test_a_refusal_that_names_the_sender_does_not_blame_the_recipient(self, stage, name):
        """By the domain of From, that of the return path, or the EHLO name."""
        message = outgoing_message(return_path="bounce+1@bounces.shop.example")
        outcome = deliver({stage: f"553 5.1.0 {name} does not exist\r\n".encode()}, message)
        assert (outcome.status, outcome.is_recipient_fault) == (DeliveryStatus.BOUNCED, False)
        if stage == "rcpt":
            assert deliver({stage: b"553 5.1.0 other.example does not exist\r\n"}, message).is_recipient_fault

    @awaited
    async def test_a_host_that_accepts_data_without_a_recipient_gets_no_body(self):
        script = {"rcpt": [b"550 5.1.1 Unknown\r\n", b"250 Ok\r\n"], "data": b"354 Go\r\n"}
        async with ScriptedServer(script) as server:
            transport = relay(server)
            outcome = await transport.deliver(MESSAGE, lease=LEASE)
            assert (outcome.status, outcome.reason) == (DeliveryStatus.BOUNCED, FailureReason.UNKNOWN_USER)
            assert server.messages == []
            assert (await transport.deliver(MESSAGE, lease=LEASE)).status is DeliveryStatus.SENT
            assert len(server.messages) == 1

    def test_replies_may_arrive_in_one_packet_or_in_many(self):
        async def all_at_once(visit):
            await visit.say(b"250 Ok\r\n250 O")

        async def the_rest(visit):
            for byte in b"k\r\n":
                await visit.say(bytes([byte]))

        assert deliver({"mail": all_at_once, "rcpt": the_rest, "data": b"354 Go\r\n"}).status is DeliveryStatus.SENT


class TestGreylisting:
    @awaited
    async def test_the_second_try_has_the_same_envelope_and_passes(self):
        seen: dict[tuple[str, str], int] = {}

        async def greylist(visit):
            key = (server.said("MAIL")[-1], visit.line.decode())
            seen[key] = seen.get(key, 0) + 1
            first = seen[key] == 1
            await visit.say(b"451 4.7.1 Greylisted, try again in 5 minutes\r\n" if first else b"250 Ok\r\n")

        async with ScriptedServer({"rcpt": greylist}) as server:
            transport = relay(server)
            outcomes = [await transport.deliver(MESSAGE, lease=LEASE) for _ in range(2)]
            assert [(one.status, one.reason) for one in outcomes] == [
                (DeliveryStatus.DEFERRED, FailureReason.GREYLISTED),
                (DeliveryStatus.SENT, ""),
            ]
            assert len(seen) == 1


class TestBody:
    BYTES = st.lists(st.sampled_from([b"\r", b"\n", b".", b"a", b"\r\n"]), max_size=40).map(b"".join)

    @given(BYTES)
    @settings(max_examples=examples(500))
    def test_only_crlf_and_stuffed_dots_leave(self, body):
        wire = dot_stuffed(body)
        assert wire.endswith(b"\r\n.\r\n") or wire == b".\r\n"
        inside = wire.removesuffix(b".\r\n")
        assert b"\n" not in inside.replace(b"\r\n", b"")
        assert b"\r" not in inside.replace(b"\r\n", b"")
        lines = inside.split(b"\r\n")
        assert all(line.startswith(b"..") for line in lines if line.startswith(b"."))
        unstuffed = b"\r\n".join(line[1:] if line.startswith(b".") else line for line in lines)
        normal = body.replace(b"\r\n", b"\n").replace(b"\r", b"\n").replace(b"\n", b"\r\n")
        assert unstuffed in (normal, normal + b"\r\n")

    @given(st.lists(BYTES, min_size=1, max_size=10))
    @settings(max_examples=examples(30))
    @awaited
    async def test_the_host_gets_one_message_each(self, bodies):
        async with ScriptedServer() as server:
            transport = relay(server)
            for body in bodies:
                await transport.deliver(Bytes(body), lease=LEASE)
            assert len(server.messages) == len(bodies)
            for body, got in zip(bodies, server.messages, strict=True):
                assert got + b".\r\n" == dot_stuffed(body)
            transport.close()

    @awaited
    async def test_a_large_message_goes_in_blocks(self):
        data = (b"x" * 76 + b"\r\n") * 50_000
        async with ScriptedServer() as server:
            await relay(server, timeouts=Timeouts()).deliver(Bytes(data), lease=LEASE)
            assert server.messages == [data]

    @awaited
    async def test_a_message_above_the_size_limit_of_the_host_is_not_sent(self):
        async with ScriptedServer(extensions=("SIZE 100",)) as server:
            outcome = await relay(server).deliver(Bytes(b"x" * 101), lease=LEASE)
            assert (outcome.status, outcome.reason) == (DeliveryStatus.BOUNCED, FailureReason.TOO_LARGE)
            assert not outcome.suppresses(SuppressOn.RECIPIENT_FAULT)
            assert server.said("MAIL") == []
            assert (await relay(server).deliver(Bytes(b"x" * 100), lease=LEASE)).status is DeliveryStatus.SENT

    def test_a_refusal_during_the_body_ends_the_transfer(self):
        data = (b"x" * 76 + b"\r\n") * 300_000

        async def interrupt(visit):
            await visit.say(b"354 Go\r\n552 5.3.4 Too big\r\n")
            await visit.reader.read(100)
            await asyncio.sleep(1)

        outcome = deliver({"data": interrupt}, Bytes(data), timeouts=Timeouts())
        wanted = DeliveryStatus.BOUNCED, FailureReason.TOO_LARGE, False
        assert (outcome.status, outcome.reason, outcome.may_be_delivered) == wanted

    def test_a_connection_lost_during_the_body_is_no_delivery(self):
        data = (b"x" * 76 + b"\r\n") * 300_000

        async def leave(visit):
            await visit.say(b"354 Go\r\n")
            await visit.reader.readexactly(1000)
            visit.writer.transport.abort()

        outcome = deliver({"data": leave}, Bytes(data), timeouts=Timeouts())
        wanted = DeliveryStatus.DEFERRED, FailureReason.NETWORK, False
        assert (outcome.status, outcome.reason, outcome.may_be_delivered) == wanted

    def test_a_host_that_does_not_read_times_out(self):
        async def stop(visit):
            visit.writer.transport.pause_reading()
            await visit.say(b"354 Go\r\n")
            await asyncio.sleep(3)

        data = (b"x" * 76 + b"\r\n") * 300_000
        outcome = deliver({"data": stop}, Bytes(data))
        assert (outcome.reason, outcome.may_be_delivered) == (FailureReason.NETWORK, False)


class TestLease:
    @each("size", [100, 1_000_000])
    @awaited
    async def test_a_lost_lease_prevents_the_last_write(self, size):
        async with ScriptedServer() as server:
            transport = relay(server, timeouts=Timeouts())
            lease = StubLease(valid=False)
            with pytest.raises(LeaseLost):
                await transport.deliver(Bytes(b"x" * size), lease=lease)
            await asyncio.sleep(0.05)
            assert (lease.asked, server.messages, server.open) == (1, [], 0)
            assert (await transport.deliver(MESSAGE, lease=LEASE)).status is DeliveryStatus.SENT

    @each("extensions", [("PIPELINING",), ()])
    @each(
        ("stage", "commands", "pipelined_commands"),
        [
            ("banner", [], []),
            ("ehlo", [], []),
            ("mail", ["MAIL"], ["MAIL", "RCPT", "DATA"]),
            ("rcpt", ["MAIL", "RCPT"], ["MAIL", "RCPT", "DATA"]),
            ("data", ["MAIL", "RCPT", "DATA"], ["MAIL", "RCPT", "DATA"]),
        ],
    )
    @awaited
    async def test_one_that_is_lost_while_the_host_replies_ends_the_message_there(
        self, stage, commands, pipelined_commands, extensions
    ):
        lease = StubLease()
        replies = {**GOOD, "ehlo": b"".join(b"250-%s\r\n" % one.encode() for one in extensions) + b"250 mx\r\n"}

        async def lose(visit):
            lease.valid = False
            await visit.say(replies[stage])

        async with ScriptedServer({stage: lose}, extensions=extensions) as server:
            transport = relay(server)
            with pytest.raises(LeaseLost):
                await transport.deliver(MESSAGE, lease=lease)
            await asyncio.sleep(0.05)
            begun = [line.split()[0].decode() for line in server.commands if not line.startswith((b"EHLO", b"QUIT"))]
            assert begun == (pipelined_commands if extensions else commands)
            # Only complete messages are in the list.
            assert server.messages == []
            transport.close()

    @awaited
    async def test_one_that_is_lost_during_rset_leaves_the_connection_to_the_next_message(self):
        lease = StubLease()

        async def lose(visit):
            lease.valid = False
            await visit.say(GOOD["rset"])

        async with ScriptedServer({"rcpt": [b"550 5.1.1 Unknown\r\n", b"250 Ok\r\n"], "rset": lose}) as server:
            transport = relay(server)
            await transport.deliver(MESSAGE, lease=LEASE)
            with pytest.raises(LeaseLost):
                await transport.deliver(MESSAGE, lease=lease)
            assert len(server.said("MAIL")) == 1
            assert (await transport.deliver(MESSAGE, lease=LEASE)).status is DeliveryStatus.SENT
            assert server.connections == 1
            transport.close()

    @awaited
    async def test_one_that_is_lost_during_the_body_leaves_the_message_unfinished(self):
        lease = StubLease()

        async def lose(visit):
            await visit.say(GOOD["data"])
            await visit.reader.readexactly(1_000_000)
            lease.valid = False
            await visit.reader.read()

        async with ScriptedServer({"data": lose}, extensions=("PIPELINING",)) as server:
            transport = relay(server, timeouts=Timeouts())
            with pytest.raises(LeaseLost):
                await transport.deliver(Bytes(b"x" * 30_000_000), lease=lease)
            assert (len(server.said("DATA")), server.messages) == (1, [])


class TestParameters:
    @awaited
    async def test_a_success_dsn_is_requested_from_hosts_that_offer_dsn(self):
        async with ScriptedServer(extensions=("DSN", "PIPELINING")) as server:
            outcome = await relay(server).deliver(MESSAGE, lease=LEASE)
            assert outcome.success_dsn_requested
            assert server.said("MAIL") == ["MAIL FROM:<bounce+1@example.org> RET=HDRS ENVID=bounce+2B1@example.org"]
            assert server.said("RCPT") == [
                "RCPT TO:<ada@example.com> NOTIFY=SUCCESS,FAILURE,DELAY ORCPT=rfc822;ada@example.com"
            ]
        async with ScriptedServer() as server:
            assert not (await relay(server).deliver(MESSAGE, lease=LEASE)).success_dsn_requested

    def test_a_250_of_the_final_host_needs_no_dsn(self):
        outcome = deliver(extensions=("DSN",), on_acceptance=DeliveryStatus.DELIVERED)
        assert (outcome.status, outcome.success_dsn_requested) == (DeliveryStatus.DELIVERED, False)

    @each("extensions", [("SMTPUTF8",), ()])
    @awaited
    async def test_a_non_ascii_address_requires_smtputf8(self, extensions):
        message = outgoing_message(return_path="b@example.org", recipient="jörg@example.com")
        async with ScriptedServer(extensions=extensions) as server:
            outcome = await relay(server).deliver(message, lease=LEASE)
            if extensions:
                assert outcome.status is DeliveryStatus.SENT
                assert server.said("MAIL")[0].endswith(" SMTPUTF8 BODY=8BITMIME")
                return
            assert (outcome.status, outcome.reason) == (DeliveryStatus.BOUNCED, FailureReason.SMTPUTF8_REQUIRED)
            assert outcome.reply.enhanced_code == "5.6.7"
            assert not outcome.suppresses(SuppressOn.EVERY_BOUNCE)
            assert server.said("MAIL") == []

    @each("address", ["a@b>\r\nDATA", "a b@c", "<a@b", "a@b\n", "a\0@b"])
    @awaited
    async def test_an_address_cannot_end_its_command(self, address):
        async with ScriptedServer() as server:
            transport = relay(server)
            for message in (outgoing_message(recipient=address), outgoing_message(return_path=address)):
                with pytest.raises(UnsafeAddress):
                    await transport.deliver(message, lease=LEASE)
            assert server.said("MAIL") == []
            assert (await transport.deliver(MESSAGE, lease=LEASE)).status is DeliveryStatus.SENT


class TestOldHosts:
    @each("code", [500, 501, 502, 504, 550])
    @awaited
    async def test_helo_follows_a_refused_ehlo(self, code):
        async with ScriptedServer({"ehlo": f"{code} What?\r\n".encode()}) as server:
            assert (await relay(server).deliver(MESSAGE, lease=LEASE)).status is DeliveryStatus.SENT
            assert server.said("HELO") == ["HELO sender.example"]

    @awaited
    async def test_a_4xx_to_ehlo_is_not_followed_by_helo(self):
        async with ScriptedServer({"ehlo": b"450 Later\r\n"}) as server:
            assert (await relay(server).deliver(MESSAGE, lease=LEASE)).status is DeliveryStatus.DEFERRED
            assert server.said("HELO") == []


class TestTimeouts:
    @each("stage", ["banner", "ehlo", "mail", "rcpt", "data", "dot"])
    def test_a_slow_host_is_waited_for(self, stage):
        replies = {"data": b"354 Go\r\n", "banner": b"220 Hi\r\n"}
        script = {stage: after(0.1, replies.get(stage, b"250 Ok\r\n"))}
        assert deliver(script, timeouts=Timeouts()).status is DeliveryStatus.SENT

    def test_a_short_wait_after_long_ones_ends_in_time(self):
        outcome = deliver({"dot": silence}, timeouts=Timeouts(dot=0.2))
        assert (outcome.status, outcome.reason) == (DeliveryStatus.DEFERRED, FailureReason.OUTCOME_UNKNOWN)

    @each(
        ("stage", "timeouts"),
        [("data", Timeouts(data=0.2)), ("mail", Timeouts(envelope=0.2)), ("rcpt", Timeouts(envelope=0.2))],
    )
    def test_each_command_has_its_timeout(self, stage, timeouts):
        outcome = deliver({stage: silence}, timeouts=timeouts)
        assert (outcome.status, outcome.reason) == (DeliveryStatus.DEFERRED, FailureReason.NETWORK)

    def test_a_long_wait_is_not_ended_by_the_timeout_of_an_earlier_one(self):
        script = {"mail": after(2.2, b"250 Ok\r\n")}
        assert deliver(script, timeouts=Timeouts(ehlo=2)).status is DeliveryStatus.SENT

    def test_the_whole_attempt_has_a_timeout(self):
        """Each reply is in time, but all together exceed the total timeout."""
        late = after(0.12, b"250 Ok\r\n")
        script = {"mail": late, "rcpt": late, "data": after(0.12, b"354 Go\r\n"), "dot": late}
        slow = Timeouts(total=0.3)
        outcome = deliver(script, timeouts=slow)
        assert (outcome.status, outcome.reason) == (DeliveryStatus.DEFERRED, FailureReason.NETWORK)

    @awaited
    async def test_a_refused_connection_is_deferred(self):
        async with ScriptedServer() as server:
            transport = relay(server, host="127.0.0.1")
        outcome = await transport.deliver(MESSAGE, lease=LEASE)
        wanted = DeliveryStatus.DEFERRED, FailureReason.NETWORK, 0
        assert (outcome.status, outcome.reason, outcome.reply.code) == wanted

    @awaited
    async def test_a_cancelled_delivery_closes_its_connection(self):
        async with ScriptedServer({"dot": silence}) as server:
            transport = relay(server, timeouts=Timeouts())
            task = asyncio.create_task(transport.deliver(MESSAGE, lease=LEASE))
            while not server.messages:
                await asyncio.sleep(0.01)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await asyncio.sleep(0.05)
            assert server.open == 0
            assert transport._destination._in_use == 0


def test_hostile_replies_are_stored_safely():
    outcome = deliver({"rcpt": b"550 5.1.1 \x1b[31mNo\x00 \xff\xfe <script>\xe2\x80\xae\r\n"})
    assert outcome.reply.text == "5.1.1 \\x1b[31mNo\\x00 \\xff\\xfe <script>\\x202e"
    outcome.reply.text.encode()


def test_all_lines_of_a_reply_are_kept():
    outcome = deliver({"rcpt": b"550-5.1.1 The account\r\n550-5.1.1 does not\r\n550 5.1.1 exist.\r\n"})
    assert outcome.reply.text == "5.1.1 The account\n5.1.1 does not\n5.1.1 exist."
    assert outcome.reason == FailureReason.UNKNOWN_USER


def test_the_message_is_composed_once_and_only_after_the_greeting():
    class Counted(OutgoingMessage):
        composed = 0

        def to_bytes(self) -> bytes:
            Counted.composed += 1
            return super().to_bytes()

    message = Counted(**vars(MESSAGE))
    deliver({"banner": b"421 Busy\r\n"}, message)
    assert Counted.composed == 0
    deliver({}, message)
    assert Counted.composed == 1


def test_timeouts_are_those_of_the_standard():
    """RFC 5321, section 4.5.3.2."""
    limits = Timeouts()
    assert (limits.banner, limits.envelope, limits.data, limits.block, limits.dot) == (300, 300, 120, 180, 600)
    assert limits.total > limits.dot
    assert SHORT.dot < 1


def fail_at(monkeypatch, failing):
    def strike(point):
        if point == failing:
            raise RuntimeError(point)

    monkeypatch.setattr("core.delivery.transports.smtp.session.failpoint", strike)


@awaited
async def test_an_internal_error_before_the_dot_ends_the_session(monkeypatch):
    async with ScriptedServer() as server:
        # Longer than the test: in the same session, the next message would wait for a reply.
        transport = relay(server, timeouts=Timeouts())
        with monkeypatch.context() as broken:
            fail_at(broken, "delivery.before_dot")
            with pytest.raises(RuntimeError):
                await transport.deliver(MESSAGE, lease=LEASE)
        assert (await transport.deliver(MESSAGE, lease=LEASE)).status is DeliveryStatus.SENT
        assert (server.connections, server.messages) == (2, [MESSAGE.to_bytes()])
        transport.close()


@awaited
async def test_an_internal_error_after_the_dot_leaves_the_outcome_unknown(monkeypatch):
    fail_at(monkeypatch, "delivery.after_dot")
    async with ScriptedServer() as server:
        outcome = await relay(server).deliver(MESSAGE, lease=LEASE)
        assert (outcome.status, outcome.reason) == (DeliveryStatus.DEFERRED, FailureReason.OUTCOME_UNKNOWN)
        assert "RuntimeError" in outcome.reply.text
