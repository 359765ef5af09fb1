"""Plans of the statements that accept an email, and that claim, load and record emails, and the blocks that they use.

    explain_stages(stack, "10,000,000 stored")

Each statement runs with EXPLAIN (ANALYZE, BUFFERS) in a transaction that is undone, then as usual.
"""

import functools
import importlib
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg.pq import TransactionStatus

from tests.stack.stack import Stack
from tools.benchmarks.budget import call, started_django
from tools.benchmarks.figures import record_figure

CLAIM_SIZE = 32
LARGE_SCAN = re.compile(r"Seq Scan on emails_(?:email|recipient|event|pending)\b")
EXPLAINED = ("SELECT", "WITH", "INSERT", "UPDATE", "DELETE")
# Statements that begin and undo a transaction, outside of one and inside.
TRANSACTIONS = {
    TransactionStatus.IDLE: ("BEGIN", "ROLLBACK"),
    TransactionStatus.INTRANS: ("SAVEPOINT explained", "ROLLBACK TO explained"),
}
INDEX = re.compile(r"Index (?:Only )?Scan (?:Backward )?(?:using|on) (\w+)")
EXECUTION_TIME = re.compile(r"Execution Time: ([\d.]+) ms")
# Blocks of 8 kB of tables and indexes that the transaction has used, whether or not they were cached.
BLOCKS = """
SELECT sum(pg_stat_get_xact_blocks_fetched(oid))::bigint FROM pg_class WHERE relnamespace = current_schema::regnamespace
"""


@dataclass(frozen=True)
class ExplainedStatement:
    """A statement as it ran: its plan, and the blocks it used, with those of triggers and foreign keys."""

    sql: str
    plan: str
    blocks: int

    @property
    def milliseconds(self) -> float:
        return sum(map(float, EXECUTION_TIME.findall(self.plan)))

    @property
    def indexes(self) -> list[str]:
        """The indexes of the plan, in its order."""
        return list(dict.fromkeys(INDEX.findall(self.plan)))

    @property
    def scans_large_table(self) -> bool:
        return LARGE_SCAN.search(self.plan) is not None


def explain_stages(stack: Stack, store: str) -> list[ExplainedStatement]:
    """Report the statements of accepting, claiming, loading and recording, and return them.

    store: its size, for the figures.
    """
    with started_django(stack):
        run_stages(stack)
        # The second time, so that the blocks are in memory.
        stages = run_stages(stack)
    for stage, statements in stages.items():
        print(f"{stage}, {store}: {len(statements)} statements", flush=True)
        for statement in statements:
            print(f"{statement.blocks:6} {statement.milliseconds:6.2f} ms {statement.sql[:90]!r}")
        record_figure(f"{stage}, {store}: blocks", sum(statement.blocks for statement in statements))
        milliseconds = sum(statement.milliseconds for statement in statements)
        record_figure(f"{stage}, {store}: in PostgreSQL", milliseconds, "ms")
    return [statement for statements in stages.values() for statement in statements]


def run_stages(stack: Stack) -> dict[str, list[ExplainedStatement]]:
    """Accept an email, then claim, load and record emails as a worker does; return the statements."""
    queue = importlib.import_module("emails.sending.queue")
    outcomes = importlib.import_module("emails.sending.outcomes")
    replies = importlib.import_module("core.delivery.bounces.replies")
    load_jobs = importlib.import_module("emails.sending.jobs").load_jobs
    cursor = importlib.import_module("core.lib.worker.lease_queue").Cursor()
    shares = queue.WorkspaceShares(cap=CLAIM_SIZE, in_flight={})
    sent = replies.DeliveryOutcome(replies.DeliveryStatus.SENT, replies.Reply(250, "OK"))
    with explained_statements() as accepting:
        call(importlib.import_module("config.wsgi").application, stack.key)
    with explained_statements() as claiming:
        queue.promote()
        claims = cursor.claim(CLAIM_SIZE, shares)
    with explained_statements() as loading:
        load_jobs(claims, memory_bytes=1 << 25)
    with explained_statements() as recording:
        outcomes.record_results([outcomes.SendResult(claim, sent) for claim in claims])
    return {
        "accepting an email": accepting,
        f"claiming {CLAIM_SIZE} entries": claiming,
        f"loading {CLAIM_SIZE} emails": loading,
        f"recording {CLAIM_SIZE} results": recording,
    }


@contextmanager
def explained_statements() -> Iterator[list[ExplainedStatement]]:
    """Yield a list to which each statement of this process that reads or changes rows is added; each runs twice."""
    statements: list[ExplainedStatement] = []
    execute = psycopg.Cursor.execute

    def explaining(self: Any, query: Any, params: Any = None, **options: Any) -> Any:
        if isinstance(query, str) and query.lstrip().upper().startswith(EXPLAINED):
            statements.append(explain(functools.partial(execute, self), query, params))
        return execute(self, query, params, **options)

    psycopg.Cursor.execute = explaining  # type: ignore[method-assign]
    try:
        yield statements
    finally:
        psycopg.Cursor.execute = execute  # type: ignore[method-assign]


def explain(execute: Callable[..., psycopg.Cursor], sql: str, parameters: Any) -> ExplainedStatement:
    """Run a statement and the checks of its foreign keys, undo it, and return its plan and blocks."""
    begin, undo = TRANSACTIONS[execute("SELECT 1").connection.info.transaction_status]
    execute(begin)
    execute("SET CONSTRAINTS ALL IMMEDIATE")
    ((before,),) = execute(BLOCKS).fetchall()
    plan = "\n".join(line for (line,) in execute(f"EXPLAIN (ANALYZE, BUFFERS) {sql}", parameters).fetchall())
    ((after,),) = execute(BLOCKS).fetchall()
    execute(undo)
    return ExplainedStatement(sql, plan, blocks=after - before)
