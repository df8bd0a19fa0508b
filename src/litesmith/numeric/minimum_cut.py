"""The minimum cut of a network: the nodes on the far side of its narrowest place.

Dinic's algorithm: each round fills every shortest path, after which no path of that length is left.
Capacities are integers, so that rounding loses nothing and every search ends.
"""

from collections import deque

# More than any sum of real capacities.
ENDLESS = 1 << 60

SOURCE, SINK = 0, 1


class FlowNetwork:
    """Nodes and directed edges; node 0 is the source, node 1 the sink."""

    def __init__(self) -> None:
        self._edges: list[list[int]] = [[], []]  # the edges of each node, by number
        self._ends: list[int] = []
        self._room: list[int] = []  # an edge and its reverse are neighbours

    def node(self) -> int:
        """A new node."""
        self._edges.append([])
        return len(self._edges) - 1

    def join(self, start: int, end: int, capacity: int) -> None:
        """Adds an edge of this capacity, in one direction."""
        if capacity <= 0 or start == end:
            return
        for node, other, room in ((start, end, capacity), (end, start, 0)):
            self._edges[node].append(len(self._ends))
            self._ends.append(other)
            self._room.append(room)

    def far_side(self) -> set[int]:
        """The nodes behind the minimum cut, seen from the source; of several minimum cuts, the one
        with most nodes behind it.
        """
        while True:
            depth = self._depths()
            if depth[SINK] < 0:
                return {node for node, found in enumerate(depth) if found < 0}
            self._fill(depth)

    def _depths(self) -> list[int]:
        """The number of edges with free capacity between the source and each node; −1 where the
        source cannot reach it.
        """
        depth = [-1] * len(self._edges)
        depth[SOURCE] = 0
        waiting = deque([SOURCE])
        while waiting:
            node = waiting.popleft()
            for edge in self._edges[node]:
                end = self._ends[edge]
                if depth[end] < 0 and self._room[edge]:
                    depth[end] = depth[node] + 1
                    waiting.append(end)
        return depth

    def _fill(self, depth: list[int]) -> None:
        """Fills all paths to the sink on which every edge leads one level deeper."""
        tried = [0] * len(self._edges)
        path: list[int] = []
        node = SOURCE
        while True:
            if node == SINK:
                least = min(self._room[edge] for edge in path)
                for edge in path:
                    self._room[edge] -= least
                    self._room[edge ^ 1] += least
                full = next(place for place, edge in enumerate(path) if not self._room[edge])
                node = self._ends[path[full] ^ 1]
                del path[full:]
                continue
            edges = self._edges[node]
            while tried[node] < len(edges):
                edge = edges[tried[node]]
                end = self._ends[edge]
                if self._room[edge] and depth[end] == depth[node] + 1:
                    break
                tried[node] += 1
            else:
                if not path:
                    return
                node = self._ends[path.pop() ^ 1]
                tried[node] += 1
                continue
            path.append(edge)
            node = end
