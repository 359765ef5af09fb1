"""The parts of gunicorn that config/web and config/gunicorn.py change or use without a documented interface."""

import ast
import importlib
import inspect
import socket
import sys
from operator import attrgetter
from typing import Any

import pytest
from gunicorn.arbiter import Arbiter
from gunicorn.config import Config
from gunicorn.http.message import Request
from gunicorn.workers import gthread

from config.web.worker import QUICK_SWITCH_SECONDS, SWITCH_SECONDS, Connection, WebWorker
from tests.stack.stack import REPOSITORY

# The parameters with which we call a function, or with which gunicorn calls the method that replaces it.
PARAMETERS = {
    "http:get_parser": "cfg source source_addr http2_connection",
    "workers.gthread:TConn": "cfg sock client server",
    "workers.gthread:TConn.close": "self graceful",
    "workers.gthread:PollableMethodQueue.defer": "self callback args",
    "workers.gthread:ThreadWorker.get_thread_pool": "self",
    "workers.gthread:ThreadWorker.init_signals": "self",
    "workers.gthread:ThreadWorker.handle_exit": "self sig frame",
    "workers.gthread:ThreadWorker.run": "self",
    "workers.gthread:ThreadWorker.accept": "self listener",
    "workers.gthread:ThreadWorker.enqueue_req": "self conn",
    "workers.gthread:ThreadWorker.handle": "self conn",
    "workers.gthread:ThreadWorker.handle_request": "self req conn",
    "workers.gthread:ThreadWorker.murder_pending": "self",
    "workers.gthread:ThreadWorker.wait_for_and_dispatch_events": "self timeout",
    "arbiter:Arbiter.handle_term": "self",
    "app.wsgiapp:WSGIApplication.run": "self",
}
# What the code of a function uses: it calls our methods, and reads what we set.
USED = {
    "workers.base:Worker.init_process": "init_signals run",
    "workers.gthread:ThreadWorker.init_process": "get_thread_pool",
    "workers.gthread:ThreadWorker.set_accept_enabled": "accept _accepting poller",
    "workers.gthread:ThreadWorker.run": "alive nr_conns worker_connections murder_pending graceful_timeout shutdown",
    "workers.gthread:ThreadWorker.wait_for_and_dispatch_events": "select data fileobj",
    "workers.gthread:ThreadWorker.handle": "initialized data_ready init parser handle_request",
    "workers.gthread:TConn.init": "initialized",
    # A handler of SIGTERM that raises StopIteration stops the server.
    "arbiter:Arbiter.run": "StopIteration",
    "arbiter:Arbiter.__init__": "SIG_QUEUE reexec_pid master_pid systemd",
    "http.wsgi:create": "_expected_100_continue",
}
WORKER_ATTRIBUTES = "alive cfg method_queue nr_conns poller tpool _accepting"
CONNECTION_ATTRIBUTES = "cfg client data_ready initialized parser sock"
SETTINGS = REPOSITORY / "config" / "gunicorn.py"
# Names in it that are no settings.
NOT_SETTINGS = {"log", "raise_file_limit", "defer_accept"}


def test_the_internals_of_gunicorn_that_the_web_server_stands_on_are_there():
    missing = [f"{place} takes {given}" for place, given in PARAMETERS.items() if parameters_of(place) != given]
    for place, names in USED.items():
        used = find(place).__code__.co_names
        missing += [f"{place} uses {name}" for name in names.split() if name not in used]
    worker = gthread.ThreadWorker(1, 1, [], None, 30, Config(), None)
    with socket.socket() as client:
        connection = gthread.TConn(Config(), client, ("127.0.0.1", 1), ("127.0.0.1", 2))
        missing += [f"TConn has {name}" for name in CONNECTION_ATTRIBUTES.split() if not hasattr(connection, name)]
    missing += [f"ThreadWorker has {name}" for name in WORKER_ATTRIBUTES.split() if not hasattr(worker, name)]
    missing += [f"Arbiter has {name}" for name in ("LISTENERS", "num_workers") if not hasattr(Arbiter, name)]
    missing += [] if hasattr(Request, "_expected_100_continue") else ["Request has _expected_100_continue"]
    worker.tmp.close()
    assert missing == []


def test_methods_that_replace_those_of_gunicorn_are_checked():
    replaced = [f"TConn.{name}" for name in vars(Connection) if hasattr(gthread.TConn, name)]
    replaced += [f"ThreadWorker.{name}" for name in vars(WebWorker) if hasattr(gthread.ThreadWorker, name)]
    unchecked = {name for name in replaced if "__" not in name} - {place.partition(":")[2] for place in PARAMETERS}
    assert unchecked == set()


def test_the_settings_of_the_web_server_are_settings_of_gunicorn():
    # gunicorn ignores unknown names.
    statements = ast.parse(SETTINGS.read_text(encoding="utf-8")).body
    assigned = {target.id for one in statements if isinstance(one, ast.Assign) for target in one.targets}
    functions = {one.name for one in statements if isinstance(one, ast.FunctionDef)}
    lower = {name for name in assigned | functions if name.islower()}
    assert lower - set(Config().settings) == NOT_SETTINGS


def find(place: str) -> Any:
    module, _, path = place.partition(":")
    return attrgetter(path)(importlib.import_module(f"gunicorn.{module}"))


def parameters_of(place: str) -> str:
    return " ".join(inspect.signature(find(place)).parameters)


def test_threads_switch_sooner_while_requests_compute():
    worker = WebWorker(1, 1, [], None, 30, Config(), None)
    before = sys.getswitchinterval()
    try:
        for computes, seconds in ((True, QUICK_SWITCH_SECONDS), (False, SWITCH_SECONDS)):
            worker.is_computing = lambda computes=computes: computes
            worker.murder_pending()
            assert sys.getswitchinterval() == pytest.approx(seconds)
    finally:
        sys.setswitchinterval(before)
        worker.tmp.close()
