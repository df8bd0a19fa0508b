"""The engine `ray`. Needs the extra `ray`; this room can be taken away.

device_log.py   a machine that times are taken on: one trial at a time, on record in its log
plug.py         what this room offers the rest of the package
ray_cluster.py  joining a Ray cluster, functions as its tasks, the board that reports them

The rest of the package knows `plug.py` alone, through one row of `plugins.py`. `docs/cluster.md`
tells what is shipped and what it costs.
"""
