"""The stages of `tools.benchmarks.budget`: each is found in the code, and its time excludes the stages inside."""

import functools
import importlib
import sys
import time
from types import ModuleType

import pytest

from tests.rows import each
from tools.benchmarks.budget import ACCEPT_STAGES, QUEUE_STAGES, StageTimes

BUSY_SECONDS = 0.05


@each("place", [*ACCEPT_STAGES.values(), *QUEUE_STAGES.values()])
def test_a_stage_is_a_function_of_the_code(place: str):
    module, _, path = place.partition(":")
    assert callable(functools.reduce(getattr, path.split("."), importlib.import_module(module)))


def test_the_time_of_a_stage_excludes_the_stages_inside(monkeypatch: pytest.MonkeyPatch):
    module = ModuleType("stages_of_a_test")

    def inner() -> str:
        until = time.thread_time() + BUSY_SECONDS
        while time.thread_time() < until:
            pass
        return "done"

    def outer() -> object:
        return module.inner()

    module.inner, module.outer = inner, outer  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "stages_of_a_test", module)
    times = StageTimes()
    times.wrap({"inside": "stages_of_a_test:inner", "outside": "stages_of_a_test:outer"})
    assert module.outer() == "done"
    assert times.seconds["inside"] >= BUSY_SECONDS
    assert times.seconds["outside"] < BUSY_SECONDS
