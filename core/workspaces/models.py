"""Accounts: users and their identities, workspaces, memberships, API keys, monthly usage and the audit log."""

import unicodedata
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from django.conf import settings
from django.contrib.auth.models import AbstractBaseUser, BaseUserManager, PermissionsMixin
from django.contrib.sessions.models import Session
from django.db import models
from django.db.models import Q, Value
from django.db.models.functions import Now
from django.utils.functional import cached_property

from core.lib.coded_texts import restore_text
from core.lib.model_fields import IdField
from core.lib.translation import translate, translated_choices
from core.workspaces.key_limits import KeyLimits
from core.workspaces.plans import Plan, find_plan
from core.workspaces.recipients.rules import RecipientRules

# Longer texts identify nobody; normalizing them takes long.
MAX_IDENTITY_LENGTH = 254


def normalize_identity(text: str) -> str:
    """Return the address that this text identifies at sign-in: case, outer spaces and full-width forms are ignored."""
    return unicodedata.normalize("NFKC", text.strip()[:MAX_IDENTITY_LENGTH]).strip().lower()


class UserManager(BaseUserManager["User"]):
    """Identifies users by email address, regardless of case."""

    def create_user(self, *, email: str, password: str | None, **fields: Any) -> "User":
        user = self.model(email=normalize_identity(email), **fields)
        user.set_password(password)
        user.save(using=self._db)
        return user

    def create_superuser(self, email: str, password: str | None = None, **fields: Any) -> "User":
        return self.create_user(email=email, password=password, is_staff=True, is_superuser=True, **fields)

    def get_by_natural_key(self, username: str | None) -> "User":
        return self.get(email=normalize_identity(username or ""))


class User(AbstractBaseUser, PermissionsMixin):
    email = models.EmailField(unique=True)
    is_staff = models.BooleanField("staff", default=False)
    is_active = models.BooleanField("active", default=True)
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    # Set while two-factor authentication is on (core.workspaces.second_factor).
    second_factor_at = models.DateTimeField(null=True, blank=True, editable=False)
    # A code of LANGUAGES; empty until chosen: pages follow the browser.
    language = models.CharField(max_length=8, blank=True, db_default="", default="", editable=False)
    # An IANA name; empty until chosen: UTC, and the dashboard suggests the zone of the browser.
    time_zone = models.CharField(max_length=64, blank=True, db_default="", default="", editable=False)

    # Whether the permissions of staff come from the identity provider, and end with them (core.workspaces.identities).
    staff_from_claims = models.BooleanField("staff by the provider", default=False, db_default=False, editable=False)
    # Sessions that began earlier are over.
    sessions_ended_at = models.DateTimeField(null=True, blank=True, editable=False)

    objects = UserManager()

    USERNAME_FIELD = "email"
    REQUIRED_FIELDS = []

    def __str__(self) -> str:
        return self.email

    def get_session_auth_hash(self) -> str:
        """Bind sessions to the second factor: turning it on or off ends all other sessions, like a new password.

        Also to the end of all sessions that the identity provider requested.
        """
        return self._bind_session(super().get_session_auth_hash())

    def get_session_auth_fallback_hash(self) -> Iterator[str]:
        return (self._bind_session(known) for known in super().get_session_auth_fallback_hash())

    def _bind_session(self, session_hash: str) -> str:
        bound = f"{session_hash}:{self.second_factor_at.timestamp():.0f}" if self.second_factor_at else session_hash
        return f"{bound}:ended:{self.sessions_ended_at.timestamp():.6f}" if self.sessions_ended_at else bound


class Identity(models.Model):
    """The account of a person at an identity provider, by which they sign in to an account here.

    The address is no part of it: it may change at the provider (docs/decisions/0201).
    """

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="identities")
    issuer = models.CharField(max_length=255)
    subject = models.CharField(max_length=255)
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    last_sign_in_at = models.DateTimeField(null=True, editable=False)

    class Meta:
        verbose_name_plural = "identities"
        constraints = [
            models.UniqueConstraint(fields=["issuer", "subject"], name="one_account_per_identity"),
            models.UniqueConstraint(fields=["user", "issuer"], name="one_identity_per_issuer"),
        ]

    def __str__(self) -> str:
        return f"{self.subject} of {self.issuer}"


