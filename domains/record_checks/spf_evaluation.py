"""Walk an SPF record with all that it includes, and count as receivers do (RFC 7208, section 4.6.4).

Level by level, each level in parallel. The limits of the RFC bound the work, too: no more than ten
look-ups are followed, whatever the record says.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from domains.record_checks.spf import Mechanism, Spf, SpfInvalid, is_spf, parse_spf
from lib.resolver import Answer, Status

LookUp = Callable[[str, str], Awaitable[Answer]]

LOOKUP_LIMIT = 10
VOID_LIMIT = 2
MX_LIMIT = 10
COUNTED = frozenset({"include", "a", "mx", "ptr", "exists"})
# Asked for: what a mechanism's empty answer is counted by. ptr depends on the connecting server.
KINDS = {"a": "A", "exists": "A", "mx": "MX"}
NAME = re.compile(r"(?=.{1,253}$)[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63})+\.?")
TOO_MANY = "The record needs {} DNS look-ups; receivers stop at 10. Take out includes that are no longer used."


class WalkEnded(Exception):
    """Raised inside of a walk with the sentence of what is wrong."""


@dataclass(frozen=True)
class Step:
    """A record inside of a walk: where it stands, what led to it, whether a match in it passes the mail."""

    record: Spf
    name: str
    above: tuple[str, ...] = ()
    is_passing: bool = True


@dataclass(frozen=True)
class Link:
    """An include or a redirect, to be followed."""

    step: Step
    target: str
    is_passing: bool


@dataclass
class Walk:
    """passing: the mechanisms that let mail pass, included ones as well. problem ends the walk."""

    look_up: LookUp
    lookups: int = 0
    voids: int = 0
    passing: list[Mechanism] = field(default_factory=list)
    problem: str | None = None

    async def run(self, record: Spf, *, name: str) -> None:
        """Raises DnsTrouble where the DNS gives no answer."""
        level = [Step(record, name)]
        try:
            while level:
                level = await self._descend(level)
        except WalkEnded as end:
            self.problem = str(end)

    async def _descend(self, level: list[Step]) -> list[Step]:
        """Count one level; return the records that it includes."""
        for step in level:
            self.passing += [one for one in step.record.mechanisms if step.is_passing and one.qualifier == "+"]
            self.lookups += sum(one.name in COUNTED for one in step.record.mechanisms)
            self.lookups += step.record.redirect is not None
        if self.lookups > LOOKUP_LIMIT:
            raise WalkEnded(TOO_MANY.format(f"at least {self.lookups}"))
        await asyncio.gather(*(self._weigh(step, one) for step in level for one in step.record.mechanisms))
        return await asyncio.gather(*(self._follow(link) for step in level for link in _links(step)))

    async def _weigh(self, step: Step, mechanism: Mechanism) -> None:
        """Ask what a or mx names: more than two empty answers end the evaluation."""
        target = mechanism.target or step.name
        if mechanism.name not in KINDS or "%" in target:
            return
        _check_name(target, str(mechanism))
        answer = await self.look_up(target, KINDS[mechanism.name])
        if len(answer.records) > MX_LIMIT and mechanism.name == "mx":
            raise WalkEnded(f"{mechanism} stands for {len(answer.records)} mail servers; receivers stop at 10.")
        self.voids += answer.status is not Status.FOUND
        if self.voids > VOID_LIMIT:
            raise WalkEnded(f"{self.voids} of its a and mx terms name nothing, such as {mechanism}; take them out.")

    async def _follow(self, link: Link) -> Step:
        target, above = link.target, (*link.step.above, link.step.name)
        _check_name(target, target)
        if target in above:
            raise WalkEnded(f"The record includes itself by way of {target}.")
        texts = [text for text in (await self.look_up(target, "TXT")).records if is_spf(text)]
        if len(texts) != 1:
            raise WalkEnded(f"include:{target} leads to {len(texts) or 'no'} SPF records; receivers refuse that.")
        try:
            return Step(parse_spf(texts[0]), target, above, link.is_passing)
        except SpfInvalid as error:
            raise WalkEnded(f"include:{target} leads to a broken record: {error}") from error


def _links(step: Step) -> list[Link]:
    """Return what a record leads to; a macro is filled in by the receiver alone."""
    found = [
        Link(step, one.target.rstrip("."), step.is_passing and one.qualifier == "+")
        for one in step.record.mechanisms
        if one.name == "include"
    ]
    if step.record.redirect:
        found.append(Link(step, step.record.redirect.rstrip("."), step.is_passing))
    return [link for link in found if "%" not in link.target]


def _check_name(name: str, term: str) -> None:
    if not NAME.fullmatch(name):
        raise WalkEnded(f"{term[:60]!r} names no domain.")
