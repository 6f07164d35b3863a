"""Events that have not reached the disk yet: few, unless it fails."""

from dataclasses import replace

from ocfuse.serve.event import Event

#: Events and bytes of pictures that are kept while nothing can be written.
MOST_EVENTS, MOST_BYTES = 10_000, 16 * 1024**2


class Unwritten:
    """Events and pictures that wait to be written; bounded.

    Attributes
    ----------
    events : dict from int to Event
        By number, in the order of their last change.
    pictures : dict from int to bytes
        By number of the event.
    n_lost : int
        Events that had to go, the oldest first.
    """

    def __init__(self) -> None:
        self.events: dict[int, Event] = {}
        self.pictures: dict[int, bytes] = {}
        self.n_lost = 0

    def put(self, event: Event) -> None:
        """Let an event wait; what is too much goes."""
        self.events.pop(event.id, None)
        self.events[event.id] = event
        if len(self.events) > MOST_EVENTS:
            oldest = next((old for old in self.events.values() if old.state != "open"), event)
            del self.events[oldest.id]
            self.pictures.pop(oldest.id, None)
            self.n_lost += 1

    def put_picture(self, event: int, picture: bytes) -> None:
        """Let a picture wait; what is too much goes."""
        self.pictures[event] = picture
        while sum(map(len, self.pictures.values())) > MOST_BYTES:
            oldest = next(iter(self.pictures))
            del self.pictures[oldest]
            if oldest in self.events:
                self.events[oldest] = replace(self.events[oldest], media=None)

    def clear(self) -> None:
        """Forget what has been written."""
        self.events.clear()
        self.pictures.clear()
