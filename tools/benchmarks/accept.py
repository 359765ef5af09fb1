"""Benchmark of POST /v1/emails/send at concurrency 32, compared with a plain DRF view.

    bin/test --version >/dev/null; .venv/bin/python -m tools.benchmarks.accept

Requires wrk, and DATABASE_URL of a server on which databases may be created.
"""

import json
import re
import statistics
import subprocess
import tempfile
from pathlib import Path

from tests.stack.stack import Stack, running_stack
from tests.standards.tools import program
from tools.benchmarks.figures import record_figure
from tools.benchmarks.sizes import size

ROUNDS = size(3, smoke=1)
SECONDS = size(6, smoke=1)
WARM_SECONDS = size(2, smoke=1)
CONCURRENCY = size(32, smoke=2)
BODY = {
    "from": "hello@demo.example",
    "to": ["ada@example.com"],
    "subject": "Your receipt",
    "html": "<p>Thanks!</p>" * 60,
}


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, running_stack(Path(folder)) as stack:
        ours, plain = [], []
        for _ in range(ROUNDS):
            ours.append(measure(stack, Path(folder)))
            plain.append(measure(stack, Path(folder), DJANGO_SETTINGS_MODULE="tools.benchmarks.plain_settings"))
        report("Postrider", ours)
        report("plain DRF", plain)
        ratio = statistics.median(one["rate"] / other["rate"] for one, other in zip(ours, plain, strict=True))
        print(f"ratio {ratio:.2f} (at least 2)")
        record_figure("send requests at concurrency 32", statistics.median(one["rate"] for one in ours), "/s")
        record_figure("send requests at concurrency 32, ratio to a plain DRF view", ratio, at_least=2)
        record_figure(
            "p99 of a send request at concurrency 32",
            statistics.median(one["p99_ms"] for one in ours),
            "ms",
            at_most=60,
        )


def measure(stack: Stack, folder: Path, **variables: str) -> dict[str, float]:
    script = start_web(stack, folder, **variables)
    wrk(stack, script, seconds=WARM_SECONDS)
    found = wrk(stack, script, seconds=SECONDS)
    stack.kill("web")
    return found


def start_web(stack: Stack, folder: Path, **variables: str) -> Path:
    """Start the web server with one process per core; return the script of wrk."""
    stack.start("web", WEB_CONCURRENCY="0", **variables)
    script = folder / "post.lua"
    headers = {"Authorization": f"Bearer {stack.key}", "Content-Type": "application/json"}
    lines = [f'wrk.headers["{name}"] = "{value}"' for name, value in headers.items()]
    script.write_text("\n".join(['wrk.method = "POST"', f"wrk.body = [[{json.dumps(BODY)}]]", *lines]))
    return script


def wrk(stack: Stack, script: Path, *, seconds: int) -> dict[str, float]:
    command = [
        program("wrk", package="wrk"),
        "-t1",
        f"-c{CONCURRENCY}",
        f"-d{seconds}s",
        "--latency",
        "-s",
        str(script),
    ]
    text = subprocess.run([*command, f"{stack.url}/v1/emails/send"], capture_output=True, text=True, check=True).stdout
    assert "Non-2xx" not in text, text
    value, unit = re.search(r"99%\s+([\d.]+)(us|ms|s)", text).groups()  # type: ignore[union-attr]
    rate = re.search(r"Requests/sec:\s+([\d.]+)", text)
    assert rate
    return {"rate": float(rate[1]), "p99_ms": float(value) * {"us": 0.001, "ms": 1, "s": 1000}[unit]}


def report(name: str, rounds: list[dict[str, float]]) -> None:
    rates, latencies = [one["rate"] for one in rounds], [one["p99_ms"] for one in rounds]
    print(f"{name}: {statistics.median(rates):.0f} requests/s, p99 {statistics.median(latencies):.0f} ms")


if __name__ == "__main__":
    main()
