"""Reading a message after DATA: the result does not depend on the packets in which it arrives."""

import asyncio
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from core.lib.mail.smtp_data import DataRefusal, read_message
from tests.rows import each

LINES = st.lists(st.sampled_from([b"", b".", b"..", b".a", b"a.", b"x" * 40]), max_size=12)


def receive(
    packets: Sequence[bytes], *, limit: int = 2**16, max_bytes: int = 10_000, room: int = 10_000
) -> tuple[bytes, DataRefusal | None, int]:
    """Return the message in packets, its refusal, and the number of bytes that were counted."""
    taken: list[int] = []

    def take(count: int) -> bool:
        taken.append(count)
        return sum(taken) <= room

    async def read() -> tuple[bytes, DataRefusal | None]:
        reader, content = asyncio.StreamReader(limit=limit), bytearray()
        reading = asyncio.ensure_future(read_message(reader, content, max_bytes=max_bytes, take=take))
        for packet in packets:
            await asyncio.sleep(0)
            reader.feed_data(packet)
        refusal = await asyncio.wait_for(reading, 10)
        return bytes(content), refusal

    content, refusal = asyncio.run(read())
    return content, refusal, sum(taken)


def as_sent(message: bytes) -> bytes:
    """Return a message with transparency dots and its end."""
    return (b"\r\n" + message).replace(b"\r\n.", b"\r\n..")[2:] + b".\r\n"


@given(lines=LINES, cuts=st.lists(st.integers(0, 500)), limit=st.integers(8, 64))
def test_any_packets_have_the_same_message(lines, cuts, limit):
    message = b"".join(line + b"\r\n" for line in lines)
    sent = as_sent(message)
    ends = [*sorted(cut for cut in cuts if cut < len(sent)), len(sent)]
    packets = [sent[start:end] for start, end in zip([0, *ends], ends, strict=False)]
    assert receive(packets, limit=limit) == (message, None, len(message) + 2)


@each(("more", "refusal"), [(0, None), (1, DataRefusal.TOO_LARGE)])
def test_the_limit_of_the_size_counts_what_is_received(more, refusal):
    message = b".\r\n" * 1_000
    packets = [as_sent(message)[start : start + 100] for start in range(0, 5_000, 100)]
    content, given, _ = receive(packets, limit=64, max_bytes=len(message) - more)
    assert (given, content) == (refusal, b"" if refusal else message)


def test_a_message_without_room_is_read_to_its_end_and_forgotten():
    packets = [as_sent(b"x" * 500 + b"\r\n")]
    assert receive(packets, limit=64, room=100)[:2] == (b"", DataRefusal.NO_MEMORY)