class AccountSession(models.Model):
    """The account, browser and client address of a session (console.dashboard.auth.sessions).

    The version before deletes sessions without it, so the database does not enforce the relation.
    """

    session = models.OneToOneField(
        Session, on_delete=models.CASCADE, primary_key=True, related_name="details", db_constraint=False
    )
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="sessions")
    address = models.GenericIPAddressField(null=True, editable=False)
    agent = models.CharField(max_length=300, db_default="", editable=False)
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    def __str__(self) -> str:
        return f"a session of {self.user}"


class UsedLogoutToken(models.Model):
    """The digest of a logout token of an identity provider, which is valid once, until the token expires."""

    digest = models.CharField(max_length=64, primary_key=True, editable=False)
    expires_at = models.DateTimeField(editable=False)

    def __str__(self) -> str:
        return self.digest


def plan_choices() -> list[tuple[str, Any]]:
    """Return the choices of Workspace.plan. As a function, choices are no part of migrations (docs/decisions/0166)."""
    return [(name, name.title()) for name in settings.PLANS]


class Workspace(models.Model):
    """The tenant: owns domains, emails, templates, webhooks and API keys."""

    id = IdField("ws_", primary_key=True)
    name = models.CharField(max_length=100)
    plan = models.CharField(max_length=16, choices=plan_choices)
    # Limits in place of those of the plan, by their names in PLANS_FILE; null is unlimited (core.workspaces.plans).
    own_limits = models.JSONField(default=dict, db_default=models.Value({}, models.JSONField()), blank=True)
    suspended_at = models.DateTimeField(
        null=True, blank=True, help_text="The time of the suspension; null if the workspace is not suspended."
    )
    suspended_reason = models.CharField(
        max_length=200,
        blank=True,
        help_text="The reason of the suspension, as the members see it; null without one.",
    )
    # The code and values of the reason, unless staff entered it.
    suspended_code = models.JSONField(null=True, editable=False)
    # Start of the last lifted suspension: reputation ignores earlier emails (docs/decisions/0065).
    judged_from = models.DateTimeField(null=True, editable=False)
    complaints_warned_at = models.DateTimeField(null=True, editable=False)
    bounces_warned_at = models.DateTimeField(null=True, editable=False)
    # False after open sign-up in production, until an owner confirms an email address (docs/decisions/0055).
    is_proven = models.BooleanField("address confirmed", default=True, db_default=True)
    group = models.CharField(
        max_length=100,
        blank=True,
        db_default="",
        default="",
        help_text="The group of the workspace, whose management keys can manage it; empty without one.",
    )
    # Set while the workspace is deleted but can be restored (core.workspaces.deletion).
    deletes_at = models.DateTimeField(
        "data deleted at",
        null=True,
        blank=True,
        editable=False,
        help_text="The time at which the data of a deleted workspace is deleted; null if the workspace is not deleted.",
    )
    # RecipientRules as JSON; null without any.
    recipient_rules = models.JSONField(null=True, editable=False)
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    users = models.ManyToManyField(User, through="Membership", related_name="workspaces")

    def __str__(self) -> str:
        return self.name

    @cached_property
    def limits(self) -> Plan:
        """The limits of its plan, or its own ones."""
        plan = find_plan(self.plan, settings.PLANS, default=settings.DEFAULT_PLAN)
        return plan.with_limits(self.own_limits)

    @cached_property
    def rules(self) -> RecipientRules | None:
        return RecipientRules.from_json(self.recipient_rules)

    @property
    def is_suspended(self) -> bool:
        return self.suspended_at is not None

    @property
    def is_deleted(self) -> bool:
        return self.deletes_at is not None

    def lock(self) -> None:
        """Lock the row until the transaction ends.

        Rows that refer to it, such as audit entries, can still be inserted; their foreign keys would wait for a FOR
        UPDATE.
        """
        Workspace.objects.select_for_update(no_key=True).only("id").get(id=self.id)


class Membership(models.Model):
    class Role(models.TextChoices):
        OWNER = "owner"
        MEMBER = "member"

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="memberships")
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="memberships")
    # The one that counts: the higher of the next two.
    role = models.CharField(max_length=16, choices=Role.choices, default=Role.MEMBER)
    # The role by the claims of the last sign-in with the identity provider; empty if they give none.
    claimed_role = models.CharField(
        max_length=16, choices=Role.choices, blank=True, db_default="", default="", editable=False
    )
    # Given by people, while claimed_role is set; empty if the membership exists by the claims alone.
    invited_role = models.CharField(
        max_length=16, choices=Role.choices, blank=True, db_default="", default="", editable=False
    )
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["workspace", "user"], name="one_membership_each")]

    def __str__(self) -> str:
        return f"{self.user} in {self.workspace}"


