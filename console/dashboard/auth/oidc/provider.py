"""The identity provider: Authlib's client for it, with the guard of outgoing connections and cached documents.

Authlib checks signatures and claims. The steps that it leaves to its caller are here: the algorithms, the issuer of the
discovery document and of the response (RFC 9207), the audience, and how often keys are fetched (docs/decisions/0200).
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

from authlib.integrations.base_client import OAuthError
from authlib.integrations.django_client import DjangoIntegration, DjangoOAuth2App
from authlib.integrations.requests_client import OAuth2Session
from authlib.oauth2.claims import JWTClaims
from django.conf import settings
from django.http import HttpRequest
from joserfc import jwt
from joserfc.errors import InvalidKeyIdError, JoseError
from joserfc.jwk import KeySet
from joserfc.jws import JWSRegistry
from requests import RequestException, Response

from console.dashboard.auth.oidc.errors import CLOCK_SKEW_SECONDS, ProviderRefused, ProviderUnavailable
from core.lib.network.address_guard import Guard
from core.lib.network.target_urls import DEFAULT_PORTS, UrlRules
from core.lib.ttl_cache import TTLCache

NAME = "provider"
# For all requests of one page.
TIMEOUT_SECONDS = 5.0
CACHE_SECONDS = 3600.0
# Keys are fetched for an unknown key id at most this often.
REFETCH_SECONDS = 60.0
# Asymmetric ones only: with a shared secret or none, a public key or nobody could sign.
ALGORITHMS = [f"{kind}{bits}" for kind in ("RS", "PS", "ES") for bits in (256, 384, 512)] + ["EdDSA", "Ed25519"]
REQUIRED_URLS = ("authorization_endpoint", "token_endpoint", "jwks_uri")
URLS = (*REQUIRED_URLS, "userinfo_endpoint", "end_session_endpoint")
# Other members would become arguments of Authlib's session.
OTHER_MEMBERS = (
    "issuer",
    "scopes_supported",
    "token_endpoint_auth_methods_supported",
    "authorization_response_iss_parameter_supported",
)
PENDING_KEY = "pending_sign_ins"
PENDING_SECONDS = 600
MAX_PENDING = 5


# Caches by URL.
_documents: TTLCache[str, dict[str, Any]] = TTLCache(ttl_seconds=CACHE_SECONDS)
_refetched: TTLCache[str, bool] = TTLCache(ttl_seconds=REFETCH_SECONDS)
# Half of the threads of a web process, so that the others answer while the provider hangs.
_slots = threading.BoundedSemaphore(2)


def forget_documents() -> None:
    """Empty the caches of this process. For tests."""
    _documents.clear()
    _refetched.clear()


class PendingSignIns(DjangoIntegration):
    """Sign-ins that began in a session, by state: at most MAX_PENDING, each for PENDING_SECONDS and one response."""

    def get_state_data(self, session: Any, state: str | None) -> dict[str, Any] | None:
        entry = session.get(PENDING_KEY, {}).get(state)
        return entry if entry and time.time() - entry["at"] < PENDING_SECONDS else None

    def set_state_data(self, session: Any, state: str, data: dict[str, Any]) -> None:
        kept = [*session.get(PENDING_KEY, {}).items()][1 - MAX_PENDING :]
        session[PENDING_KEY] = {**dict(kept), state: {**data, "at": time.time()}}

    def clear_state_data(self, session: Any, state: str | None) -> None:
        session[PENDING_KEY] = {known: data for known, data in session.get(PENDING_KEY, {}).items() if known != state}


class Provider(DjangoOAuth2App):
    """The provider of OIDC_ISSUER, for the requests of one page: they end within TIMEOUT_SECONDS."""

    client_cls = OAuth2Session

    def __init__(self) -> None:
        super().__init__(
            PendingSignIns(NAME),
            NAME,
            client_id=settings.OIDC_CLIENT_ID,
            client_secret=settings.OIDC_CLIENT_SECRET,
            server_metadata_url=settings.OIDC_ISSUER.rstrip("/") + "/.well-known/openid-configuration",
            client_kwargs={"code_challenge_method": "S256"},
            user_agent="Postrider",
        )
        self.server_metadata: dict[str, Any] = {}
        self._deadline = time.monotonic() + TIMEOUT_SECONDS

    @property
    def issuer(self) -> str:
        return str(self.load_server_metadata()["issuer"])

    def start_sign_in(self, request: HttpRequest, redirect_uri: str, **kept: Any) -> str:
        """Return the URL of the provider that signs in. kept: returned by `finish_sign_in`.

        Raises ProviderUnavailable, ProviderRefused.
        """
        with _translated_errors():
            supported = self.load_server_metadata().get("scopes_supported") or ["groups"]
            scope = " ".join(name for name in settings.OIDC_SCOPES.split() if name != "groups" or name in supported)
            started = self.create_authorization_url(redirect_uri, scope=scope)
        url = str(started.pop("url"))
        self.save_authorize_data(request, redirect_uri=redirect_uri, **kept, **started)
        return url

    def finish_sign_in(self, request: HttpRequest, redirect_uri: str) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the kept values, and Authlib's token with the verified claims as `userinfo`.

        Raises ProviderUnavailable, ProviderRefused.
        """
        pending = self.framework.get_state_data(request.session, request.GET.get("state"))
        if pending is None or pending["redirect_uri"] != redirect_uri:
            raise ProviderRefused("unknown state")
        with _translated_errors():
            self._check_response_issuer(request)
            token = self.authorize_access_token(
                request, leeway=CLOCK_SKEW_SECONDS, claims_options=self._claims_options()
            )
            if not token.get("userinfo"):
                raise ProviderRefused("no ID token")
        return pending, dict(token)

    def read_userinfo(self, token: dict[str, Any]) -> dict[str, Any]:
        """Return the claims of the userinfo endpoint; none if the provider has no such endpoint.

        Raises ProviderUnavailable, ProviderRefused.
        """
        if not self.load_server_metadata().get("userinfo_endpoint"):
            return {}
        with _translated_errors():
            claims = dict(self.userinfo(token=token))
        if claims.get("sub") != token["userinfo"]["sub"]:
            raise ProviderRefused("userinfo of another subject")
        return claims

    def sign_out_url(self, return_url: str, *, id_token: str) -> str:
        """Return the URL that ends the session at the provider; empty if it has no such page.

        Raises ProviderUnavailable, ProviderRefused.
        """
        with _translated_errors():
            if not self.load_server_metadata().get("end_session_endpoint"):
                return ""
            created = self.create_logout_url(return_url, id_token or None, client_id=self.client_id)
        return str(created["url"])

    def check_documents(self) -> None:
        """Read the discovery document and the keys. Raises ProviderUnavailable, ProviderRefused."""
        with _translated_errors():
            KeySet.import_key_set(self.fetch_jwk_set())  # type: ignore[arg-type]

    def probe_discovery(self) -> Response:
        """Return the response with the discovery document. Raises ProviderUnavailable."""
        with _translated_errors(), self._get_session() as session:
            response: Response = session.request("GET", self._server_metadata_url, withhold_token=True)
        return response

    def probe_redirect(self, redirect_uri: str) -> Response:
        """Return the response to a sign-in that may ask nothing, so that it leads back at once.

        Raises ProviderUnavailable, ProviderRefused.
        """
        with _translated_errors():
            url = self.create_authorization_url(redirect_uri, scope="openid", prompt="none")["url"]
            with self._get_session() as session:
                # The target of the redirect is prepared, but not requested.
                session.max_redirects = 1
                response: Response = session.request("GET", url, withhold_token=True, allow_redirects=False)
        return response

    def read_logout_token(self, text: str) -> dict[str, Any]:
        """Return the claims of a logout token. Raises ProviderUnavailable, ProviderRefused."""
        with _translated_errors():
            token = self._decode(text)
            options = {**self._claims_options(), **{name: {"essential": True} for name in ("iat", "exp", "jti", "sub")}}
            claims = JWTClaims(token.claims, token.header, options)
            claims.validate(leeway=CLOCK_SKEW_SECONDS)
        return dict(claims)

    def load_server_metadata(self) -> dict[str, Any]:
        if not self.server_metadata:
            self.server_metadata = dict(_cached(self._server_metadata_url, self._fetch_metadata))
        return dict(self.server_metadata)

    def fetch_jwk_set(self, force: bool = False) -> dict[str, Any]:  # noqa: FBT001, FBT002 - Authlib's signature
        url = self.load_server_metadata()["jwks_uri"]
        is_refetch = force and not _refetched.get(url)
        if is_refetch:
            _refetched.set(url, True)
        return _cached(url, lambda: dict(super(Provider, self).fetch_jwk_set(force=True)), is_refetch=is_refetch)

    def _decode(self, text: str) -> jwt.Token:
        registry = JWSRegistry(algorithms=ALGORITHMS, strict_check_header=False)
        try:
            return jwt.decode(text, KeySet.import_key_set(self.fetch_jwk_set()), registry=registry)  # type: ignore[arg-type]
        except InvalidKeyIdError:
            keys = KeySet.import_key_set(self.fetch_jwk_set(force=True))  # type: ignore[arg-type]
            return jwt.decode(text, keys, registry=registry)

    def _claims_options(self) -> dict[str, Any]:
        """Return the options for Authlib, which compares neither by default in all cases."""
        return {
            "iss": {"essential": True, "value": self.issuer},
            "aud": {"essential": True, "value": self.client_id},
        }

    def _check_response_issuer(self, request: HttpRequest) -> None:
        """Raise ProviderRefused if the response is of another issuer (RFC 9207)."""
        is_required = self.load_server_metadata().get("authorization_response_iss_parameter_supported") is True
        given = request.GET.get("iss")
        if (given is not None or is_required) and given != self.issuer:
            raise ProviderRefused("response of another issuer")

    def _fetch_metadata(self) -> dict[str, Any]:
        """Return the members of the discovery document that are used. Raises ProviderRefused, RequestException."""
        with self._get_session() as session:
            response = session.request("GET", self._server_metadata_url, withhold_token=True)
        response.raise_for_status()
        found = response.json()
        if not isinstance(found, dict) or str(found.get("issuer", "")).rstrip("/") != settings.OIDC_ISSUER.rstrip("/"):
            raise ProviderRefused("the discovery document is of another issuer than OIDC_ISSUER")
        for name in URLS:
            if not _is_url(found.get(name)) and (name in REQUIRED_URLS or found.get(name) is not None):
                raise ProviderRefused(f"the discovery document has no valid {name}")
        metadata = {name: found[name] for name in (*URLS, *OTHER_MEMBERS) if found.get(name) is not None}
        methods = metadata.get("token_endpoint_auth_methods_supported") or ["client_secret_basic"]
        metadata["token_endpoint_auth_method"] = (
            "client_secret_basic" if "client_secret_basic" in methods else "client_secret_post"
        )
        # The list of the provider may have others.
        metadata["id_token_signing_alg_values_supported"] = ALGORITHMS
        return metadata

    def _get_session(self) -> OAuth2Session:
        return self._guard(super()._get_session())

    def _get_oauth_client(self, **metadata: Any) -> OAuth2Session:
        return self._guard(super()._get_oauth_client(**metadata))

    def _guard(self, session: OAuth2Session) -> OAuth2Session:
        # aiohttp, which few web processes use, is 6 MB of memory (docs/decisions/0259).
        from core.lib.network.guarded_requests import GuardedAdapter  # noqa: PLC0415

        adapter = GuardedAdapter(
            provider_url_rules(), dns_servers=settings.DNS_SERVERS, deadline=self._deadline, slots=_slots
        )
        session.mount("https://", adapter)
        session.mount("http://", adapter)
        session.trust_env = False
        session.max_redirects = 0
        return session


