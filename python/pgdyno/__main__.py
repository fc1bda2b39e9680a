"""``python -m pgdyno`` is the command ``pgdyno``."""

from pgdyno.cli.main import main

if __name__ == "__main__":
    main()
