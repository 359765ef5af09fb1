"""Processes forked from one that has loaded the application: they share its memory, and start in milliseconds."""

import ctypes
import gc
import logging
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from types import FrameType

log = logging.getLogger("postrider.processes")

Program = Callable[[], object]
RESTART_SECONDS = 1.0
STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)
PR_SET_PDEATHSIG = 1
# malloc.h of glibc, and the size from which the system gets free blocks of memory back at once. By default glibc raises
# it with each large block that is freed: after a few attachments, each thread would keep the memory of the largest.
M_MMAP_THRESHOLD = -3
LARGE_BYTES = 512 * 1024
_libc = ctypes.CDLL(None) if sys.platform == "linux" else None


def fork_programs(programs: Mapping[str, Program]) -> Program | None:
    """Keep one process running for each program, until SIGTERM or SIGINT stops them all.

    Returns in each process: there its program, which the caller must run; in the parent None, after the last exit.
    The parent must have no other threads and no open connections.
    """
    name_process("supervisor")
    # Collecting garbage writes to the objects and would copy their memory (gc.freeze in the manual of Python).
    gc.collect()
    gc.freeze()
    return _Parent(programs).run()


def fork_once(program: Program) -> None:
    """Run a program in a forked process that exits afterwards, so that its memory does not remain in this process.

    This process must have no other threads, and wait for all of its children at some time.
    """
    parent = os.getpid()
    if os.fork():
        return
    try:
        _become_child(parent)
        program()
    except Exception:
        log.exception("a forked program failed")
    finally:
        # Without the handlers for an exit and without the caller's code, which belong to the parent.
        os._exit(0)


class _Parent:
    """The parent: forks, waits for exits, and forwards the signal to stop."""

    def __init__(self, programs: Mapping[str, Program]) -> None:
        self._programs = programs
        self._running: dict[int, str] = {}
        self._is_stopping = False

    def run(self) -> Program | None:
        for number in STOP_SIGNALS:
            signal.signal(number, self._stop)
        for name in self._programs:
            if program := self._fork(name):
                return program
        while self._running:
            pid, status = os.waitpid(-1, 0)
            name = self._running.pop(pid, "")
            if name and not self._is_stopping and (program := self._restart(name, status)):
                return program
        return None

    def _restart(self, name: str, status: int) -> Program | None:
        code = os.waitstatus_to_exitcode(status)
        log.error("a process exited and is restarted", extra={"data": {"process": name, "code": code}})
        time.sleep(RESTART_SECONDS)
        return None if self._is_stopping else self._fork(name)

    def _fork(self, name: str) -> Program | None:
        """Fork a process; return the program in it, None in the parent."""
        parent = os.getpid()
        pid = os.fork()
        if pid == 0:
            _become_child(parent)
            name_process(name)
            # A signal may have arrived before its handler was replaced.
            return self._programs[name] if not self._is_stopping else sys.exit
        self._running[pid] = name
        if self._is_stopping:
            os.kill(pid, signal.SIGTERM)
        return None

    def _stop(self, _number: int, _frame: FrameType | None) -> None:
        self._is_stopping = True
        for pid in list(self._running):
            os.kill(pid, signal.SIGTERM)


def _become_child(parent: int) -> None:
    for number in STOP_SIGNALS:
        signal.signal(number, signal.SIG_DFL)
    exit_with_parent(parent)


def name_process(name: str) -> None:
    """Show `postrider: name` as the command of this process in `ps` and `top`."""
    # On macOS, a forked process may crash in it (github.com/benoitc/gunicorn/issues/3021).
    if sys.platform == "linux":
        # The launcher imports this module before any package is installed.
        from setproctitle import setproctitle  # noqa: PLC0415

        setproctitle(f"postrider: {name}")


def return_large_blocks() -> None:
    """Make this process, and those it forks, return the memory of large objects to the system when they are deleted."""
    # Other C libraries have no mallopt.
    with suppress(AttributeError, OSError):
        ctypes.CDLL(None).mallopt(M_MMAP_THRESHOLD, LARGE_BYTES)


def return_free_memory() -> None:
    """Return the free memory between objects to the system, too. Takes a few milliseconds."""
    # Other C libraries have no malloc_trim.
    if _libc:
        with suppress(AttributeError):
            _libc.malloc_trim(0)


def exit_with_parent(parent: int, *, number: signal.Signals = signal.SIGTERM) -> None:
    """Make Linux send a signal to this process when its parent exits: after SIGKILL the parent cannot."""
    if _libc:
        _libc.prctl(PR_SET_PDEATHSIG, number)
    if os.getppid() != parent:
        os._exit(1)
