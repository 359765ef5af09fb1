"""The check of the published SPF record."""

from collections.abc import Sequence
from dataclasses import replace

from core.lib.coded_texts import CodedText, join_sentences
from domains.record_checks.record_lookup import RecordLookup
from domains.record_checks.results import RecordCheck, RecordStatus, join_texts
from domains.record_checks.spf_evaluation import LOOKUP_LIMIT, SpfEvaluation
from domains.record_checks.spf_syntax import (
    MAX_LENGTH,
    InvalidSpf,
    SpfMechanism,
    SpfRecord,
    find_uncovered,
    has_valid_length,
    is_spf,
    looks_like_spf,
    merge_records,
    parse_spf,
)


async def check_spf(lookup: RecordLookup, *, required: Sequence[SpfMechanism]) -> RecordCheck:
    """Check that the record of a domain passes the required mechanisms. Raises DnsError."""
    texts = await lookup.dns.look_up_texts(lookup.domain)
    records = [text for text in texts if is_spf(text)]
    if len(records) == 1:
        return await _check_record(lookup, records[0], required)
    if records:
        return _reject_several(records, required)
    malformed = [text for text in texts if looks_like_spf(text)]
    if malformed:
        return RecordCheck(RecordStatus.INVALID, found=join_texts(malformed), error=CodedText("domains.spf_version"))
    return await lookup.missing(
        lookup.domain,
        kind="TXT",
        is_expected=lambda text: is_spf(text) and all(str(term) in text.lower() for term in required),
        message=CodedText("domains.no_spf", name=lookup.domain),
    )


def _reject_several(records: Sequence[str], required: Sequence[SpfMechanism]) -> RecordCheck:
    """Return the check of several records, with one record to replace them."""
    error = CodedText("domains.spf_several", count=len(records))
    merged = merge_records(records, required)
    value = merged if has_valid_length(merged) else None
    return RecordCheck(RecordStatus.INVALID, found=join_texts(records), error=error, value=value)


async def _check_record(lookup: RecordLookup, text: str, required: Sequence[SpfMechanism]) -> RecordCheck:
    invalid = RecordCheck(RecordStatus.INVALID, found=join_texts([text]))
    try:
        record = parse_spf(text)
    except InvalidSpf as syntax_error:
        return replace(invalid, error=str(syntax_error))
    evaluation = await _evaluate(lookup, record)
    if evaluation.error:
        return replace(invalid, error=evaluation.error)
    invalid = replace(invalid, passing=" ".join(map(str, evaluation.passing)))
    missing = find_uncovered(required, published=evaluation.passing)
    if record.passes_all:
        return replace(invalid, error=CodedText("domains.spf_passes_all"), value=merge_records([text], missing))
    if any(mechanism.name == "all" for mechanism in evaluation.passing):
        return replace(invalid, error=CodedText("domains.spf_includes_all"))
    if missing:
        return await _add_missing(lookup, invalid, text, missing)
    note = CodedText("domains.spf_usage", count=evaluation.lookups, limit=LOOKUP_LIMIT)
    return replace(invalid, status=RecordStatus.VALID, value=text, note=note)


async def _add_missing(
    lookup: RecordLookup, invalid: RecordCheck, text: str, missing: Sequence[SpfMechanism]
) -> RecordCheck:
    """Return the record with the missing mechanisms as the value to publish, evaluated like the published one."""
    names = " ".join(map(str, missing))
    value = merge_records([text], missing)
    if not has_valid_length(value):
        return replace(invalid, error=CodedText("domains.spf_no_space", names=names, limit=MAX_LENGTH))
    evaluation = await _evaluate(lookup, parse_spf(value))
    usage = CodedText("domains.spf_future_usage", count=evaluation.lookups, limit=LOOKUP_LIMIT)
    error = join_sentences(CodedText("domains.spf_missing", names=names), evaluation.error or usage)
    return replace(invalid, error=error, value=value)


async def _evaluate(lookup: RecordLookup, record: SpfRecord) -> SpfEvaluation:
    evaluation = SpfEvaluation(lookup.dns.look_up)
    await evaluation.run(record, domain=lookup.domain)
    return evaluation