def provider_url_rules() -> UrlRules:
    issuer = urlsplit(settings.OIDC_ISSUER)
    port = issuer.port or DEFAULT_PORTS["https"]
    guard = Guard(allow_private=settings.OIDC_ALLOW_PRIVATE_NETWORKS)
    return UrlRules(guard=guard, ports=(DEFAULT_PORTS["https"], port))


@contextmanager
def _translated_errors() -> Iterator[None]:
    """Raise ProviderUnavailable or ProviderRefused for the errors of Authlib and its libraries."""
    try:
        yield
    except RequestException as error:
        raise ProviderUnavailable(f"{type(error).__name__}: {error}") from error
    except (OAuthError, JoseError, ValueError, TypeError, KeyError, AttributeError) as error:
        # Not all types in documents of the provider are checked.
        raise ProviderRefused(f"{type(error).__name__}: {error}") from error


def _cached(url: str, fetch: Callable[[], dict[str, Any]], *, is_refetch: bool = False) -> dict[str, Any]:
    """Return a document of this process, or fetch it. If a refetch fails, the known one stays."""
    document = None if is_refetch else _documents.get(url)
    if document is None:
        document = fetch()
        _documents.set(url, document)
    return document


def _is_url(value: object) -> bool:
    schemes = ("https://", "http://") if settings.OIDC_ALLOW_PRIVATE_NETWORKS else ("https://",)
    return isinstance(value, str) and value.startswith(schemes)
