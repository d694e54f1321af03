"""The way of runs from the queue to the devices and back: supervisor, engines, workers, the client that starts them.

`supervisor.py` is the process that claims runs; `claimed_run.py` writes what happens to one, `heartbeat.py` says that
it lives. `engines/` hands cases to a device's own process, which `worker.py` is, by messages of `journal.py`;
`locks.py` keeps two processes of a host from measuring at once, `quiet.py` waits for pages. `client.py` starts a
supervisor beside the app.

It imports the store, measure and what is below them, never pages. Another place to measure (a cluster) is an engine,
which a feature declares; another thing that is done in a worker is an activity, which a feature declares too.
"""