class Invitation(models.Model):
    """An open invitation. Accepting or withdrawing it deletes the row, so that the link works once."""

    id = IdField("inv_", primary_key=True)
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="invitations")
    email = models.EmailField()
    role = models.CharField(max_length=16, choices=Membership.Role.choices, default=Membership.Role.MEMBER)
    invited_by = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    expires_at = models.DateTimeField(editable=False)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["workspace", "email"], name="one_invitation_each")]
        indexes = [models.Index(fields=["email"], name="invitation_email")]

    def __str__(self) -> str:
        return f"{self.email} into {self.workspace}"


class SecondFactor(models.Model):
    """The TOTP secret of an account (RFC 6238), active while the account's second_factor_at is set.

    last_step is the newest 30 s step whose code was used: each code is accepted once.
    """

    user = models.OneToOneField(User, on_delete=models.CASCADE, primary_key=True, related_name="second_factor")
    sealed_secret = models.TextField(editable=False)
    last_step = models.BigIntegerField(default=0, editable=False)

    def __str__(self) -> str:
        return f"the second factor of {self.user}"


class RecoveryCode(models.Model):
    """A recovery code for a lost phone, stored as a keyed hash and deleted when used."""

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="recovery_codes")
    code_hash = models.CharField(max_length=100, editable=False)

    def __str__(self) -> str:
        return f"a recovery code of {self.user}"


def audit_actions() -> list[tuple[str, Any]]:
    """Return the choices of AuditEntry.act."""
    return translated_choices(AuditEntry.Action)


