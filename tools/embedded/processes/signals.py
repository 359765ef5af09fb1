"""Stop signals of the launcher, raised once as an exception at a safe time."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class StopRequested(BaseException):
    """Raised in the main thread when a signal asks the launcher to stop."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


class _State:
    is_deferring = False
    pending: int | None = None
    was_signalled_again = False


def raise_on_signals() -> None:
    """Make the first SIGINT, SIGTERM or SIGHUP raise StopRequested; later signals are only recorded."""
    for number in STOP_SIGNALS:
        # nohup ignores SIGHUP on purpose; shells ignore SIGINT for every background job.
        if number == signal.SIGHUP and signal.getsignal(number) is signal.SIG_IGN:
            continue
        signal.signal(number, _raise)


def record_signals() -> None:
    """Record further signals instead of raising, because the launcher is already stopping."""
    for number in STOP_SIGNALS:
        signal.signal(number, _record)


def was_signalled_again() -> bool:
    """Return whether a signal arrived while the launcher was stopping."""
    return _State.was_signalled_again


@contextmanager
def defer_signals() -> Iterator[None]:
    """Defer signals while a process is started and registered, so that no process is left unregistered."""
    _State.is_deferring = True
    try:
        yield
    finally:
        _State.is_deferring = False
        pending, _State.pending = _State.pending, None
    if pending is not None:
        _raise(pending, None)


def _raise(number: int, _frame: FrameType | None) -> None:
    if _State.is_deferring:
        _State.pending = number
        return
    record_signals()
    raise StopRequested(number)


def _record(_number: int, _frame: FrameType | None) -> None:
    _State.was_signalled_again = True
