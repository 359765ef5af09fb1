"""The processor time of reading one message: a hostile message ends its reading, and nothing else."""

import time

from receiving.states import TOO_EXPENSIVE

READING_SECONDS = 2.0


class TooExpensive(Exception):
    """Raised between two steps of a reading whose processor time is used up."""


class ProcessorBudget:
    """The processor time of the thread in which it was made."""

    def __init__(self, seconds: float = READING_SECONDS) -> None:
        self._end = time.thread_time() + seconds

    @property
    def seconds_left(self) -> float:
        return self._end - time.thread_time()

    def check(self) -> None:
        """Raise TooExpensive if nothing is left."""
        if self.seconds_left <= 0:
            raise TooExpensive(TOO_EXPENSIVE)
