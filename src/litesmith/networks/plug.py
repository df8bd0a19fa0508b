"""What this room offers the rest of the package, which finds it by `litesmith.plugins`."""

from litesmith import networks
from litesmith.known_networks import CatalogueRoom

PLUG: CatalogueRoom = networks
