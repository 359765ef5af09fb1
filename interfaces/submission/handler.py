"""The commands of a session: each waits for its step in a thread, and answers with one reply."""

# ruff: noqa: N802 - the names of aiosmtpd
import asyncio
from collections.abc import Callable
from concurrent.futures import Executor
from functools import partial
from typing import TypeVar

from django.db import close_old_connections

from core.api.errors import Problem, RateLimitExceeded
from core.lib.worker.database_outage import database_outage
from core.workspaces.api.throttling import record_failure
from core.workspaces.errors import InsufficientScope, NetworkNotAllowed, Unauthenticated
from emails.accept.rules.fields import MAX_RECIPIENTS
from interfaces.submission.deliver_by import EXTENSION as DELIVERBY
from interfaces.submission.group_commit import GroupCommit
from interfaces.submission.replies import (
    RECIPIENT_OK,
    SENDER_OK,
    SIGNED_IN,
    TOO_MANY_FAILURES,
    TOO_MANY_RECIPIENTS,
    TOO_MANY_SESSIONS,
    one_line,
    reply_to_error,
)
from interfaces.submission.sasl import OFFER, read_password
from interfaces.submission.services import accept_email, begin_message, check_recipient, complete_message, sign_in
from interfaces.submission.session import SubmissionEnvelope, SubmissionSession, SubmissionSMTP

T = TypeVar("T")
EXTENSIONS = ("PIPELINING", "ENHANCEDSTATUSCODES", DELIVERBY)
SIGN_IN_REFUSALS = (Unauthenticated, InsufficientScope, NetworkNotAllowed)
# Larger messages are translated and stored one at a time in each process: that takes several times their size.
LARGE_BYTES = 1024 * 1024


class SubmissionHandler:
    """The aiosmtpd handler of all sessions of a process."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor
        self._large_messages = asyncio.Semaphore(1)
        self._group_commit = GroupCommit(self.run)

    async def handle_EHLO(
        self,
        server: SubmissionSMTP,
        session: SubmissionSession,
        envelope: SubmissionEnvelope,
        hostname: str,
        responses: list[str],
    ) -> list[str]:
        session.host_name = hostname
        offered = [OFFER if line[4:].startswith("AUTH ") else line[4:] for line in responses if line[4:] != "HELP"]
        *lines, last = [*offered, *EXTENSIONS]
        return [*(f"250-{line}" for line in lines), f"250 {last}"]

    async def handle_AUTH(
        self,
        server: SubmissionSMTP,
        session: SubmissionSession,
        envelope: SubmissionEnvelope,
        arguments: list[str],
    ) -> str:
        try:
            password = await read_password(server.ask, *arguments)
            key = await self.run(partial(sign_in, password, client=server.client_address))
        except SIGN_IN_REFUSALS as problem:
            return await self._refuse_sign_in(server, problem)
        except Exception as error:  # noqa: BLE001 - reply_to_error logs it
            return reply_to_error(error)
        if not server.keep(key.workspace_id):
            return TOO_MANY_SESSIONS
        session.authenticated = True
        session.key = password
        return SIGNED_IN

    async def handle_MAIL(
        self,
        server: SubmissionSMTP,
        session: SubmissionSession,
        envelope: SubmissionEnvelope,
        address: str,
        options: list[str],
    ) -> str:
        try:
            begin = partial(begin_message, session.key, client=server.client_address)
            envelope.api_key = await self.run(begin)
        except Exception as error:  # noqa: BLE001
            return reply_to_error(error)
        # Not the return path that Postrider sends with; it only shows that MAIL was sent.
        envelope.mail_from = address or "<>"
        envelope.deliver_within = server.deliver_within
        return SENDER_OK

    async def handle_RCPT(
        self,
        server: SubmissionSMTP,
        session: SubmissionSession,
        envelope: SubmissionEnvelope,
        address: str,
        options: list[str],
    ) -> str:
        if len(envelope.recipients) >= MAX_RECIPIENTS:
            server.refusals += 1
            return TOO_MANY_RECIPIENTS
        try:
            check = partial(check_recipient, envelope.api_key, address, has_smtputf8=envelope.smtp_utf8)
            recipient = await self.run(check)
        except Exception as error:  # noqa: BLE001
            return reply_to_error(error)
        envelope.recipients.append(recipient)
        return RECIPIENT_OK

    async def handle_DATA(
        self,
        server: SubmissionSMTP,
        session: SubmissionSession,
        envelope: SubmissionEnvelope,
    ) -> str:
        try:
            if len(envelope.source) < LARGE_BYTES:
                return await self._accept(server, session, envelope)
            async with self._large_messages:
                return await self._accept(server, session, envelope)
        except Exception as error:  # noqa: BLE001
            return reply_to_error(error)

    async def handle_exception(self, error: Exception) -> str:
        return reply_to_error(error)

    async def _accept(self, server: SubmissionSMTP, session: SubmissionSession, envelope: SubmissionEnvelope) -> str:
        complete = partial(complete_message, session.key, envelope.source, client=server.client_address)
        envelope_options = {"recipients": envelope.recipients, "deliver_within": envelope.deliver_within}
        key, submitted = await self.run(partial(complete, **envelope_options))
        if submitted.is_plain:
            reply = await self._group_commit.accept(key, submitted)
        else:
            reply = await self.run(partial(accept_email, key, submitted))
        if reply.startswith("250"):
            # Other steps may succeed from a cache.
            database_outage.record_success()
        return reply

    async def _refuse_sign_in(self, server: SubmissionSMTP, problem: Problem) -> str:
        try:
            await self.run(partial(record_failure, server.client_address()))
        except RateLimitExceeded as too_many:
            server.refusals += 1
            return one_line(TOO_MANY_FAILURES.format(too_many.detail))
        return reply_to_error(problem)

    async def run(self, act: Callable[[], T]) -> T:
        """Run a step in a thread that has a database connection."""
        return await asyncio.get_running_loop().run_in_executor(self._executor, _with_connection, act)


def _with_connection(act: Callable[[], T]) -> T:
    """Run a step; a database connection that broke before is replaced."""
    close_old_connections()
    return act()