class AuditEntry(models.Model):
    """One action on a workspace with actor, time and client address: created by core.workspaces.audit, never changed.

    Entries without a workspace are about the installation; only staff see them.
    actor and about are stored as text, so that entries stay readable after the objects are deleted.
    about_code: the code and values of about, unless it is a name.
    """

    class Action(models.TextChoices):
        KEY_CREATED = "key_created", "API key created"
        KEY_REVOKED = "key_revoked", "API key revoked"
        DOMAIN_ADDED = "domain_added", "Domain added"
        DOMAIN_DELETED = "domain_deleted", "Domain deleted"
        DOMAIN_CHANGED = "domain_changed", "Domain changed"
        DOMAIN_ROTATED = "domain_rotated", "Domain key rotated"
        DOMAIN_VERIFIED = "domain_verified", "Domain verified"
        DOMAIN_RECORDS_SHARED = "domain_records_shared", "Link to DNS records created"
        DOMAIN_RECORDS_UNSHARED = "domain_records_unshared", "Link to DNS records revoked"
        TEMPLATE_CREATED = "template_created", "Template created"
        TEMPLATE_CHANGED = "template_changed", "Template changed"
        TEMPLATE_DELETED = "template_deleted", "Template deleted"
        WEBHOOK_CREATED = "webhook_created", "Webhook created"
        WEBHOOK_CHANGED = "webhook_changed", "Webhook changed"
        WEBHOOK_DELETED = "webhook_deleted", "Webhook deleted"
        WEBHOOK_ROTATED = "webhook_rotated", "Webhook secret rotated"
        STREAM_CREATED = "stream_created", "Stream created"
        STREAM_CHANGED = "stream_changed", "Stream changed"
        STREAM_ARCHIVED = "stream_archived", "Stream archived"
        STREAM_UNARCHIVED = "stream_unarchived", "Stream unarchived"
        STREAM_PAUSED = "stream_paused", "Stream paused"
        STREAM_RESUMED = "stream_resumed", "Stream resumed"
        RULES_CHANGED = "rules_changed", "Recipient rules changed"
        ALERT_CREATED = "alert_created", "Alert created"
        ALERT_CHANGED = "alert_changed", "Alert changed"
        ALERT_DELETED = "alert_deleted", "Alert deleted"
        SUPPRESSION_ADDED = "suppression_added", "Suppression added"
        SUPPRESSION_REMOVED = "suppression_removed", "Suppression removed"
        ROUTE_CREATED = "route_created", "Route created"
        ROUTE_CHANGED = "route_changed", "Route changed"
        ROUTE_DELETED = "route_deleted", "Route deleted"
        SENDER_BLOCKED = "sender_blocked", "Sender blocked"
        SENDER_UNBLOCKED = "sender_unblocked", "Sender unblocked"
        INBOUND_BYPASSED = "inbound_bypassed", "Received email released"
        INBOUND_REREAD = "inbound_reread", "Received email read again"
        INBOUND_DELETED = "inbound_deleted", "Received email deleted"
        INBOUND_FORWARDED = "inbound_forwarded", "Received email forwarded"
        INBOUND_ANSWERED = "inbound_answered", "Received email answered"
        FORWARD_CONFIRMED = "forward_confirmed", "Forwarding confirmed"
        FORWARD_REFUSED = "forward_refused", "Forwarding ended"
        MEMBER_INVITED = "member_invited", "Member invited"
        INVITATION_WITHDRAWN = "invitation_withdrawn", "Invitation revoked"
        MEMBER_JOINED = "member_joined", "Member joined"
        MEMBER_ROLE_CHANGED = "member_role", "Member's role changed"
        MEMBER_REMOVED = "member_removed", "Member removed"
        MEMBER_LEFT = "member_left", "Member left"
        LAST_OWNER_KEPT = "member_last_owner", "Last owner kept"
        SIGNED_IN = "signed_in", "Signed in"
        SIGN_IN_REFUSED = "sign_in_refused", "Sign-in refused"
        SIGN_IN_LINK_CREATED = "sign_in_link", "Sign-in link created"
        SESSION_ENDED = "sign_out_session", "Session ended"
        OTHER_SESSIONS_ENDED = "sign_out_others", "All other sessions ended"
        SIGNED_OUT_BY_PROVIDER = "sign_out_by_provider", "Signed out by the provider"
        IDENTITY_LINKED = "identity_linked", "Identity linked"
        STAFF_CHANGED = "staff_changed", "Staff permission changed"
        WORKSPACE_CREATED = "workspace_created", "Workspace created"
        ADDRESS_CONFIRMED = "workspace_proven", "Address confirmed"
        WORKSPACE_SUSPENDED = "workspace_suspended", "Workspace suspended"
        SUSPENSION_LIFTED = "suspension_lifted", "Suspension lifted"
        OWNERS_WARNED = "owners_warned", "Owners warned"
        PLAN_CHANGED = "plan_changed", "Plan changed"
        WORKSPACE_RENAMED = "workspace_renamed", "Workspace renamed"
        WORKSPACE_DELETED = "workspace_deleted", "Workspace deleted"
        WORKSPACE_RESTORED = "workspace_restored", "Workspace restored"
        EMAILS_SEARCHED = "emails_searched", "Emails searched"
        SENDING_PAUSED = "sending_paused", "Sending paused"
        SENDING_RESUMED = "sending_resumed", "Sending resumed"
        TRANSPORT_DRAINED = "transport_drained", "Transport drained"
        TRANSPORT_RESUMED = "transport_resumed", "Transport resumed"
        RECEIVER_SUSPENDED = "receiver_suspended", "Sending to a receiver suspended"
        RECEIVER_RELEASED = "receiver_released", "Sending to a receiver continued"
        RECEIVER_PINNED = "receiver_pinned", "Rate of a receiver set"
        RECEIVER_UNPINNED = "receiver_unpinned", "Rate of a receiver learnt again"
        EMAIL_VIEWED = "email_looked_at", "Email viewed"
        EMAIL_RESENT = "email_resent", "Email sent again"
        EMAIL_CANCELLED = "email_cancelled", "Email cancelled"
        EMAIL_APPROVED = "email_approved", "Email approved"
        EMAIL_REJECTED = "email_rejected", "Email rejected"
        ERASURE_REQUESTED = "erasure_requested", "Erasure requested"
        ADDRESS_ERASED = "address_erased", "Address erased"
        EXPORT_REQUESTED = "export_requested", "Export of a person requested"
        EXPORT_DOWNLOADED = "export_downloaded", "Export of a person downloaded"

    class ActorKind(models.TextChoices):
        PERSON = "person"
        KEY = "key", "API key"
        STAFF = "staff"
        SERVICE = "service"

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, null=True, related_name="audit", db_index=False)
    act = models.CharField(max_length=24, choices=audit_actions, help_text="The recorded action.")
    about = models.CharField(max_length=320, blank=True, help_text="The object of the action.")
    about_code = models.JSONField(null=True)
    actor_kind = models.CharField(max_length=8, choices=ActorKind.choices, help_text="The kind of the actor.")
    actor = models.CharField(max_length=320, blank=True, help_text="The person, key or program that acted.")
    address = models.GenericIPAddressField(null=True, help_text="The IP address of the actor.")
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        verbose_name = "audit entry"
        verbose_name_plural = "audit log"
        indexes = [
            models.Index(fields=["workspace", "-id"], name="audit_newest"),
            models.Index(fields=["workspace", "act", "-id"], name="audit_by_action"),
            models.Index(fields=["created_at"], name="audit_age"),
        ]

    def __str__(self) -> str:
        return f"{self.get_act_display()} {self.about}".strip()

    @property
    def details(self) -> str:
        """`about` in the active language; in English if an earlier version wrote it."""
        return translate(restore_text(self.about_code, text=self.about))


