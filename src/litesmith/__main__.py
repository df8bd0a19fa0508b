"""`python -m litesmith` is the command `litesmith`."""

from litesmith.cli.main import main

if __name__ == "__main__":
    main()
