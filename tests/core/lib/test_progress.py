"""Progress: a bar in a terminal, plain lines elsewhere."""

import io
import os
import pty
import re

from core.lib.progress import ProgressBar, track


def in_terminal(act):
    """Return the text that act(stream) writes to a terminal."""
    reader, writer = pty.openpty()
    with os.fdopen(writer, "w", encoding="utf-8") as stream:
        act(stream)
        written = b""
        while not written.endswith(b"\n"):  # a read returns the bytes that the kernel has passed on so far
            written += os.read(reader, 65_536)
    os.close(reader)
    return written.decode()


def test_a_terminal_shows_a_bar_that_is_redrawn():
    def act(stream):
        with ProgressBar("Packages", total=4, stream=stream) as bar:
            bar.advance(detail="django")
            bar.advance(3)

    text = in_terminal(act)
    frames = text.split("\r")[1:]
    assert [re.search(r"(\d)/4", frame)[1] for frame in frames if "/4" in frame] == ["0", "1", "4"]
    assert "django" in frames[1]
    assert "░" * 24 in frames[0]
    assert "█" * 24 in frames[2]
    assert text.endswith("\n")


def test_elsewhere_a_line_is_printed_per_tenth():
    stream = io.StringIO()
    with ProgressBar("Workspaces", total=200, stream=stream) as bar:
        for _ in range(200):
            bar.advance(detail="ws_1")
    lines = stream.getvalue().splitlines()
    assert len(lines) == 10
    assert lines[0] == "Workspaces: 10 % (20 of 200)"
    assert lines[-1] == "Workspaces: 100 % (200 of 200)"
    assert "\r" not in stream.getvalue()


def test_no_items_print_nothing_elsewhere():
    stream = io.StringIO()
    with ProgressBar("Workspaces", total=0, stream=stream):
        pass
    assert stream.getvalue() == ""


def test_finish_completes_a_bar_with_fewer_items_than_expected():
    stream = io.StringIO()
    with ProgressBar("Packages", total=61, stream=stream) as bar:
        bar.advance(50)
        bar.finish()
    assert stream.getvalue().splitlines()[-1] == "Packages: 100 % (61 of 61)"


def test_track_yields_all_items_and_counts_them(capsys):
    assert list(track("abc", label="Items", total=3)) == ["a", "b", "c"]
    assert capsys.readouterr().err.splitlines()[-1] == "Items: 100 % (3 of 3)"
