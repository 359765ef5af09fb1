"""Checks of the identity provider: its discovery document, its clock, the registered URLs, and the roles file."""

import time
from email.utils import parsedate_to_datetime
from http import HTTPStatus

from django.conf import settings

from config.doctor.diagnosis import Diagnosis, DoctorOptions, failed, ok, skip, warning
from console.dashboard.auth.oidc.errors import CLOCK_SKEW_SECONDS, ProviderRefused, ProviderUnavailable
from console.dashboard.auth.oidc.provider import Provider
from core.workspaces.access_rules import read_rules
from core.workspaces.deletion import existing_workspaces

NOT_CONFIGURED = skip("OIDC_ISSUER is not set: people sign in with passwords.")
SITES = ("dashboard", "admin")


def check_discovery(_: DoctorOptions) -> Diagnosis:
    if not settings.OIDC_ISSUER:
        return NOT_CONFIGURED
    try:
        Provider().check_documents()
    except ProviderUnavailable as error:
        return failed(
            f"{settings.OIDC_ISSUER} cannot be reached: {error}",
            remedy="Correct OIDC_ISSUER, or open the way to the provider. If its address is private, set "
            "OIDC_ALLOW_PRIVATE_NETWORKS=true.",
        )
    except ProviderRefused as error:
        return failed(
            f"{settings.OIDC_ISSUER} is not usable: {error}",
            remedy="Set OIDC_ISSUER to the issuer as its discovery document writes it.",
        )
    return ok(f"{settings.OIDC_ISSUER} has a discovery document and keys.")


def check_clock(_: DoctorOptions) -> Diagnosis:
    try:
        sent_at = parsedate_to_datetime(Provider().probe_discovery().headers.get("Date", ""))
    except ValueError:
        return ok("The provider does not tell the time.")
    seconds = round(abs(time.time() - sent_at.timestamp()))
    if seconds > CLOCK_SKEW_SECONDS:
        return failed(
            f"The clock of the provider differs by {seconds} seconds, so its tokens are refused.",
            remedy="Synchronize the clocks of both servers with NTP.",
        )
    return ok("The clock of the provider agrees with this one.")


def check_redirects(_: DoctorOptions) -> Diagnosis:
    uris = {site: f"{settings.PUBLIC_URL}/{site}/oidc/callback" for site in SITES}
    responses = {site: Provider().probe_redirect(uri) for site, uri in uris.items()}
    remedy = f"Register {' and '.join(uris.values())} as redirect URIs of {settings.OIDC_CLIENT_ID} at the provider."
    refused = [uris[site] for site, response in responses.items() if response.status_code >= HTTPStatus.BAD_REQUEST]
    if refused:
        return failed(f"The provider refuses a sign-in that leads to {refused[0]}.", remedy=remedy)
    if all(response.headers.get("Location", "").startswith(uris[site]) for site, response in responses.items()):
        return ok("The provider leads back to both sign-in pages.")
    return warning("The provider does not say whether the redirect URIs are registered.", remedy=remedy)


def check_roles(_: DoctorOptions) -> Diagnosis:
    if not settings.OIDC_ROLES_FILE:
        return skip("OIDC_ROLES_FILE is not set: claims give no roles.")
    named = {rule.workspace_id for rule in read_rules() if rule.workspace_id}
    missing = sorted(named - {*existing_workspaces().filter(id__in=named).values_list("id", flat=True)})
    if missing:
        return failed(
            f"The roles file names workspaces that do not exist: {', '.join(missing)}.",
            remedy="Correct the ids in OIDC_ROLES_FILE. /admin/workspaces/workspace/ shows them.",
        )
    return ok(f"The roles file has {len(read_rules())} entries.")
