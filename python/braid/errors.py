"""What braid raises: one class for each status of the C interface."""


class Error(RuntimeError):
    """Why a call failed, on one line: "place: what was found; what was expected"."""

    @property
    def place(self) -> str:
        """What the message is about: a tensor, `/nodes/3/attrs/group` of a graph, a file."""
        return str(self).partition(": ")[0]


class InvalidArgument(Error, ValueError):
    """Bad input: a graph, a tensor, a value of a symbol."""


class MissingEnvironment(Error):
    """Something is missing or broken on this machine."""


class WaitTimeout(Error, TimeoutError):
    """A rank waited in vain for another one."""


class InternalError(Error):
    """A bug in braid."""


class OutOfMemory(Error, MemoryError):
    """The host has no memory left."""


class Cancelled(Error):
    """A callback, or `Executable.cancel`, ended the call."""


class CannotExport(Error):
    """What a model has and a graph cannot: a line for each op, with module and source."""


class Remark(UserWarning):
    """What an export leaves out, or what it costs."""


BY_STATUS: dict[int, type[Error]] = {
    1: InvalidArgument,
    2: MissingEnvironment,
    3: WaitTimeout,
    4: InternalError,
    5: OutOfMemory,
    6: Cancelled,
}