class SecretKey(models.Model):
    """A key of the API or of the management API. Its secret is shown once and stored as a keyed hash.

    See core.workspaces.api_key_secrets.
    """

    name = models.CharField(max_length=100)
    secret_hash = models.CharField(max_length=100, editable=False)
    last_four = models.CharField(max_length=4, editable=False, help_text="The last four characters of the key.")
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    expires_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(
        null=True, blank=True, editable=False, help_text="The time at which it was revoked; null if it was not."
    )
    last_used_at = models.DateTimeField(
        null=True,
        blank=True,
        editable=False,
        help_text="The time of its last use, to the minute; null if it was never used.",
    )

    class Meta:
        abstract = True

    def __str__(self) -> str:
        return f"{self.name} (…{self.last_four})"

    @property
    def prefix(self) -> str:
        raise NotImplementedError

    @property
    def label(self) -> str:
        """A label that identifies the key without its secret."""
        return f"{self.name} ({self.prefix}…{self.last_four})"

    @property
    def is_revoked(self) -> bool:
        return self.revoked_at is not None


# The condition of keys whose time is over.
IS_EXPIRED = Q(expires_at__lte=Now())
# The value of `approval` of a key or a stream whose emails wait for approval.
APPROVAL_REQUIRED = "required"


def key_scopes() -> list[tuple[str, Any]]:
    """Return the choices of ApiKey.scope."""
    return translated_choices(ApiKey.Scope)


class ApiKey(SecretKey):
    """A key of one workspace."""

    class Scope(models.TextChoices):
        FULL_ACCESS = "full_access", "Full access"
        SENDING_ACCESS = "sending_access", "Sending access"
        SENDING_ONLY = "sending_only", "Sending only"
        READ_ONLY = "read_only", "Read only"
        APPROVALS = "approvals", "Approvals"
        WORKSPACE_ADMIN = "workspace_admin", "Workspace administration"

    # Those of test keys and of keys with limits to domains and templates.
    SENDING_SCOPES = frozenset({Scope.SENDING_ACCESS, Scope.SENDING_ONLY})

    id = IdField("key_", primary_key=True)
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="api_keys")
    scope = models.CharField(max_length=16, choices=key_scopes)
    # Empty for a key that no member created.
    created_by = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, editable=False, related_name="+")
    # KeyLimits as JSON.
    restrictions = models.JSONField(default=dict, db_default=Value({}, models.JSONField()), blank=True, editable=False)
    # RecipientRules as JSON; null without any.
    recipient_rules = models.JSONField(null=True, editable=False)

    class Meta:
        verbose_name = "API key"
        verbose_name_plural = "API keys"

    @cached_property
    def rules(self) -> RecipientRules | None:
        return RecipientRules.from_json(self.recipient_rules)

    @cached_property
    def limits(self) -> KeyLimits:
        return replace(KeyLimits.from_json(self.restrictions), key_id=self.id, rules=self.rules)

    @property
    def is_test(self) -> bool:
        return self.limits.is_test

    @property
    def approval(self) -> str | None:
        """`required` if the emails of the key wait for approval, as responses show it."""
        return APPROVAL_REQUIRED if self.limits.needs_approval else None

    @property
    def prefix(self) -> str:
        return "pr_test_" if self.is_test else "pr_"


class Usage(models.Model):
    """Quota units that a workspace used in one calendar month, UTC."""

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="usage", db_index=False)
    month = models.DateField()
    used = models.PositiveBigIntegerField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["workspace", "month"], name="one_usage_a_month")]

    def __str__(self) -> str:
        return f"{self.month:%Y-%m}: {self.used}"
