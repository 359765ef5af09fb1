"""Memory for the messages that SMTP sessions receive."""

from core.lib.mail.receiving_memory import SMALL_MESSAGE_BYTES, ReceivingMemory, memory_for
from tests.rows import each

MIB = 1024 * 1024


@each("message_bytes", [MIB, 25 * MIB, 25 * MIB + 1, 100 * MIB])
def test_the_least_memory_has_room_for_a_message_of_each_workspace(message_bytes):
    memory = ReceivingMemory.of(memory_for(message_bytes))
    for workspace in ("ws_a", "ws_b", "ws_c"):
        assert memory.take(workspace, 0, message_bytes)
    assert not memory.take("ws_a", message_bytes, 2 * SMALL_MESSAGE_BYTES)
    smaller = ReceivingMemory.of(memory_for(message_bytes - SMALL_MESSAGE_BYTES) - 5)
    assert not smaller.take("ws_a", 0, message_bytes)
