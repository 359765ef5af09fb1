"""Erasure of an address from all workspaces, as `manage.py erase_address` does it."""

from collections import Counter

from console.privacy.steps import run_all
from core.erasing.steps import ErasureScope
from core.workspaces.models import Workspace


def erase_person(address: str) -> Counter[str]:
    """Run the steps of an erasure in each workspace; return the numbers of erased records by kind."""
    key = address.lower()
    results = [run_all(ErasureScope(workspace.id, (key,))) for workspace in Workspace.objects.all()]
    return sum((result.counts_of(key) for result in results), Counter())
