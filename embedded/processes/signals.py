"""Turn the signals that end a launcher into an exception, once, at a moment that can bear it."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Ended(BaseException):
    """Raised in the main thread when a signal asks the launcher to end."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


class _State:
    held = False
    pending: int | None = None
    impatient = False


def raise_on_signals() -> None:
    """From now on, the first SIGINT, SIGTERM or SIGHUP raises Ended; the next are only noted."""
    for number in ENDING:
        # nohup means it; an ignored SIGINT is only what a shell gives to every job behind &.
        if number == signal.SIGHUP and signal.getsignal(number) is signal.SIG_IGN:
            continue
        signal.signal(number, _raise)


def only_note_signals() -> None:
    """From now on, nothing interrupts: the launcher is ending already."""
    for number in ENDING:
        signal.signal(number, _note)


def is_impatient() -> bool:
    """Say whether a signal came while the launcher was ending."""
    return _State.impatient


@contextmanager
def held() -> Iterator[None]:
    """Hold signals back while a process is started and noted: none may slip away unnoted."""
    _State.held = True
    try:
        yield
    finally:
        _State.held = False
        pending, _State.pending = _State.pending, None
    if pending is not None:
        _raise(pending, None)


def _raise(number: int, _frame: FrameType | None) -> None:
    if _State.held:
        _State.pending = number
        return
    only_note_signals()
    raise Ended(number)


def _note(_number: int, _frame: FrameType | None) -> None:
    _State.impatient = True
