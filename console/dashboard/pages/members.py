"""Members of the workspace: list and leave; owners also invite, change roles and remove."""

from collections.abc import Callable
from typing import Any

from django import forms
from django.conf import settings
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import QuerySet
from django.db.models.functions import Now
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import URLPattern
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_POST
from unfold.widgets import UnfoldAdminEmailInputWidget, UnfoldAdminSelectWidget

from console.dashboard.auth.current_workspace import current_workspace, is_owner
from console.dashboard.auth.throttle import INVITE, throttle_account, throttle_network, throttled_message
from console.dashboard.ui.scoping import ScopedAdmin
from console.system_mail.invitations import send_invitation
from core.workspaces.members import (
    AlreadyMember,
    LastOwner,
    TooManyInvitations,
    change_role,
    invite_member,
    leave_workspace,
    remove_member,
    withdraw_invitation,
)
from core.workspaces.models import Invitation, Membership, User, Workspace

ROLES = [
    (Membership.Role.MEMBER.value, gettext_lazy("Member: full access except members and audit log")),
    (Membership.Role.OWNER.value, gettext_lazy("Owner: full access")),
]
LAST_OWNER = gettext_lazy("A workspace must have at least one owner. Make another member an owner first.")


class RoleForm(forms.Form):
    role = forms.ChoiceField(label=gettext_lazy("Role"), choices=ROLES, widget=UnfoldAdminSelectWidget)


class InviteForm(RoleForm):
    email = forms.EmailField(
        label=gettext_lazy("Email address"),
        max_length=254,
        widget=UnfoldAdminEmailInputWidget({"autofocus": True, "autocomplete": "off"}),
    )
    field_order = ("email", "role")

    def clean_email(self) -> str:
        return str(self.cleaned_data["email"]).lower()

    def invite(self, workspace: Workspace, *, by: User) -> Invitation | None:
        """Return the invitation, with its email queued in the same transaction; None, with a form error, if refused."""
        try:
            with transaction.atomic():
                invitation = invite_member(workspace, **self.cleaned_data, by=by)
                send_invitation(invitation)
        except AlreadyMember:
            self.add_error("email", _("This person is already a member."))
            return None
        except TooManyInvitations:
            self.add_error(None, _("Too many pending invitations. Revoke some first."))
            return None
        return invitation


class MemberSection(ScopedAdmin):
    slug, title = "members", gettext_lazy("Members")
    empty = ("group", "", "")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Membership]:
        return super().get_queryset(request).select_related("user", "workspace").order_by("user__email")

    def routes(self) -> list[URLPattern]:
        return [
            self.route("invite/", "add", _owners_only(self.invite_view)),
            self.route("withdraw/", "withdraw", require_POST(_owners_only(self.withdraw_view))),
            self.route("leave/", "leave", self.leave_view),
            self.route("<str:object_id>/role/", "role", _owners_only(self.role_view)),
            self.route("<str:object_id>/remove/", "remove", _owners_only(self.remove_view)),
        ]

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        workspace = current_workspace(request)
        return self.page(
            request,
            "dashboard/members/list.html",
            title=self.title,
            members=self.get_queryset(request),
            invitations=workspace.invitations.filter(expires_at__gt=Now()).order_by("-created_at"),
            is_owner=is_owner(request),
            me=request.user,
            provider_label=settings.OIDC_LABEL,
        )

    def invite_view(self, request: HttpRequest) -> HttpResponse:
        workspace = current_workspace(request)
        if not workspace.is_proven or workspace.is_suspended or workspace.is_deleted:
            raise PermissionDenied
        form = InviteForm(request.POST or None)
        if form.is_valid() and not self._is_throttled(request, form, workspace):
            invitation = form.invite(workspace, by=_user(request))
            if invitation:
                messages.success(request, _("Invitation sent to %(address)s.") % {"address": invitation.email})
                return redirect(self.list_url)
        return self.page(request, "dashboard/members/invite.html", title=_("Invite member"), form=form)

    def withdraw_view(self, request: HttpRequest) -> HttpResponse:
        invitations = current_workspace(request).invitations
        try:
            invitation = invitations.get(id=request.POST.get("invitation", ""))
        except (Invitation.DoesNotExist, ValueError) as error:
            raise Http404 from error
        withdraw_invitation(invitation)
        messages.success(request, _("The invitation for %(address)s was revoked.") % {"address": invitation.email})
        return redirect(self.list_url)

    def role_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        member = self.find(request, object_id)
        form = RoleForm(request.POST or None, initial={"role": member.role})
        if form.is_valid():
            return self._change_members(
                request, lambda: change_role(member, role=form.cleaned_data["role"]), _("The role was changed.")
            )
        title = _("Role of %(address)s") % {"address": member.user.email}
        return self.page(request, "dashboard/members/role.html", title=title, member=member, form=form)

    def remove_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        member = self.find(request, object_id)
        if request.method != "POST":
            title = _("Remove %(address)s") % {"address": member.user.email}
            return self.page(request, "dashboard/members/remove.html", title=title, member=member)
        return self._change_members(
            request,
            lambda: remove_member(member),
            _("%(address)s was removed.") % {"address": member.user.email},
        )

    def leave_view(self, request: HttpRequest) -> HttpResponse:
        member = self.get_queryset(request).get(user=_user(request))
        if request.method != "POST":
            return self.page(request, "dashboard/members/leave.html", title=_("Leave workspace"), member=member)
        text = _("You left %(workspace)s.") % {"workspace": member.workspace.name}
        return self._change_members(request, lambda: leave_workspace(member), text, next_url="/dashboard/")

    def _change_members(
        self, request: HttpRequest, action: Callable[[], None], text: str, *, next_url: str = ""
    ) -> HttpResponse:
        try:
            action()
        except LastOwner:
            messages.error(request, LAST_OWNER)
            return redirect(self.list_url)
        messages.success(request, text)
        return redirect(next_url or self.list_url)

    def _is_throttled(self, request: HttpRequest, form: InviteForm, workspace: Workspace) -> bool:
        wait_seconds = throttle_network(request, INVITE) or throttle_account(request, INVITE, account=workspace.id)
        if wait_seconds:
            form.add_error(None, throttled_message(wait_seconds))
        return bool(wait_seconds)


def _owners_only(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """Refuse members who are not owners. A row of another workspace is still not found."""

    def guarded(request: HttpRequest, *arguments: Any, **named: Any) -> HttpResponse:
        if not is_owner(request):
            raise PermissionDenied
        return view(request, *arguments, **named)

    return guarded


def _user(request: HttpRequest) -> User:
    assert isinstance(request.user, User)
    return request.user
