"""`python -m annabelle.thinker`."""

from annabelle.thinker.boot import main

if __name__ == "__main__":
    main()
