"""What this room offers the rest of the package, which finds it by `litesmith.plugins`."""

from litesmith.ray_engine import ray_cluster
from litesmith.workers.engine import RayRoom

PLUG: RayRoom = ray_cluster
