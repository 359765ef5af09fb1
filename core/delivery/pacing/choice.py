"""Choice of the source of a message among those of its transport (docs/decisions/0366, 0367)."""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from core.delivery.bounces.reasons import FailureReason
from core.delivery.bounces.replies import DeliveryOutcome
from core.delivery.pacing.pairs import PairKey
from core.delivery.pacing.shares import PaceShare, PaceShares
from core.delivery.receivers import Receiver
from core.delivery.transports.source_addresses import SourceOption


@dataclass(frozen=True)
class ChosenSource:
    """A source that a message may leave from.

    is_taken_over: whether it does so because another one is listed or suspended.
    """

    option: SourceOption
    share: PaceShare
    is_taken_over: bool = False


class SourceRanking:
    """The sources of the messages of one stream to one receiver.

    The order follows from their names, so that the messages keep their source, in all processes. New sources come
    before the others while there are messages of the day left for them: else an installation with one stream would
    never send from them.
    """

    def __init__(self, options: Sequence[SourceOption], paces: PaceShares, *, stream: str, receiver: Receiver) -> None:
        self._paces = paces
        self._receiver = receiver
        # A single one needs no order.
        self._options = sorted(options, key=lambda one: _digest(stream, receiver, one)) if options[1:] else options

    def choices(self, *, released_for: int, overflows: bool) -> Iterator[ChosenSource]:
        """Yield the sources that are neither listed nor suspended; if all are, the first one that is not listed.

        released_for: the number of the pair for which the message was released, which comes first; 0 if for none.
        overflows: whether messages that exceed those of a day leave by others; without it, new sources do not come
            first.
        """
        usual = self._usable()
        if released_for or (overflows and any(one.since for one in self._options)):
            usual = iter(sorted(usual, key=lambda one: self._rank(one, released_for=released_for, overflows=overflows)))
        first = next(usual, None)
        if first is None:
            yield self._choice(next(one for one in self._options if not one.is_listed))
            return
        yield first
        yield from usual

    def wait_for_stopped(self) -> DeliveryOutcome | None:
        """Return the outcome of a message that waits for the first source, if this one is listed or suspended."""
        option, share = self._options[0], self._share(self._options[0])
        if not option.is_listed and not share.is_suspended:
            return None
        return share.wait(reason=FailureReason.BLOCKLISTED if option.is_listed else share.reason)

    def _usable(self) -> Iterator[ChosenSource]:
        is_taken_over = False
        for option in self._options:
            if option.is_listed or (choice := self._choice(option, is_taken_over=is_taken_over)).share.is_suspended:
                is_taken_over = True
            else:
                yield choice

    def _rank(self, choice: ChosenSource, *, released_for: int, overflows: bool) -> tuple[bool, bool]:
        is_released = bool(released_for) and choice.share.number == released_for
        return not is_released, not (overflows and choice.share.is_warming_up)

    def _choice(self, option: SourceOption, *, is_taken_over: bool = False) -> ChosenSource:
        return ChosenSource(option, self._share(option), is_taken_over)

    def _share(self, option: SourceOption) -> PaceShare:
        return self._paces.get(PairKey(option.name, self._receiver.key), self._receiver, since=option.since)


def _digest(stream: str, receiver: Receiver, option: SourceOption) -> bytes:
    return hashlib.sha256(f"{stream} {receiver.key} {option.name}".encode()).digest()
