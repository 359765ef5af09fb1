"""SPF evaluation of a record with its includes, with the lookup limits of receivers (RFC 7208, section 4.6.4).

Each level of includes is evaluated in parallel. The limits also bound the work: a record causes at most ten lookups
that are followed.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from core.lib.coded_texts import CodedText
from core.lib.network.resolver import DnsAnswer, LookupStatus
from domains.record_checks.spf_syntax import InvalidSpf, SpfMechanism, SpfRecord, is_spf, parse_spf

LookUpFunction = Callable[[str, str], Awaitable[DnsAnswer]]

LOOKUP_LIMIT = 10
VOID_LOOKUP_LIMIT = 2
MX_LIMIT = 10
COUNTED_MECHANISMS = frozenset({"include", "a", "mx", "ptr", "exists"})
# The record type whose empty answer counts as a void lookup. ptr depends on the connecting server.
RECORD_TYPES = {"a": "A", "exists": "A", "mx": "MX"}
NAME = re.compile(r"(?=.{1,253}$)[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63})+\.?")


class EvaluationEnded(Exception):
    """Raised during an evaluation that fails; the message explains how to fix the record."""


@dataclass(frozen=True)
class EvaluatedRecord:
    """A record in the evaluation: its domain, the domains that lead to it, and whether its matches can pass."""

    record: SpfRecord
    domain: str
    parents: tuple[str, ...] = ()
    is_passing: bool = True


@dataclass(frozen=True)
class Inclusion:
    """An include or a redirect to follow. term: as in the record."""

    source: EvaluatedRecord
    term: str
    target: str
    is_passing: bool


@dataclass
class SpfEvaluation:
    """The evaluation of a record.

    passing: the mechanisms that can pass, including those of included records.
    error: why receivers fail it.
    """

    look_up: LookUpFunction
    lookups: int = 0
    void_lookups: int = 0
    passing: list[SpfMechanism] = field(default_factory=list)
    error: str | None = None

    async def run(self, record: SpfRecord, *, domain: str) -> None:
        """Evaluate the record of a domain. Raises DnsError if a lookup fails."""
        level = [EvaluatedRecord(record, domain)]
        try:
            while level:
                level = await self._evaluate_level(level)
        except EvaluationEnded as end:
            self.error = str(end)

    async def _evaluate_level(self, level: list[EvaluatedRecord]) -> list[EvaluatedRecord]:
        """Count the lookups of one level; return the records that it includes."""
        for entry in level:
            mechanisms = entry.record.mechanisms
            self.passing += [term for term in mechanisms if entry.is_passing and term.qualifier == "+"]
            self.lookups += sum(term.name in COUNTED_MECHANISMS for term in mechanisms)
            self.lookups += entry.record.redirect is not None
        if self.lookups > LOOKUP_LIMIT:
            count = CodedText("domains.at_least", count=self.lookups)
            raise EvaluationEnded(CodedText("domains.spf_too_many_lookups", count=count))
        await asyncio.gather(
            *(self._count_void_lookup(entry, term) for entry in level for term in entry.record.mechanisms)
        )
        return await asyncio.gather(*(self._follow(inclusion) for entry in level for inclusion in _inclusions(entry)))

    async def _count_void_lookup(self, entry: EvaluatedRecord, mechanism: SpfMechanism) -> None:
        """Look up the target of an a, mx or exists mechanism; more than two empty answers end the evaluation."""
        target = mechanism.target or entry.domain
        if mechanism.name not in RECORD_TYPES or "%" in target:
            return
        _check_name(target, str(mechanism))
        answer = await self.look_up(target, RECORD_TYPES[mechanism.name])
        if len(answer.records) > MX_LIMIT and mechanism.name == "mx":
            count = len(answer.records)
            raise EvaluationEnded(CodedText("domains.spf_too_many_hosts", term=mechanism, count=count))
        self.void_lookups += answer.status is not LookupStatus.FOUND
        if self.void_lookups > VOID_LOOKUP_LIMIT:
            raise EvaluationEnded(CodedText("domains.spf_void_lookups", count=self.void_lookups, term=mechanism))

    async def _follow(self, inclusion: Inclusion) -> EvaluatedRecord:
        term, target = inclusion.term, inclusion.target
        parents = (*inclusion.source.parents, inclusion.source.domain)
        _check_name(target, term)
        if target in parents:
            raise EvaluationEnded(CodedText("domains.spf_loop", term=term))
        texts = [text for text in (await self.look_up(target, "TXT")).records if is_spf(text)]
        if len(texts) != 1:
            raise EvaluationEnded(CodedText("domains.spf_term_several", term=term, count=len(texts) or "no"))
        try:
            return EvaluatedRecord(parse_spf(texts[0]), target, parents, inclusion.is_passing)
        except InvalidSpf as error:
            raise EvaluationEnded(CodedText("domains.spf_term_invalid", term=term, error=error)) from error


def _inclusions(entry: EvaluatedRecord) -> list[Inclusion]:
    """Return the includes and the redirect of a record, except those with macros, which only receivers can expand."""
    inclusions = [
        Inclusion(entry, f"include:{term.target}", term.target, entry.is_passing and term.qualifier == "+")
        for term in entry.record.mechanisms
        if term.name == "include"
    ]
    target = entry.record.redirect
    if target is not None:
        inclusions.append(Inclusion(entry, f"redirect={target}", target, entry.is_passing))
    return [inclusion for inclusion in inclusions if "%" not in inclusion.target]


def is_domain_name(name: str) -> bool:
    """Return whether a name of a record, in lower case, can be looked up."""
    return bool(NAME.fullmatch(name))


def _check_name(name: str, term: str) -> None:
    if not is_domain_name(name):
        raise EvaluationEnded(CodedText("domains.spf_term_name", term=repr(term[:60])))
