"""Signing in with the identity provider: the way there and the way back (docs/decisions/0200)."""

from collections.abc import Callable
from functools import wraps

from django.conf import settings
from django.contrib.auth import logout
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse

from console.dashboard.auth.oidc.accounts import LinkNeeded, SignInDenied, account_for_site
from console.dashboard.auth.oidc.claims import Person, read_person
from console.dashboard.auth.oidc.errors import ProviderRefused, ProviderUnavailable
from console.dashboard.auth.oidc.linking import begin_link, link_page
from console.dashboard.auth.oidc.metrics import count_sign_in
from console.dashboard.auth.oidc.outcomes import failure_page, message_page
from console.dashboard.auth.oidc.sign_out import session_record
from console.dashboard.auth.rendering import PageRenderer
from console.dashboard.auth.session_policy import PROVIDER_KEY
from console.dashboard.auth.signin import continue_sign_in, local_path
from console.dashboard.auth.throttle import PROVIDER, throttle_network, throttled_message
from core.workspaces.access_rules import InvalidRolesFile, grants_of, read_rules
from core.workspaces.models import User

SiteView = Callable[[HttpRequest, PageRenderer], HttpResponse]


def _provider_view(view: SiteView) -> SiteView:
    """Answer 404 without a provider, 429 for too many requests of a network, and failures with a page."""

    @wraps(view)
    def guarded(request: HttpRequest, page: PageRenderer) -> HttpResponse:
        if not settings.OIDC_ISSUER:
            raise Http404
        wait_seconds = throttle_network(request, PROVIDER)
        if wait_seconds:
            return message_page(request, page, throttled_message(wait_seconds), status=429)
        try:
            return view(request, page)
        except (SignInDenied, ProviderUnavailable, ProviderRefused, InvalidRolesFile) as error:
            return failure_page(request, page, error)

    return guarded


@_provider_view
def start(request: HttpRequest, page: PageRenderer) -> HttpResponse:
    """Redirect to the provider. With ?link, the account there gets linked to the one that is signed in."""
    from console.dashboard.auth.oidc.provider import Provider  # noqa: PLC0415 - see console.dashboard.auth.oidc.errors

    linked_user = request.user.pk if "link" in request.GET else None
    next_url = local_path(request.GET.get("next", ""))
    return redirect(Provider().start_sign_in(request, _redirect_uri(request), next=next_url, link=linked_user))


@_provider_view
def callback(request: HttpRequest, page: PageRenderer) -> HttpResponse:
    """Sign in the person that the provider sends back, or begin to link their account."""
    from console.dashboard.auth.oidc.provider import Provider  # noqa: PLC0415 - see console.dashboard.auth.oidc.errors

    provider, rules = Provider(), read_rules()
    kept, token = provider.finish_sign_in(request, _redirect_uri(request))
    person = read_person(provider, token, rules=rules)
    if kept["link"] is not None:
        return _begin_requested_link(request, person, user_id=kept["link"])
    # A sign-in of another person is no action of the one whose session it was.
    logout(request)
    try:
        user = account_for_site(person, grants_of(rules, person.claims), site=request.current_app)
    except LinkNeeded as needed:
        return begin_link(request, needed.user, person)
    count_sign_in("ok")
    home = reverse("admin:index", current_app=request.current_app)
    record = session_record(token, user, has_mfa=person.has_mfa)
    return continue_sign_in(request, user, next_url=kept["next"] or home, origin={PROVIDER_KEY: record})


link = _provider_view(link_page)


def _begin_requested_link(request: HttpRequest, person: Person, *, user_id: int) -> HttpResponse:
    """Continue with linking, which began in the settings of an account."""
    user = request.user
    if not isinstance(user, User) or user.pk != user_id:
        raise ProviderRefused("another account signed in meanwhile")
    return begin_link(request, user, person)


def _redirect_uri(request: HttpRequest) -> str:
    return f"{settings.PUBLIC_URL}{reverse('admin:oidc_callback', current_app=request.current_app)}"
