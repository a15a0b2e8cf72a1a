"""`python -m chatkeep` is the command `chatkeep`."""

from chatkeep.cli import main

if __name__ == "__main__":
    main()
