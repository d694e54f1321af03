"""From a case to a call that can be timed, and from an exception to a status."""
