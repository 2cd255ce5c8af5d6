"""`python -m posenc`."""

from posenc.cli import run as main

if __name__ == "__main__":
    main()
