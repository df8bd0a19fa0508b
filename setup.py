"""Compiles the catalogues of messages while the package is built; all else is in pyproject.toml."""

import sys
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

sys.path.insert(0, str(Path(__file__).parent / "tools"))

from messages import compile_all


class BuildWithCatalogues(build_py):
    def run(self) -> None:
        compile_all()
        super().run()


setup(cmdclass={"build_py": BuildWithCatalogues})
