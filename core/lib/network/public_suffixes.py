"""Public suffixes: which names anybody can register, and whose names are below them (publicsuffix.org)."""

import functools

from publicsuffixlist import PublicSuffixList


def organizational_domain(name: str) -> str:
    """Return the name directly below the public suffix, whose owner controls all names below it."""
    return public_suffixes().privatesuffix(name) or name


@functools.cache
def public_suffixes() -> PublicSuffixList:
    """Return the list of public suffixes, which the first call of a process reads in 0.1 s."""
    return PublicSuffixList()
