"""Requests and responses about the DMARC and TLS reports of a domain."""

from collections.abc import Mapping
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

from django.utils.translation import gettext_lazy
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from core.api.fields import (
    AttributesSerializer,
    CountField,
    DateTimeBoundField,
    FieldErrors,
    NameField,
    RowSerializer,
    StrictSerializer,
    TextField,
    TextListField,
    UtcDateTimeField,
    invalid_range,
    is_reversed,
)
from core.api.schema_fields import one_given, refine_schema
from domains.models import DmarcRow, DomainReport
from domains.names import InvalidDomainName
from domains.records import DnsRecord
from domains.reports.advice import PolicyAdvice, Requirement
from domains.reports.classification import Whose
from domains.reports.comparison import Reported
from domains.reports.sources import MAX_LABEL, MailSource, parse_sender_domain, parse_source_address
from domains.reports.tls import FailedSessions, TlsGroup, TlsSummary

DAY = timedelta(days=1)
# Years 1 and 9999 are common open ends; the day after the last one must exist.
FIRST_TIME = datetime.min.replace(tzinfo=UTC)
LAST_TIME = datetime(9999, 12, 30, tzinfo=UTC)
DEFAULT_DAYS = 30
MAX_DAYS = 400
TOO_LONG = f"from must be at most {MAX_DAYS} days before to."
# Rows of a report that are shown, those with most messages.
MAX_ROWS = 1_000
WHOSE = (
    "`ours`: signed by a key of the domain, from a server of this service. `ours_broken`: from such a server, without "
    "a valid signature. `forwarded`: signed by a key of the domain, from another server. `known`: from another sender "
    "that you have named. `unknown`: from any other."
)


