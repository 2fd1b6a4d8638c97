"""A feed that tells a story: one sample a call, the last one for ever."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ranktop.sample import Sample


class StoryFeed:
    """A `SampleFeed` without sources."""

    def __init__(self, story: Sequence[Sample] | Callable[[int], Sample]) -> None:
        self._story = story
        self.asked = 0
        self.stopped = False

    def start(self) -> None:
        """There is nothing to start."""

    def sample(self) -> Sample:
        number = self.asked
        self.asked += 1
        if callable(self._story):
            return self._story(number)
        return self._story[min(number, len(self._story) - 1)]

    def stop(self) -> None:
        self.stopped = True
