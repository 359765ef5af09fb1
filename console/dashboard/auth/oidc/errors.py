"""Errors of the identity provider.

Modules that every web process loads import console.dashboard.auth.oidc.provider where they use it: Authlib is 3 MB of
memory, which an installation without a provider does not need (docs/decisions/0259).
"""

CLOCK_SKEW_SECONDS = 60


class ProviderUnavailable(Exception):
    """Raised if the provider cannot be reached, does not answer in time, or answers with an error of its own."""


class ProviderRefused(Exception):
    """Raised for a sign-in or token that is not valid; the text is for the log."""
