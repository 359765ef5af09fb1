"""The program `postrider`, run in this process, as a process, and on a pseudo-terminal."""

import io
import json
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator, Sequence
from contextlib import chdir, contextmanager, redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass
from fcntl import ioctl
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyte
from postrider_client.cli.program import run

LIBRARY = Path(__file__).resolve().parent.parent.parent / "clients/python/src"
PROGRAM = (sys.executable, "-m", "postrider_client.cli")
ROWS, COLUMNS = 50, 140


@dataclass(frozen=True)
class Result:
    code: int
    output: str
    errors: str

    @property
    def json(self) -> Any:
        assert self.code == 0, self.errors
        return json.loads(self.output)


@dataclass(frozen=True)
class Started:
    """A running program."""

    process: "subprocess.Popen[bytes]"
    home: Path

    @property
    def output(self) -> str:
        return (self.home / "stdout").read_text()

    @property
    def errors(self) -> str:
        return (self.home / "stderr").read_text()

    @property
    def lines(self) -> list[Any]:
        """The JSON of each complete line of the output."""
        return [json.loads(line) for line in self.output.splitlines(keepends=True) if line.endswith("\n")]

    def interrupt(self) -> None:
        """Press Ctrl-C."""
        self.process.send_signal(signal.SIGINT)
        assert self.process.wait(60) == 130, self.errors
        assert "Traceback" not in self.errors


class Standard(io.TextIOWrapper):
    """A standard stream in memory. is_terminal: whether the program takes it for a terminal."""

    def __init__(self, content: str = "", *, is_terminal: bool = False) -> None:
        super().__init__(io.BytesIO(content.encode()), encoding="utf-8", write_through=True)
        self.is_terminal = is_terminal

    def isatty(self) -> bool:
        return self.is_terminal

    @property
    def content(self) -> bytes:
        return self.buffer.getvalue()  # type: ignore[attr-defined, no-any-return]


@dataclass
class CommandLine:
    """Runs the program with an environment. home: its directory, and that of its configuration."""

    environment: dict[str, str]
    home: Path

    def run(self, *arguments: str, stdin: str = "", **variables: str) -> Result:
        """Run a command in this process, as with pipes. A defect of the program is an exception of the test."""
        output, errors = Standard(), Standard()
        code = self._call(arguments, Standard(stdin), output, errors, variables)
        return Result(code, output.content.decode(), errors.content.decode())

    def screen(self, *arguments: str) -> "Screen":
        """Run a command that asks nothing in this process, as on a terminal, and return the screen at its end."""
        shown = Standard(is_terminal=True)
        size = {"TERM": "xterm-256color", "COLUMNS": str(COLUMNS), "LINES": str(ROWS)}
        screen = Screen()
        screen.code = self._call(arguments, Standard(is_terminal=True), shown, shown, size)
        screen.feed(shown.content.replace(b"\n", b"\r\n"))
        return screen

    def _call(
        self, arguments: Sequence[str], stdin: Standard, output: Standard, errors: Standard, variables: dict[str, str]
    ) -> Any:
        with (
            patch.dict(os.environ, {**self.environment, **variables}, clear=True),
            patch.object(sys, "stdin", stdin),
            redirect_stdout(output),
            redirect_stderr(errors),
            chdir(self.home),
        ):
            try:
                return run(arguments)
            except SystemExit as end:
                return end.code

    def process(self, *arguments: str, stdin: str = "", **variables: str) -> Result:
        """Run a command as a process: for its exit code, encodings, signals and neighbours."""
        done = subprocess.run(
            [*PROGRAM, *arguments],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
            cwd=self.home,
            env={**self.environment, **variables},
        )
        return Result(done.returncode, done.stdout, done.stderr)

    @contextmanager
    def started(self, *arguments: str, **variables: str) -> Iterator["Started"]:
        """Start the program and kill it at the end. Its output is written to files."""
        with (self.home / "stdout").open("w+") as output, (self.home / "stderr").open("w+") as errors:
            environment = {**self.environment, **variables}
            command = [*PROGRAM, *arguments]
            process = subprocess.Popen(command, stdout=output, stderr=errors, cwd=self.home, env=environment)
            try:
                yield Started(process, self.home)
            finally:
                process.kill()
                process.wait()

    @contextmanager
    def terminal(self, *arguments: str, columns: int = COLUMNS) -> Iterator["Terminal"]:
        """Run the program on a pseudo-terminal and kill it at the end."""
        process, master = pty.fork()
        if process == 0:
            # Before the program starts, which reads its size once.
            ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, columns, 0, 0))
            os.chdir(self.home)
            os.execve(PROGRAM[0], [*PROGRAM, *arguments], self._terminal_environment())
        terminal = Terminal(process, master, columns)
        try:
            yield terminal
        finally:
            terminal.close()

    def _terminal_environment(self) -> dict[str, str]:
        # The size of another terminal: pytest-xdist sets it in its processes.
        inherited = {name: text for name, text in self.environment.items() if name not in {"COLUMNS", "LINES"}}
        return {**inherited, "TERM": "xterm-256color"}


class Screen:
    """The screen of a terminal, as a person sees it. code: the exit code of the program, once it has ended."""

    def __init__(self, columns: int = COLUMNS) -> None:
        self.screen = pyte.Screen(columns, ROWS)
        self.stream = pyte.ByteStream(self.screen)
        self.code: int | None = None

    @property
    def text(self) -> str:
        return "\n".join(line.rstrip() for line in self.screen.display).rstrip()

    def feed(self, output: bytes) -> None:
        self.stream.feed(output)

    def colour_of(self, text: str) -> str:
        """Return the colour of a text on the screen."""
        row = next(number for number, line in enumerate(self.screen.display) if text in line)
        return str(self.screen.buffer[row][self.screen.display[row].index(text)].fg)


class Terminal(Screen):
    """A pseudo-terminal on which the program runs."""

    def __init__(self, process: int, master: int, columns: int) -> None:
        super().__init__(columns)
        self.process = process
        self.master = master

    def wait_for(self, text: str) -> str:
        """Read output until the screen has the text, and return the screen."""
        deadline = time.monotonic() + 60
        while text not in self.text:
            assert time.monotonic() < deadline, f"no {text!r} on the screen:\n{self.text}"
            if not self._read():
                assert text in self.text, f"the program ended without {text!r}:\n{self.text}"
        return self.text

    def finish(self) -> str:
        """Read all output until the program ends, and return the screen."""
        deadline = time.monotonic() + 120
        while self._read():
            assert time.monotonic() < deadline, f"the program does not end:\n{self.text}"
        _, status = os.waitpid(self.process, 0)
        self.code = os.waitstatus_to_exitcode(status)
        return self.text

    def type(self, text: str) -> None:
        os.write(self.master, text.encode())

    def close(self) -> None:
        if self.code is None:
            with suppress(ProcessLookupError):
                os.kill(self.process, signal.SIGKILL)
            os.waitpid(self.process, 0)
        os.close(self.master)

    def _read(self) -> bool:
        """Add output to the screen; return False at its end."""
        ready, _, _ = select.select([self.master], [], [], 1)
        if not ready:
            return True
        try:
            data = os.read(self.master, 65_536)
        except OSError:  # the program closed the terminal
            return False
        self.feed(data)
        return bool(data)
