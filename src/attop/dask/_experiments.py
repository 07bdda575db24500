"""Experiments on a cluster: groups of fits go to the workers, results into the store."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from distributed import Client, KilledWorker, as_completed

from attop.experiments.expansion import Group
from attop.experiments.fitting import run_group
from attop.experiments.store import Store

#: So often a group is begun anew after workers that worked on it have died; the scheduler itself
#: tries some times before it says so.
_TRIES = 10


def run_groups(address: str, groups: Sequence[Group], store: Store) -> list[str]:
    """Do the fits of all groups that the store does not have; returns the keys of failures.

    A group goes on with what the store does not have yet: a worker that dies costs the fit that
    it was at.

    Parameters
    ----------
    address : str
        Address of the scheduler, such as ``tcp://10.0.0.1:8786``.
    groups : sequence of Group
        The groups.
    store : Store
        Where the results go: a folder that all workers see under this path.
    """
    failures: list[str] = []
    with Client(address) as client:

        def begin(group: Group) -> Any:
            return client.submit(run_group, group, store, pure=False)

        tries = {begin(group): (group, 1) for group in groups}
        running = as_completed(list(tries))
        for future in running:
            group, count = tries.pop(future)
            try:
                failures += future.result()
            except KilledWorker:
                if count == _TRIES:
                    raise
                again = begin(group)
                tries[again] = group, count + 1
                running.add(again)
    return failures
