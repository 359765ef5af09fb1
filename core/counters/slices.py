"""Slices: the emails of a workspace with one tag, template, sending domain or stream (docs/decisions/0128).

The id of a slice is a hash of the workspace, the dimension and the value, so that a value of any length is counted
under a narrow key and no registry of values is needed.
"""

import functools
import hashlib
from collections.abc import Iterable
from enum import StrEnum
from itertools import islice
from uuid import UUID

from core.lib.ids import to_uuid

# Tags of an email in `/v1`; further ones, of other APIs, are not counted.
MAX_TAGS = 10
# The stream of most emails has no slice: its counts are those of the workspace without those of the other streams.
UNSLICED_STREAM = "main"
# The emails of a batch, and those of one application, have mostly the same slices.
CACHE_SIZE = 4096


class Dimension(StrEnum):
    TAG = "tag"
    TEMPLATE = "template"
    DOMAIN = "domain"
    STREAM = "stream"
    # No slices of emails: the counters of histograms (core.counters.latency), of sessions with a recipient domain
    # (emails.tls_policies.report_counts) and of accepted messages (core.counters.acceptances).
    LATENCY = "latency"
    TLS_REPORT = "tls_report"
    ACCEPTED = "accepted"


@functools.lru_cache(maxsize=CACHE_SIZE)
def slice_id(workspace_id: str, dimension: Dimension, value: str) -> UUID:
    """Return the id of a slice; slices_sql computes the same."""
    name = f"{to_uuid(workspace_id, prefix='ws_')}/{dimension}/{value}"
    return UUID(hashlib.md5(name.encode(), usedforsecurity=False).hexdigest())


def email_slices(
    workspace_id: str, *, tags: Iterable[str], template_id: str | None, from_domain: str, stream: str
) -> tuple[UUID, ...]:
    """Return the slices that an email belongs to, in order, each once."""
    values = [(Dimension.TAG, tag) for tag in islice(tags, MAX_TAGS)] + [(Dimension.DOMAIN, from_domain)]
    if template_id:
        values.append((Dimension.TEMPLATE, template_id))
    if stream != UNSLICED_STREAM:
        values.append((Dimension.STREAM, stream))
    return tuple(sorted({slice_id(workspace_id, dimension, value) for dimension, value in values}))


def stream_slice_sql(stream: str) -> str:
    """Return an SQL expression for the slice of a row of streams_stream. stream: the alias of the table."""
    return f"md5({stream}.workspace_id || '/{Dimension.STREAM}/' || {stream}.slug)::uuid"


def slices_sql(email: str) -> str:
    """Return an SQL expression for the slices of a row of emails_email. email: the alias of the table."""
    return f"""ARRAY(
        SELECT DISTINCT md5({email}.workspace_id || name)::uuid FROM (
            SELECT '/{Dimension.TAG}/' || tag FROM unnest({email}.tags[1:{MAX_TAGS}]) AS tag
            UNION ALL VALUES ('/{Dimension.TEMPLATE}/' || {email}.template_id),
                             ('/{Dimension.DOMAIN}/' || {email}.from_domain),
                             ('/{Dimension.STREAM}/' || nullif({email}.stream, '{UNSLICED_STREAM}'))) AS names (name)
         WHERE name IS NOT NULL ORDER BY 1)"""  # noqa: S608 - constants
