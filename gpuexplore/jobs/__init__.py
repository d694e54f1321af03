"""The way of runs from the queue to the devices and back: supervisor, engines, workers, the client that starts them.

`supervisor.py` starts and ends the process that measures; `queue_loop.py` is its loop: it claims runs, has an engine
measure them, and stores what comes; `heartbeat.py` shows that it lives. `engines/` hands cases to a device's own
process, which `worker.py` is, by messages of `journal.py`; `locks.py` excludes two processes of a host from measuring
at once, `quiet.py` waits for pages. `client.py` starts a supervisor for the app.

It imports the store, measure and what is below them, never pages. What measures elsewhere (a cluster) is an engine,
which a feature declares; what else is done in a worker is an activity, which a feature declares too.
"""
