"""Requests and responses of `/v1/admin`."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from django.conf import settings
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from alerts.serializers import AlertInput
from alerts.services import MAX_ALERTS
from core.api.errors import InvalidFields
from core.api.fields import (
    DISPLAY_NAME_LENGTH,
    OPTIONAL,
    AddressField,
    AttributesSerializer,
    CountField,
    EntriesField,
    NameField,
    OptionField,
    RowInput,
    RowSerializer,
    StrictBooleanField,
    StrictSerializer,
    TextField,
    TextListField,
    UtcDateTimeField,
    WholeNumberField,
)
from core.delivery.transports.router import TransportState
from core.lib.datetimes import parse_datetime, to_utc
from core.lib.network.target_urls import MAX_URL_LENGTH
from core.workspaces.api.serializers import (
    APPROVAL,
    LIMIT_TEXTS,
    RULES_TEXTS,
    KeyLimitsSerializer,
    QuotaSerializer,
    RecipientRulesInput,
    RecipientRulesSerializer,
)
from core.workspaces.key_limits import (
    MAX_ENTRY_LENGTH,
    MAX_LIMIT_ENTRIES,
    MAX_REQUESTS_PER_SECOND,
    MAX_STREAM_LENGTH,
    MAX_TEMPLATE_LENGTH,
    read_limits,
    refuse_scope,
)
from core.workspaces.models import (
    APPROVAL_REQUIRED,
    ApiKey,
    AuditEntry,
    Invitation,
    Membership,
    Workspace,
    normalize_identity,
)
from core.workspaces.services import refuse_rules
from domains.serializers import DomainInput, DomainSettingsInput
from domains.services import find_unaligned
from emails.receivers.pair_status import PairStatus
from emails.receivers.states import PairState
from emails.sending.transport_status import TransportStatus
from receiving.api.serializers import MAX_WEBHOOK_IDS, BlockInput, RouteInput
from receiving.services import MAX_BLOCKS, MAX_ROUTES
from streams.errors import InvalidStream, TransportRouteNotAllowed
from streams.serializers import StreamInput
from streams.services import MAX_STREAMS, check_stream
from templates_app.content import check_content
from templates_app.errors import TemplateSyntaxInvalid
from templates_app.serializers import AliasField, TemplateInput, new_template
from webhooks.serializers import ConfiguredWebhookInput

MAX_REASON_LENGTH = 200
MAX_ENTRIES = 100
# Compiling a template takes up to 0.15 s of processor time.
MAX_CHECKED_TEMPLATES = 5


@extend_schema_field({"type": "string", "format": "date-time"})
class ExpiryField(TextField):
    """A time in the future, or null."""

    default_error_messages = {
        "invalid": "This must be a timestamp such as 2027-01-01T00:00:00Z.",
        "in_past": "This must be in the future.",
    }

    def to_internal_value(self, data: Any) -> Any:
        parsed = parse_datetime(super().to_internal_value(data))
        # The database cannot return a time that is outside of the calendar in UTC.
        expires_at = parsed and to_utc(parsed)
        if expires_at is None:
            self.fail("invalid")
        if expires_at <= datetime.now(UTC):
            self.fail("in_past")
        return expires_at


class IdentityField(AddressField):
    """The address of an account, as it signs in."""

    def to_internal_value(self, data: Any) -> str:
        return normalize_identity(super().to_internal_value(data).spec)


class RulesInput(StrictSerializer):
    """An input with the recipient rules of a workspace or a key; null removes them."""

    recipientRules = RecipientRulesInput(**OPTIONAL, help_text=RULES_TEXTS["workspace"])


class NewWorkspaceInput(RulesInput):
    name = NameField()
    plan = OptionField(choices=list(settings.PLANS), required=False, help_text="DEFAULT_PLAN if omitted.")
    group = NameField(
        required=False, help_text="Only for a key to all workspaces. A key of a group creates workspaces in its group."
    )
    ownerEmail = IdentityField(required=False, help_text="The address of a person who is invited as an owner.")


class WorkspaceChangesInput(RulesInput):
    name = NameField(required=False)
    plan = OptionField(choices=list(settings.PLANS), required=False, help_text="Only for management keys.")


class SuspensionInput(StrictSerializer):
    reason = NameField(max_length=MAX_REASON_LENGTH, help_text="Shown to the members.")


class LimitEntriesField(EntriesField):
    def __init__(self, **options: Any) -> None:
        super().__init__(required=False, max_length=MAX_LIMIT_ENTRIES, **options)


class KeyLimitsInput(StrictSerializer):
    """Limits of a new API key."""

    domains = LimitEntriesField(child=TextField(max_length=MAX_ENTRY_LENGTH), help_text=LIMIT_TEXTS["domains"])
    networks = LimitEntriesField(child=TextField(max_length=MAX_ENTRY_LENGTH), help_text=LIMIT_TEXTS["networks"])
    templates = LimitEntriesField(child=TextField(max_length=MAX_TEMPLATE_LENGTH), help_text=LIMIT_TEXTS["templates"])
    streams = LimitEntriesField(child=TextField(max_length=MAX_STREAM_LENGTH), help_text=LIMIT_TEXTS["streams"])
    requestsPerSecond = WholeNumberField(
        source="requests_per_second",
        **OPTIONAL,
        min_value=1,
        max_value=MAX_REQUESTS_PER_SECOND,
        help_text=LIMIT_TEXTS["requestsPerSecond"],
    )


@contextmanager
def field_errors() -> Iterator[None]:
    """Raise InvalidFields as errors of the fields of the serializer in use, which may be one of many in a list."""
    try:
        yield
    except InvalidFields as problem:
        errors = problem.members["errors"]
        details = {error["field"]: [serializers.ErrorDetail(error["detail"], code=error["code"])] for error in errors}
        raise serializers.ValidationError(details) from problem


class KeyRulesInput(StrictSerializer):
    recipientRules = RecipientRulesInput(source="rules", **OPTIONAL, help_text=RULES_TEXTS["key"])


class KeyChangesInput(StrictSerializer):
    recipientRules = RecipientRulesInput(source="rules", allow_null=True, help_text=RULES_TEXTS["key"])


class ConfiguredKeyInput(KeyRulesInput):
    name = NameField()
    scope = OptionField(choices=ApiKey.Scope.values, help_text="The scope of the key.")
    test = StrictBooleanField(required=False, default=False, help_text="Create a test key.")
    approval = OptionField(
        choices=[APPROVAL_REQUIRED], **OPTIONAL, help_text="`required`: the emails of the key wait for approval."
    )
    limits = KeyLimitsInput(required=False)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        with field_errors():
            own = {"is_test": attrs.pop("test"), "needs_approval": bool(attrs.pop("approval", None))}
            limits = read_limits(**attrs.get("limits", {}), **own)
            refuse_scope(limits, can_only_send=attrs["scope"] in ApiKey.SENDING_SCOPES)
            refuse_rules(attrs.get("rules"), scope=attrs["scope"])
        return {**attrs, "limits": limits}


class ApiKeyInput(ConfiguredKeyInput):
    expiresAt = ExpiryField(source="expires_at", **OPTIONAL)


class InvitationInput(StrictSerializer):
    email = IdentityField()
    role = OptionField(choices=Membership.Role.values, required=False, help_text="The role of the member.")


class RoleInput(StrictSerializer):
    role = OptionField(choices=Membership.Role.values, help_text="The role of the member.")


class ConfiguredDomainInput(DomainSettingsInput, DomainInput):
    """A domain with its settings."""


class ConfiguredTemplateInput(TemplateInput):
    """A template whose syntax is checked; its alias identifies it."""

    alias = AliasField()

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        try:
            template = new_template(attrs)
            check_content(template["content"], template["kind"])
        except TemplateSyntaxInvalid as error:
            raise serializers.ValidationError({error.members["field"]: error.detail}, code=error.code) from error
        return attrs


class ConfiguredStreamInput(StreamInput):
    archived = StrictBooleanField(required=False, help_text="Whether the stream accepts no emails.")

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        fields = {name: value for name, value in attrs.items() if name != "archived"}
        try:
            check_stream(**fields, is_archived=attrs.get("archived", False))
        except (InvalidStream, TransportRouteNotAllowed) as error:
            raise serializers.ValidationError({error.members["field"]: error.detail}, code=error.code) from error
        return attrs


class ConfiguredRouteInput(RouteInput):
    """A route; domain and pattern identify it."""

    webhooks = EntriesField(
        child=TextField(max_length=MAX_URL_LENGTH),
        max_length=MAX_WEBHOOK_IDS,
        required=False,
        help_text="The URLs of the webhooks that get `received`; empty for all that subscribe to it.",
    )

    class Meta(RouteInput.Meta):
        # The ids of webhooks are not known before they exist.
        fields = (*(name for name in RouteInput.Meta.fields if name != "webhookIds"), "webhooks")


class ConfigurationInput(RowInput):
    """A workspace as a configuration file describes it, or a part of it."""

    locals()["id"] = TextField(
        required=False, max_length=DISPLAY_NAME_LENGTH, help_text="The id of the workspace, if its name changes."
    )
    name = NameField(required=False)
    plan = OptionField(choices=list(settings.PLANS), required=False)
    group = NameField(required=False)
    ownerEmail = IdentityField(
        required=False, help_text="The address of a person who is invited as an owner of a new workspace."
    )
    recipientRules = RecipientRulesInput(**OPTIONAL, help_text=RULES_TEXTS["workspace"])
    domains = EntriesField(
        child=ConfiguredDomainInput(), required=False, max_length=MAX_ENTRIES, help_text="The sending domains."
    )
    templates = EntriesField(
        child=ConfiguredTemplateInput(),
        required=False,
        max_length=MAX_CHECKED_TEMPLATES,
        help_text="The templates, each with an alias.",
    )
    streams = EntriesField(
        child=ConfiguredStreamInput(), required=False, max_length=MAX_STREAMS, help_text="The streams, also `main`."
    )
    alerts = EntriesField(child=AlertInput(), required=False, max_length=MAX_ALERTS, help_text="The alerts.")
    webhooks = EntriesField(
        child=ConfiguredWebhookInput(), required=False, max_length=MAX_ENTRIES, help_text="The webhook endpoints."
    )
    routes = EntriesField(
        child=ConfiguredRouteInput(), required=False, max_length=MAX_ROUTES, help_text="The routes of received email."
    )
    blocks = EntriesField(
        child=BlockInput(), required=False, max_length=MAX_BLOCKS, help_text="The senders that are blocked."
    )
    apiKeys = EntriesField(
        child=ConfiguredKeyInput(), required=False, max_length=MAX_ENTRIES, help_text="The API keys that exist."
    )

    class Meta:
        model = Workspace
        fields = (
            "id", "name", "plan", "group", "ownerEmail", "recipientRules", "domains", "templates", "streams", "alerts",
            "webhooks", "routes", "blocks", "apiKeys",
        )  # fmt: skip


class LeaseInput(StrictSerializer):
    token = TextField(
        min_length=22, max_length=100, help_text="A random text that the run keeps: with it, it renews its lease."
    )
    workspaceId = TextField(
        **OPTIONAL,
        max_length=40,
        help_text="The workspace. For an API key, its own; for a management key without one, the list of workspaces.",
    )


class LeaseSerializer(serializers.Serializer[Any]):
    """A lease."""

    expiresAt = UtcDateTimeField(
        allow_null=True, help_text="The time at which the lease ends, unless it is renewed; null after its release."
    )


class CheckedConfigurationSerializer(serializers.Serializer[Any]):
    """The response to a valid configuration."""

    domainNames = TextListField(help_text="The names of the domains in lower case and ASCII, as responses have them.")
    routeDomains = TextListField(help_text="The domains of the routes, in the same form.")
    blockedSenders = TextListField(help_text="The blocked senders, in the same form.")


class ManagedWorkspaceSerializer(RowSerializer[Workspace]):
    optional_fields = frozenset({"recipientRules"})

    plan = serializers.ChoiceField(list(settings.PLANS))
    suspendedReason = serializers.SerializerMethodField()
    deletesAt = UtcDateTimeField(allow_null=True)
    recipientRules = RecipientRulesSerializer(
        required=False, help_text=f"{RULES_TEXTS['workspace']} Absent without rules."
    )

    class Meta:
        model = Workspace
        fields = (
            "id", "name", "plan", "group", "suspendedAt", "suspendedReason", "deletesAt", "createdAt", "recipientRules",
        )  # fmt: skip

    def get_suspendedReason(self, workspace: Workspace) -> str | None:  # noqa: N802
        return workspace.suspended_reason or None


class ManagedKeySerializer(RowSerializer[ApiKey]):
    optional_fields = frozenset({"approval", "recipientRules"})

    test = serializers.BooleanField(
        source="is_test", help_text="Whether it is a test key: nothing is sent, and it does not count."
    )
    limits = KeyLimitsSerializer()
    approval = serializers.ChoiceField([APPROVAL_REQUIRED], help_text=APPROVAL)
    lastFour = serializers.CharField()
    recipientRules = RecipientRulesSerializer(required=False, help_text=f"{RULES_TEXTS['key']} Absent without rules.")

    class Meta:
        model = ApiKey
        fields = (
            "id", "name", "scope", "test", "limits", "approval", "lastFour", "createdAt", "expiresAt", "revokedAt",
            "lastUsedAt", "recipientRules",
        )  # fmt: skip


class NewKeySerializer(ManagedKeySerializer):
    """The response that contains the key, which is passed in the context."""

    key = serializers.SerializerMethodField(help_text="The key. It is shown only here: store it.")

    @extend_schema_field({"type": "string", "pattern": "^pr_"})
    def get_key(self, key: ApiKey) -> Any:
        return self.context["secret"]


class MemberSerializer(RowSerializer[Membership]):
    email = serializers.CharField(source="user.email")

    class Meta:
        model = Membership
        fields = ("email", "role", "createdAt")


class RemovedMemberSerializer(serializers.Serializer[Any]):
    email = serializers.CharField()
    deleted = serializers.BooleanField(read_only=True, default=True, help_text="Always true.")


class InvitationSerializer(RowSerializer[Invitation]):
    email = serializers.CharField()

    class Meta:
        model = Invitation
        fields = ("id", "email", "role", "createdAt", "expiresAt")


class AuditEntrySerializer(RowSerializer[AuditEntry]):
    action = serializers.ChoiceField(AuditEntry.Action.choices, source="act")

    class Meta:
        model = AuditEntry
        fields = ("action", "about", "actorKind", "actor", "address", "createdAt")


class TransportSerializer(AttributesSerializer[TransportStatus]):
    name = serializers.CharField(help_text="The name of the transport in TRANSPORTS_FILE, or `default`.")
    kind = serializers.ChoiceField(
        ["direct", "smtp", "anymail", "inbox"], help_text="How it sends: to mail hosts, a relay, or a provider."
    )
    state = serializers.ChoiceField(
        [state.value for state in TransportState],
        help_text="`paused` after failures; `probing` after a successful probe; `draining` by the operator.",
    )
    since = UtcDateTimeField(allow_null=True, help_text="Since when; null if no worker has reported.")
    lastError = serializers.CharField(help_text="The last failure that concerned all email; empty without one.")
    inFlight = CountField(help_text="The number of messages that are being sent.")
    sentToday = CountField(help_text="The number of messages that it has taken since midnight UTC.")
    perDay = serializers.IntegerField(allow_null=True, help_text="Its limit for a UTC day; null without one.")
    routes = TextListField(help_text="The routes that use it.")
    unalignedDomains = serializers.SerializerMethodField(
        help_text="Up to 100 domains of the managed workspaces whose SPF records do not let it send."
    )

    @extend_schema_field({"type": "array", "items": {"type": "string"}})
    def get_unalignedDomains(self, status: TransportStatus) -> list[str]:  # noqa: N802 - named after the field
        return find_unaligned(self.context["domains"], spf=status.spec.spf)[:MAX_ENTRIES]


class ReceiversQuery(serializers.Serializer[Any]):
    receiver = serializers.CharField(required=False, help_text="Only receivers with this text in their key or name.")
    state = serializers.ChoiceField(PairState.values, required=False, help_text="Only pairs in this state.")


class ReceiverPaceSerializer(AttributesSerializer[PairStatus]):
    receiver = serializers.CharField(
        help_text="The key of the receiver in the table; else the registrable domain of its mail hosts."
    )
    name = serializers.CharField(help_text="Its name.")
    sourceAddress = serializers.CharField(
        source="source",
        help_text="The addresses that email is sent from; empty for those that the system chooses.",
    )
    state = serializers.ChoiceField(
        PairState.values,
        help_text="`stopped` by the staff; `suspended` because of a reply; `limited` to a rate; else `learning`.",
    )
    since = UtcDateTimeField(allow_null=True, help_text="Since when; null if it is not known.")
    until = UtcDateTimeField(allow_null=True, help_text="The end of a suspension because of a reply; null without one.")
    connections = CountField(help_text="The number of connections that are open.")
    allowedConnections = CountField(source="allowed", help_text="The number of connections that may be open.")
    perMinute = serializers.FloatField(
        allow_null=True, help_text="The messages a minute that leave now; null without a limit."
    )
    pinnedPerMinute = serializers.FloatField(
        source="pinned", allow_null=True, help_text="The rate that the staff has set; null for the learnt one."
    )
    waiting = CountField(help_text="The number of recipients that wait.")
    acceptedToday = CountField(source="accepted", help_text="The number of messages accepted since midnight UTC.")
    slowedToday = CountField(source="slowed", help_text="The number of replies since then that asked for less.")
    warmUpDay = CountField(
        source="day", allow_null=True, help_text="The day of a new address at this receiver, from 1; null for others."
    )
    perDay = CountField(
        source="number", allow_null=True, help_text="The messages of this day, for a new address; null without a limit."
    )
    listed = serializers.BooleanField(
        source="is_listed", help_text="Whether new email leaves the address because a block list has it."
    )
    reply = serializers.CharField(help_text="The last of these replies; empty without one.")
    repliedAt = UtcDateTimeField(allow_null=True, help_text="The time of this reply.")


class MonthSerializer(serializers.Serializer[Any]):
    month = serializers.DateField(help_text="The first day of the month, UTC.")
    used = CountField(help_text="The number of emails used this month.")


class UsageSerializer(serializers.Serializer[Any]):
    quota = QuotaSerializer(help_text="The monthly quota of emails.")
    months = MonthSerializer(many=True, help_text="The emails of each month.")
