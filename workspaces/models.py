"""Who uses the service: people, their workspaces, and the keys and quota of each workspace."""

from typing import Any

from django.contrib.auth.models import AbstractBaseUser, BaseUserManager, PermissionsMixin
from django.db import models
from django.db.models.functions import Now
from django.utils.functional import cached_property

from keys.fields import IdField
from workspaces.plans import PLANS, Plan


class UserManager(BaseUserManager["User"]):
    """Accounts are known by their address, compared without case."""

    def create_user(self, *, email: str, password: str | None, **fields: Any) -> "User":
        user = self.model(email=email.strip().lower(), **fields)
        user.set_password(password)
        user.save(using=self._db)
        return user

    def create_superuser(self, email: str, password: str | None = None, **fields: Any) -> "User":
        return self.create_user(email=email, password=password, is_staff=True, is_superuser=True, **fields)

    def get_by_natural_key(self, username: str | None) -> "User":
        return self.get(email=(username or "").strip().lower())


class User(AbstractBaseUser, PermissionsMixin):
    email = models.EmailField(unique=True)
    is_staff = models.BooleanField("staff", default=False, help_text="May sign in to the staff admin.")
    is_active = models.BooleanField("active", default=True)
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    objects = UserManager()

    USERNAME_FIELD = "email"
    REQUIRED_FIELDS = []

    def __str__(self) -> str:
        return self.email


class Workspace(models.Model):
    """What everything else belongs to; an API key acts within one."""

    PLAN_CHOICES = [(name, name.title()) for name in PLANS]

    id = IdField("ws_", primary_key=True)
    name = models.CharField(max_length=100)
    plan = models.CharField(max_length=16, choices=PLAN_CHOICES)
    suspended_at = models.DateTimeField(null=True, blank=True)
    suspended_reason = models.CharField(max_length=200, blank=True)
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    users = models.ManyToManyField(User, through="Membership", related_name="workspaces")

    def __str__(self) -> str:
        return self.name

    @cached_property
    def limits(self) -> Plan:
        return PLANS[self.plan]

    @property
    def is_suspended(self) -> bool:
        return self.suspended_at is not None


class Membership(models.Model):
    class Role(models.TextChoices):
        OWNER = "owner"
        MEMBER = "member"

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="memberships")
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="memberships")
    role = models.CharField(max_length=16, choices=Role.choices, default=Role.MEMBER)
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["workspace", "user"], name="one_membership_each")]

    def __str__(self) -> str:
        return f"{self.user} in {self.workspace}"


class ApiKey(models.Model):
    """A key: its secret is shown once and kept as a keyed hash (workspaces.secrets)."""

    class Scope(models.TextChoices):
        FULL_ACCESS = "full_access", "Full access"
        SENDING_ACCESS = "sending_access", "Sending access"
        READ_ONLY = "read_only", "Read only"

    id = IdField("key_", primary_key=True)
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="api_keys")
    name = models.CharField(max_length=100)
    scope = models.CharField(max_length=16, choices=Scope.choices)
    secret_hash = models.CharField(max_length=100, editable=False)
    last_four = models.CharField(max_length=4, editable=False)
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    expires_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True, editable=False)
    last_used_at = models.DateTimeField(null=True, blank=True, editable=False)

    class Meta:
        verbose_name = "API key"
        verbose_name_plural = "API keys"

    def __str__(self) -> str:
        return f"{self.name} (…{self.last_four})"

    @property
    def is_revoked(self) -> bool:
        return self.revoked_at is not None


class Usage(models.Model):
    """Units of quota that a workspace took in one calendar month, UTC."""

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="usage", db_index=False)
    month = models.DateField()
    used = models.PositiveBigIntegerField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["workspace", "month"], name="one_usage_a_month")]

    def __str__(self) -> str:
        return f"{self.month:%Y-%m}: {self.used}"