class ReportRangeQuery(serializers.Serializer[Any]):
    """A range in whole UTC days: `from` rounded down, `to` up."""

    locals()["from"] = DateTimeBoundField(
        is_end=False, help_text=f"The first day. Defaults to {DEFAULT_DAYS} days that end with the last one."
    )
    to = DateTimeBoundField(
        is_end=True,
        help_text=f"The last day, which is included. Defaults to today. The range has at most {MAX_DAYS} days.",
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if is_reversed(attrs):
            raise serializers.ValidationError({"from": [invalid_range()]})
        first, last = attrs.get("from"), attrs.get("to")
        last = _day(last or max(datetime.now(UTC), first or FIRST_TIME))
        first = _day(first) if first else date.fromordinal(max(last.toordinal() - DEFAULT_DAYS + 1, 1))
        if last - first >= timedelta(days=MAX_DAYS):
            raise serializers.ValidationError({"from": [serializers.ErrorDetail(TOO_LONG, code="invalid_range")]})
        return {"first": first, "end": last + DAY}


def _day(time: datetime) -> date:
    return min(max(time, FIRST_TIME), LAST_TIME).astimezone(UTC).date()


class MidnightField(UtcDateTimeField):
    """A UTC day as the time at which it begins."""

    def to_representation(self, value: date) -> Any:
        return super().to_representation(datetime.combine(value, time.min, UTC))


class DayField(serializers.DateField):
    """A UTC day."""


class ReportedSerializer(AttributesSerializer[Reported]):
    """Numbers of messages. sent: counted here; all others: as the reports say."""

    sent = CountField(help_text="Messages of the domain that mail hosts accepted from this service.")
    reported = CountField(help_text="Messages in reports that were sent from this service: the first three classes.")
    aligned = CountField(help_text="Those of `reported` that passed DMARC.")
    others = CountField(help_text="Messages in reports of other senders: `known` and `unknown`.")
    ours = CountField(source="by_class.ours", help_text="Signed by a key of the domain, from a server of this service.")
    oursBroken = CountField(source="by_class.ours_broken", help_text="From such a server, without a valid signature.")
    forwarded = CountField(source="by_class.forwarded", help_text="Signed by a key of the domain, from another server.")
    known = CountField(source="by_class.known", help_text="From other senders that you have named.")
    unknown = CountField(source="by_class.unknown", help_text="From any other sender.")


class OrganizationReportSerializer(ReportedSerializer):
    """The reports of an organization."""

    id = serializers.CharField(source="organization", help_text="A mail provider, or the domain of the mail host.")
    name = serializers.CharField(help_text="The name for people.")
    sources = CountField(help_text="Addresses of other senders.")
    summary = serializers.CharField(help_text="The sent and the reported messages, in a sentence.")


class DayReportSerializer(ReportedSerializer):
    """The reports about a UTC day."""

    locals()["date"] = DayField(source="day", help_text="The UTC day.")


class RequirementSerializer(AttributesSerializer[Requirement]):
    """A requirement of a stricter policy."""

    code = serializers.ChoiceField(
        ["recent", "lasting", "covered", "aligned", "known"],
        help_text="`recent`: reports still come. `lasting`: they name the present policy for 14 days. `covered`: three "
        "organizations report, or those that 80 % of the messages went to. `aligned`: 99 % of the messages from our "
        "servers pass DMARC. `known`: no unknown source has more than 1 % of the messages, or more than 100.",
    )
    met = serializers.BooleanField(source="is_met", help_text="Whether it is met.")
    text = serializers.CharField(help_text="The requirement and the present state, for people.")


class AdvisedRecordSerializer(serializers.Serializer[DnsRecord]):
    """The record to publish."""

    type = serializers.CharField(help_text="DNS record type.")
    fqdn = serializers.CharField(help_text="Full record name.")
    value = serializers.CharField(help_text="Value to publish.")


class AdviceSerializer(AttributesSerializer[PolicyAdvice]):
    """Advice on the DMARC policy, by the reports of the last days; nothing changes DNS."""

    policy = serializers.ChoiceField(
        ["", "none", "quarantine", "reject"], allow_blank=True, help_text="The present policy; empty without one."
    )
    recommended = serializers.ChoiceField(
        ["none", "quarantine", "reject"], help_text="The policy to publish, which may be the present one."
    )
    summary = serializers.CharField(help_text="The advice in a sentence.")
    requirements = RequirementSerializer(many=True, help_text="The requirements of the next policy.")
    notes = TextListField(help_text="What else to know before the change.")
    record = AdvisedRecordSerializer(
        allow_null=True, help_text="The record to publish if the policy is to change; null otherwise."
    )


class DomainDmarcSerializer(serializers.Serializer[Any]):
    """The DMARC reports of a range, compared with the messages that were sent, and advice."""

    locals()["from"] = MidnightField(source="comparison.first", help_text="The start of the first UTC day.")
    to = MidnightField(source="comparison.end", help_text="The end of the last UTC day.")
    totals = ReportedSerializer(source="comparison", help_text="All reports of the range.")
    coverage = serializers.FloatField(
        source="comparison.coverage",
        allow_null=True,
        min_value=0,
        max_value=1,
        help_text="The share of `sent` that went to organizations with a report; null without messages.",
    )
    organizations = OrganizationReportSerializer(
        source="comparison.organizations",
        many=True,
        help_text="The organizations that reported, those with most messages first; at most 100.",
    )
    days = DayReportSerializer(
        source="comparison.days", many=True, help_text="Days with messages or reports, oldest first."
    )
    advice = AdviceSerializer(help_text="Advice on the policy, whatever the range.")


class MailSourceSerializer(AttributesSerializer[MailSource]):
    """An address that sent mail of a domain, with one class of it."""

    ip = serializers.IPAddressField(allow_null=True, help_text="The address; null if reports have an invalid one.")
    whose = serializers.ChoiceField(Whose.values, help_text=WHOSE)
    label = serializers.CharField(  # type: ignore[assignment]
        help_text="The label of a `known` source."
    )
    messages = CountField(help_text="Its messages.")
    aligned = CountField(help_text="Those that passed DMARC.")
    domains = TextListField(help_text="Domains for which SPF or a DKIM signature was valid; at most 10.")
    firstOn = DayField(source="first_day", help_text="The first UTC day of the range with messages.")
    lastOn = DayField(source="last_day", help_text="The last UTC day of the range with messages.")


class MailSourcesSerializer(serializers.Serializer[Any]):
    """The sources of a domain's mail."""

    data = MailSourceSerializer(  # type: ignore[assignment]
        many=True, help_text="Those with most messages, at most 500."
    )


@extend_schema_field({"type": "string", "minLength": 2, "maxLength": 45})
class SourceAddressField(TextField):
    """One IP address, in its usual form."""

    default_error_messages = {"invalid_ip": gettext_lazy("This must be an IP address, such as 192.0.2.1.")}

    def to_internal_value(self, data: Any) -> str:
        try:
            return str(parse_source_address(super().to_internal_value(data)))
        except ValueError:
            self.fail("invalid_ip")


@extend_schema_field({"type": "string", "format": "idn-hostname", "minLength": 1})
class SenderDomainField(TextField):
    """A domain that signs or sends, as an A-label."""

    def to_internal_value(self, data: Any) -> str:
        try:
            return parse_sender_domain(super().to_internal_value(data))
        except InvalidDomainName as error:
            raise serializers.ValidationError(str(error), code="invalid_domain") from error


class SourceLabelInput(StrictSerializer):
    """A label of a source, by its address or by a domain."""

    ip = SourceAddressField(required=False, max_length=45, help_text="The address of the sender.")
    domain = SenderDomainField(
        required=False,
        max_length=253,
        help_text="A domain that passes SPF or DKIM in the mail of the sender, as `domains` of a source shows it; it "
        "stands for the names below it, too.",
    )
    label = NameField(  # type: ignore[assignment]
        max_length=MAX_LABEL, allow_blank=True, help_text="The name of the sender, for people; empty to forget it."
    )

    def combination_errors(self, data: Mapping[str, Any]) -> FieldErrors:
        if "ip" in data and "domain" in data:
            return {"ip": [serializers.ErrorDetail("Give ip or domain, not both.", code="conflict")]}
        if "ip" in data or "domain" in data:
            return {}
        return {"ip": [serializers.ErrorDetail("Give ip or domain.", code="required")]}


refine_schema(SourceLabelInput, {}, **one_given("ip", "domain"))


class ReportItemSerializer(RowSerializer[DomainReport]):
    """A DMARC report."""

    id = serializers.CharField()
    state = serializers.ChoiceField(
        DomainReport.ReadingState.values,
        help_text="`read` reports are counted. `waiting`: not read yet. `repeated`: it is a copy. `conflict`: one with "
        "this id and other numbers is counted. `foreign`: about another domain. `unreadable` and `refused`: see "
        "`error`.",
    )
    organization = serializers.CharField(source="reporter", help_text="The organization, as it names itself.")
    reportId = serializers.CharField(source="report_id", help_text="The id that the organization gave it.")
    beginAt = UtcDateTimeField(source="begin_at", allow_null=True, help_text="The start of its range.")
    endAt = UtcDateTimeField(source="end_at", allow_null=True, help_text="The end of its range.")
    receivedAt = UtcDateTimeField(source="received_at", help_text="The time when it arrived.")
    error = serializers.CharField(help_text="Why it is not counted; empty if it is.")

    class Meta:
        model = DomainReport
        fields: tuple[str, ...] = (
            "id", "state", "organization", "reportId", "beginAt", "endAt", "receivedAt", "error",
        )  # fmt: skip


class ReportedSignatureSerializer(serializers.Serializer[Any]):
    """A signature as the organization checked it."""

    domain = serializers.CharField(help_text="The signing domain.")
    selector = serializers.CharField(help_text="The selector of the key.")
    result = serializers.CharField(help_text="The result, such as `pass`.")


class ReportedSpfSerializer(serializers.Serializer[Any]):
    """An SPF result."""

    domain = serializers.CharField(help_text="The domain that was checked.")
    scope = serializers.CharField(help_text="`mfrom` or `helo`; may be empty.")
    result = serializers.CharField(help_text="The result, such as `pass`.")


class PolicyReasonSerializer(serializers.Serializer[Any]):
    """A reason for a disposition that differs from the policy."""

    type = serializers.CharField(help_text="The reason, such as `forwarded`.")
    comment = serializers.CharField(help_text="A comment of the organization.")


class ReportRowSerializer(RowSerializer[DmarcRow]):
    """Messages with the same results from one address. Texts are those of the report: show them escaped."""

    sourceIp = serializers.CharField(source="source_ip", allow_null=True, help_text="The address that sent them.")
    count = CountField(help_text="The number of messages.")
    whose = serializers.ChoiceField(Whose.values, help_text=WHOSE)
    disposition = serializers.CharField(help_text="The treatment: `none`, `quarantine`, `reject` or `pass`.")
    dkim = serializers.CharField(help_text="Whether a signature of an aligned domain was valid.")
    spf = serializers.CharField(help_text="Whether SPF passed for an aligned domain.")
    headerFrom = serializers.CharField(source="header_from", help_text="The domain of the From header.")
    envelopeFrom = serializers.CharField(source="envelope_from", help_text="The domain of the return path.")
    envelopeTo = serializers.CharField(source="envelope_to", help_text="The domain of the recipients.")
    dkimResults = ReportedSignatureSerializer(source="dkim_results", many=True, help_text="All signatures.")
    spfResults = ReportedSpfSerializer(source="spf_results", many=True, help_text="The SPF results.")
    reasons = PolicyReasonSerializer(many=True, help_text="Reasons for another treatment than the policy.")

    class Meta:
        model = DmarcRow
        fields = (
            "sourceIp", "count", "whose", "disposition", "dkim", "spf", "headerFrom", "envelopeFrom", "envelopeTo",
            "dkimResults", "spfResults", "reasons",
        )  # fmt: skip


class ReportSerializer(ReportItemSerializer):
    """A DMARC report with its rows."""

    policy = serializers.DictField(
        child=serializers.CharField(), help_text="The policy that the organization found, by its elements."
    )
    rowCount = serializers.SerializerMethodField(help_text="The number of its rows.")
    rows = serializers.SerializerMethodField(help_text=f"The rows with most messages, at most {MAX_ROWS:,}.")

    class Meta(ReportItemSerializer.Meta):
        fields = (*ReportItemSerializer.Meta.fields, "policy", "rowCount", "rows")

    @extend_schema_field({"type": "integer", "minimum": 0})
    def get_rowCount(self, report: DomainReport) -> int:  # noqa: N802 - the name on the wire
        return report.dmarc_rows.count()

    @extend_schema_field(ReportRowSerializer(many=True))
    def get_rows(self, report: DomainReport) -> Any:
        return ReportRowSerializer(report.dmarc_rows.order_by("-count", "id")[:MAX_ROWS], many=True).data


class TlsResultSerializer(serializers.Serializer[FailedSessions]):
    """Failed sessions with one result."""

    type = serializers.CharField(help_text="The result (RFC 8460), such as `certificate-expired`.")
    sessions = CountField(help_text="The number of failed sessions with it.")


class TlsGroupSerializer(AttributesSerializer[TlsGroup]):
    """Sessions of an organization under one type of policy."""

    id = serializers.CharField(source="organization", help_text="A mail provider, or the domain of its address.")
    name = serializers.CharField(help_text="The name for people.")
    policyType = serializers.CharField(help_text="`sts` (MTA-STS), `tlsa` (DANE) or `no-policy-found`.")
    successful = CountField(help_text="Sessions with TLS as the policy requires.")
    failed = CountField(help_text="Sessions that failed.")
    results = TlsResultSerializer(many=True, help_text="The results of failed sessions.")


class TlsSummarySerializer(AttributesSerializer[TlsSummary]):
    """The TLS reports of a range."""

    locals()["from"] = MidnightField(source="first", help_text="The start of the first UTC day.")
    to = MidnightField(source="end", help_text="The end of the last UTC day.")
    successful = CountField(help_text="All sessions with TLS as their policy requires.")
    failed = CountField(help_text="All sessions that failed.")
    groups = TlsGroupSerializer(
        many=True, help_text="By organization and type of policy, those with most failed sessions first; at most 500."
    )
