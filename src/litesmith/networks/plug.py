"""The interface of this room for the rest of the package, found by `litesmith.plugins`."""

from litesmith import networks
from litesmith.known_networks import CatalogueRoom

PLUG: CatalogueRoom = networks
